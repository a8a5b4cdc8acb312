"""Wrote plsa_v2.safetensors and plsa_v2_expected.npz, which stay as they are: files of format version 2 must load.

Run again only to see how they were made (python tests/files/make_plsa_v2.py FOLDER); a new format gets new files.
"""

import sys
from pathlib import Path

import numpy as np

from polyseme import PLSA

WORDS = ["ant", "bee", "cow", "iron", "zinc", "gold", "über", "水"]
DOCUMENTS = np.array(
    [
        [3, 2, 1, 0, 0, 0, 1, 0],
        [1, 4, 2, 0, 0, 0, 0, 0],
        [0, 1, 5, 1, 0, 0, 0, 1],
        [0, 0, 0, 4, 3, 2, 0, 0],
        [0, 0, 1, 2, 5, 1, 0, 1],
        [0, 0, 0, 0, 0, 0, 0, 0],
        [1, 0, 0, 1, 2, 6, 0, 0],
    ],
    dtype=np.int64,
)


def main(folder: Path) -> None:
    import pandas

    table = pandas.DataFrame(DOCUMENTS, columns=WORDS)
    model = PLSA(3, solver="em", max_iter=200, tol=1e-3, random_state=7).fit(table)
    model.save(folder / "plsa_v2.safetensors")
    np.savez(
        folder / "plsa_v2_expected.npz",
        documents=DOCUMENTS,
        words=np.array(WORDS),
        transformed=model.transform(table),
        components=model.components_,
        topic_weights=model.topic_weights_,
        log_likelihood=model.log_likelihood_,
        completion_perplexity=model.completion_perplexity(table),
        n_iter=model.n_iter_,
        document_prior=model._fitted.document_prior,
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
