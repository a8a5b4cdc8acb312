"""Wrote run_v3/ and run_v3_expected.json, which stay as they are: runs of format version 3 must open.

The run has a model and shards of format version 2, and a search index of version 3, which is derived and was built
again. Run this only to see how they were made (python tests/files/make_run_v3.py FOLDER); a new format gets new files.
"""

import json
import sys
from pathlib import Path

import polyseme

TEXTS = [
    "The ant and the bee share the meadow with a cow.",
    "A bee visits the meadow, and another bee follows.",
    "The cow eats grass in the meadow; the ant waits.",
    "Iron and zinc are metals, and gold is a metal.",
    "Gold is mined with zinc, iron is mined alone.",
    "The mine gives gold and iron, über allem 水.",
]
QUERY = "gold and iron"


def main(folder: Path) -> None:
    run = polyseme.fit(TEXTS, 2, output=folder / "run_v3", language="english", page=False)
    run = run.edit(rename={0: "First"})
    hits = run.search(QUERY, 3)
    expected = {
        "texts": TEXTS,
        "query": QUERY,
        "hits": [hit.id for hit in hits],
        "vocabulary": run.vocabulary,
        "counts": run.counts.toarray().tolist(),
        "components": run.model.components_.tolist(),
        "doc_topic": run.doc_topic.tolist(),
        "transformed": run.transform(TEXTS)[:, -2:].to_numpy().tolist(),
        "document_prior": run.view.fitted.document_prior.tolist(),
        "topic_names": {str(topic): name for topic, name in run.info.topic_names.items()},
    }
    (folder / "run_v3_expected.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
