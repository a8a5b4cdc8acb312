"""
Materials in a hyperspectral scene
==================================

Every pixel of a hyperspectral image is a spectrum, a mixture of the spectra of the materials in it. `RealTopicModel`
finds the materials as the corners of the smallest simplex around the pixels. The scene is simulated: three materials,
shade, and noise.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter

from polyseme import PLSA, RealTopicModel
from polyseme.metrics import align

rng = np.random.default_rng(0)
side, bands = 60, 80
wavelength = np.linspace(0, 1, bands)
materials = np.array(
    [0.2 + 0.7 / (1 + np.exp(-25 * (wavelength - 0.5))), 0.3 + 0.5 * wavelength, 0.5 * np.exp(-3 * wavelength) + 0.1]
)
fields = np.array([gaussian_filter(rng.normal(size=(side, side)), 6) for _ in materials])
shares = np.exp(80 * fields).reshape(3, -1).T
shares /= shares.sum(axis=1, keepdims=True)
shade = rng.uniform(0.4, 1, (side**2, 1))
pixels = np.maximum(shade * shares @ materials + 0.005 * rng.normal(size=(side**2, bands)), 0)

# %%
# Brightness is divided out and passed as weights, because dark pixels are mostly noise.

light = pixels.sum(axis=1)
model = RealTopicModel(PLSA(3)).fit(pixels / light[:, np.newaxis], sample_weight=light)
spectra = materials / materials.sum(axis=1, keepdims=True)
order, distance = align(spectra, model.components_)
print("total variation between true and found spectra:", distance.round(3))

# %%
# Maps of the shares of light, and the spectra (dashed lines: true).

figure, axes = plt.subplots(1, 4, figsize=(11, 2.8), layout="constrained")
for k, topic in enumerate(order):
    axes[k].imshow(model.doc_topic_[:, topic].reshape(side, side), cmap="viridis", vmin=0, vmax=1)
    axes[k].set(title=f"material {k}", xticks=[], yticks=[])
    axes[3].plot(wavelength, model.components_[topic], color=f"C{k}")
    axes[3].plot(wavelength, spectra[k], "--", color="black", linewidth=0.8)
axes[3].set(title="spectra", xlabel="wavelength", yticks=[])
