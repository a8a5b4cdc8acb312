"""Topic fit, as the thesis judges topics (ch. 6)."""

from __future__ import annotations

import numpy as np

from polyseme.kernels import Array, Floats


def topic_fit(doc_topic: Array, topic_doc: Array) -> Floats:
    """How much of its own documents each topic carries: sum_d P(d|z) P(z|d), between 0 and 1 (thesis ch. 6).

    A fitting topic by itself carries the majority of the weight of its documents.
    """
    return np.asarray(np.einsum("kd,dk->k", topic_doc, doc_topic, dtype=np.float64))
