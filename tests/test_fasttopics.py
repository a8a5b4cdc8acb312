"""The likelihood that fastTopics 0.7 (R; scd with extrapolation) reached in 205 s from a common start."""

import numpy as np
import pytest

from polyseme import PLSA

FASTTOPICS = -6.73354
"""log-likelihood per token on 20 Newsgroups (words in at least 10 documents), K = 20"""


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_default_reaches_it(real_counts, real_file):
    X = real_counts("perf/newsgroups_df10.npz")
    start = np.load(real_file("perf/newsgroups_df10_k20_start.npz"))

    def reached(entry):
        if entry["log_likelihood"] >= FASTTOPICS - 5e-4:
            raise KeyboardInterrupt

    model = PLSA(20, init=(start["doc_topic"], start["topic_word"]), tol=0, max_iter=50, callback=reached)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert model.history_["log_likelihood"][-1] >= FASTTOPICS - 5e-4
