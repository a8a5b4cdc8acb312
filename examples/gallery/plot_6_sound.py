"""
Notes in a sound
================

A magnitude spectrogram is a matrix of frames x frequencies. A frame is a document, a frequency is a word, and a topic
is the spectrum of a note. Three notes are played one after the other, then together.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.signal import ShortTimeFFT

from polyseme import PLSA

rate = 8000
time = np.arange(rate) / rate


def note(frequency):
    """Return a decaying tone with overtones."""
    return sum(np.sin(2 * np.pi * frequency * n * time) / n for n in range(1, 8)) * np.exp(-2 * time)


c, e, g = note(261.6), note(329.6), note(392.0)
sound = np.concatenate([c, e, g, c + e, e + g, c + e + g])
sound += 0.001 * np.random.default_rng(0).normal(size=sound.size)
S = abs(ShortTimeFFT.from_window("hann", rate, 1024, 768).stft(sound)).T  # frames x frequencies

# %%
# PLSA finds the spectrum of each note. The amount of a note in a frame is its weight times the loudness of the frame.

model = PLSA(3, random_state=0).fit(S)
amounts = model.doc_topic_ * S.sum(axis=1, keepdims=True)

figure, (above, below) = plt.subplots(2, 1, figsize=(8, 5), sharex=True, layout="constrained")
seconds = np.linspace(0, 6, len(S))
above.imshow(np.log(S.T[:300] + 1e-3), origin="lower", aspect="auto", extent=(0, 6, 0, 300 * rate / 1024), cmap="magma")
above.set(ylabel="frequency in Hz", title="Spectrogram, and the amounts of three notes in it")
for k in np.argsort(amounts.argmax(axis=0)):
    pitch = model.components_[k].argmax() * rate / 1024
    below.plot(seconds, amounts[:, k], label=f"note near {pitch:.0f} Hz")
below.set(xlabel="seconds", ylabel="amount")
below.legend(frameon=False)
