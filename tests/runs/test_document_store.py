"""The file of documents: values come back, one without the others, and damage is found in the block that has it."""

from pathlib import Path

import numpy as np
import pytest

from polyseme.errors import ModelFileError
from polyseme.io.files import FileManifest
from polyseme.runs import documents
from polyseme.runs.documents import DocumentStore, DocumentWriter, excerpt
from polyseme.text import Document

DOCUMENTS = [
    Document(
        f"id {row}",
        "" if row == 5 else f"text {row} äß水\n" * (row % 7),
        None if row % 3 else f"title {row}",
        ("a",) * (row % 2) + ("b",) * (row % 4 == 3),
        f"{1900 + row}-02-03" if row % 5 else None,
        "file",
    )
    for row in range(60)
]


def write(folder: Path, rows: range, *, texts: bool = True, after: DocumentStore | None = None) -> DocumentStore:
    folder.mkdir()
    with DocumentWriter(folder, texts=texts, after=after) as writer:
        for row in rows:
            writer.add(DOCUMENTS[row], 2 if row in (7, 50) else None)
    files = FileManifest(folder)
    for name in ("documents.index", "documents.blocks"):
        files.add(name)
    return DocumentStore.open(FileManifest(folder, files.entries))


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DocumentStore:
    monkeypatch.setattr(documents, "BLOCK", 300)
    return write(tmp_path / "run", range(60))


def check(store: DocumentStore, *, texts: bool = True) -> None:
    """Check all values, and some of them alone."""
    expected = {
        "id": [document.id for document in DOCUMENTS],
        "title": [document.title for document in DOCUMENTS],
        "label": ["; ".join(document.labels) or None for document in DOCUMENTS],
        "time": [document.time for document in DOCUMENTS],
        "source": ["file"] * 60,
        "excerpt": [excerpt(document.text) for document in DOCUMENTS],
        **({"text": [document.text for document in DOCUMENTS]} if texts else {}),
    }
    for name, values in expected.items():
        column = store.column(name)
        assert list(column) == values
        assert [column[row] for row in (59, 0, 31, 30)] == [values[row] for row in (59, 0, 31, 30)]
        assert column.take(np.array([3, 40])) == [values[3], values[40]]
    assert list(store.names) == [document.title or document.id for document in DOCUMENTS]
    assert store.names[4] == "id 4"
    assert store.groups.tolist() == [2 if row in (7, 50) else row for row in range(60)]
    labels = store.labels()
    assert labels.names == ["", "a", "a; b"]
    assert [labels.names[number] or None for number in labels.numbers] == expected["label"]
    assert store.labels(1).names == [""]
    assert store.has_texts is texts


def test_values_come_back(store: DocumentStore) -> None:
    assert len(store.arrays["text.blocks"]) > 8
    check(store)


def test_without_texts_excerpts_are_stored(tmp_path: Path) -> None:
    check(write(tmp_path / "run", range(60), texts=False), texts=False)


def test_documents_are_added_after_others(tmp_path: Path, store: DocumentStore) -> None:
    first = write(tmp_path / "first", range(20))
    second = write(tmp_path / "second", range(20, 45), after=first)
    check(write(tmp_path / "third", range(45, 60), after=second))
    assert len(first) == 20  # which did not change


def test_no_documents(tmp_path: Path) -> None:
    store = write(tmp_path / "run", range(0))
    assert (len(store), list(store.texts), list(store.names)) == (0, [], [])


def test_a_value_is_read_without_the_other_blocks(store: DocumentStore) -> None:
    """Every other block is damaged."""
    rows, blocks = (store.arrays[f"text.{part}"].tolist() for part in ("rows", "blocks"))
    content = bytearray(store.path.read_bytes())
    for number, (start, size, _) in enumerate(blocks):
        if number != 5:
            content[start : start + size] = bytes(size)
    store.path.write_bytes(content)
    assert store.texts[rows[5]] == DOCUMENTS[rows[5]].text
    with pytest.raises(ModelFileError, match=r"documents\.blocks is damaged \(some of its bytes have changed\)"):
        _ = store.texts[rows[4]]


def test_filters(store: DocumentStore) -> None:
    assert store.with_labels(["b"]).tolist() == ["b" in document.labels for document in DOCUMENTS]
    assert store.arrays["days"].tolist().count(0) == 12
