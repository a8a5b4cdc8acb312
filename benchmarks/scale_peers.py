"""One pass of BigARTM and gensim's LdaMulticore over a matrix of counts, each with two processes."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

SEED = 0


def run_bigartm(X: sp.csr_array, K: int) -> tuple[float, np.ndarray]:
    """Return seconds and topics of one online pass: 2 processors, ten passes over each document; batches not timed."""
    import artm

    folder = Path(tempfile.mkdtemp())
    try:
        logging = artm.messages.ConfigureLoggingArgs()
        logging.log_dir = str(folder)
        artm.wrapper.LibArtm(logging_config=logging)
        coo = X.tocoo()
        rows = np.c_[coo.row + 1, coo.col + 1, coo.data].astype(int)
        head = f"{X.shape[0]}\n{X.shape[1]}\n{X.nnz}"
        np.savetxt(folder / "docword.x.txt", rows, "%d", header=head, comments="")
        words = [f"w{word}" for word in range(X.shape[1])]
        (folder / "vocab.x.txt").write_text("\n".join(words) + "\n")
        batches = artm.BatchVectorizer(
            data_path=str(folder), data_format="bow_uci", collection_name="x", target_folder=str(folder)
        )
        model = artm.ARTM(
            num_topics=K, dictionary=batches.dictionary, num_processors=2, num_document_passes=10, seed=SEED,
            cache_theta=False,
        )  # fmt: skip
        started = time.perf_counter()
        model.fit_online(batches, update_every=2)
        seconds = time.perf_counter() - started
        phi = model.phi_.reindex(words).fillna(0).to_numpy().T
    finally:
        shutil.rmtree(folder)
    return seconds, phi / np.maximum(phi.sum(axis=1, keepdims=True), 1e-30)


def run_gensim(X: sp.csr_array, K: int) -> tuple[float, np.ndarray]:
    """Return seconds and topics of one pass: 2 workers, otherwise the defaults."""
    from gensim.matutils import Sparse2Corpus
    from gensim.models import LdaMulticore

    corpus = list(Sparse2Corpus(sp.csr_matrix(X), documents_columns=False))
    words = {word: str(word) for word in range(X.shape[1])}
    started = time.perf_counter()
    model = LdaMulticore(corpus, num_topics=K, id2word=words, workers=2, passes=1, random_state=SEED)
    return time.perf_counter() - started, model.get_topics()
