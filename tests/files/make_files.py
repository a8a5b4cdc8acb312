"""Wrote v0_2/ and v0_2_expected.npz with version 0.2.0: one file of each format, which all later versions read.

They stay as they are. Run this only to see how they were made (python tests/files/make_files.py FOLDER), or to write
the files of a new format beside them.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import polyseme
from polyseme import priors
from polyseme.retrieval import SearchIndex
from polyseme.runs.edit_files import topics_digest
from polyseme.scale import write_shards
from polyseme.text import Vectorizer, make_pipeline

WORDS = ["ant", "bee", "cow", "iron", "zinc", "gold", "über", "水"]
COUNTS = np.array(
    [
        [3, 2, 1, 0, 0, 0, 1, 0],
        [1, 4, 2, 0, 0, 0, 0, 0],
        [0, 1, 5, 1, 0, 0, 0, 1],
        [0, 0, 0, 4, 3, 2, 0, 0],
        [0, 0, 1, 2, 5, 1, 0, 1],
        [0, 0, 0, 0, 0, 0, 0, 0],
        [1, 0, 0, 1, 2, 6, 0, 0],
    ],
    dtype=np.float64,
)
CLASSES = ["animals", "animals", "animals", "metals", "metals", None, "metals"]
SUBJECTS = {
    "meadow": ["ant", "bee", "cow", "grass", "meadow", "flower"],
    "mine": ["iron", "zinc", "gold", "metal", "mine", "水"],
    "sea": ["fish", "wave", "sail", "harbor", "storm", "über"],
    "kitchen": ["bread", "salt", "oven", "soup", "knife", "plate"],
}
QUERY = "gold from a mine"


def texts(n: int = 60) -> list[str]:
    """Return texts about one or two of four subjects."""
    random = np.random.default_rng(5)
    subjects = list(SUBJECTS.values())
    found = []
    for number in range(n):
        words = [*random.choice(subjects[number % 4], 9), *random.choice(subjects[random.integers(4)], 3)]
        found.append(f"The {' and the '.join(words[:6])}. With {', '.join(words[6:])} in text {number}.")
    return found


def models() -> dict[str, Any]:
    """Return a fitted model of each class, by the name of its file."""
    import pandas

    table = pandas.DataFrame(COUNTS, columns=WORDS)
    settings = {"random_state": 7, "max_iter": 50}
    seeded = priors.SeedWords({0: ["ant"], 1: ["gold"]}, WORDS)
    return {
        "plsa": polyseme.PLSA(3, solver="em", **settings).fit(table),
        "plsa_prior": polyseme.PLSA(2, topic_word_prior=seeded, background=0.1, **settings).fit(table),
        "nmf": polyseme.NMF(3, loss="squared", **settings).fit(table),
        "lda": polyseme.LDA(3, doc_topic_prior="asymmetric-learned", **settings).fit(table),
        "lsa": polyseme.LSA(3).fit(table),
        "tree": polyseme.HierarchicalPLSA(branching=2, **settings).fit(table),
        "correlated": polyseme.CorrelatedTopicModel(2, **settings).fit(table),
        "mixture": polyseme.MultinomialMixture(2, **settings).fit(table),
        "tensor": polyseme.TensorPLSA(2, **settings).fit(COUNTS),
        "real": polyseme.RealTopicModel(polyseme.PLSA(3, **settings)).fit(COUNTS - 1),
        "classifier": polyseme.TopicClassifier(random_state=7).fit(table, CLASSES),
    }


def main(folder: Path) -> None:
    files = folder / "v0_2"
    files.mkdir(parents=True)
    expected: dict[str, Any] = {"counts": COUNTS, "words": np.array(WORDS), "texts": np.array(texts())}
    for name, model in models().items():
        model.save(files / f"{name}.safetensors")
        data = COUNTS - 1 if name == "real" else COUNTS
        expected[f"{name}.transformed"] = model.transform(data)
        if hasattr(model, "components_"):
            expected[f"{name}.components"] = model.components_

    vectorizer = Vectorizer(language="english", phrases=0.3, ngram_range=(1, 2), min_df=2)
    pipeline = make_pipeline(vectorizer, polyseme.PLSA(4, random_state=7)).fit(texts())
    pipeline.save(files / "pipeline.safetensors")
    expected["pipeline.transformed"] = pipeline.transform(texts())
    counts = vectorizer.transform(texts())
    expected["vectorizer.counts"] = counts.toarray()
    text = json.dumps(vectorizer.to_dict(), ensure_ascii=False)
    (files / "vectorizer.json").write_text(text + "\n", encoding="utf-8")

    write_shards(texts(), files / "shards", vectorizer=vectorizer, shard_nonzeros=600)
    names = list(vectorizer.get_feature_names_out())
    index = SearchIndex(counts, names, titles=texts(), vectorizer=vectorizer)
    index.set_model(pipeline[-1])
    index.save(files / "search.safetensors")
    expected["search.rows"] = np.array([hit.row for hit in index.search(QUERY, 5)])

    # runs of at least 200 documents can have finer levels
    run = polyseme.fit(texts(200), 3, output=files / "run", language="english", page=False)
    run = run.edit(rename={0: "First"}, merge=[[0, 1]], ban=["sail"])
    run.search(QUERY)  # writes the index
    expected["run.counts"] = run.counts.toarray()
    expected["run.vocabulary"] = np.array(run.vocabulary)
    expected["run.components"] = run.model.components_
    expected["run.doc_topic"] = run.doc_topic
    expected["run.level"] = run.level(max(run.levels)).doc_topic
    expected["run.transformed"] = run.transform(texts())[:, -2:].to_numpy()
    expected["run.ids"] = np.array([hit.id for hit in run.search(QUERY, 5)])
    edits = {"format": "polyseme edits 1", "topics": topics_digest(run.model.components_), "rename": {"1": "Second"}}
    (files / "edits.json").write_text(json.dumps(edits) + "\n", encoding="utf-8")
    np.savez_compressed(folder / "v0_2_expected.npz", **expected)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
