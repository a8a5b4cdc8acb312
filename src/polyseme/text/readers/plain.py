"""Plain text: one document a file, or one document a line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from polyseme.text.readers.documents import Document
from polyseme.text.readers.encodings import decode_all
from polyseme.text.readers.inputs import Input


def read_file(source: Input) -> Iterator[Document]:
    """The whole file as one document, titled by its name and labelled by its folder."""
    content = source.whole()
    if content is None:
        return
    encoding = source.encoding_of(content)
    if encoding is None:
        return
    text, bad = decode_all(content, encoding)
    if bad:
        source.problem("undecodable bytes", f"bytes that are no {encoding} became U+FFFD", times=bad)
    if not text or text.isspace():
        source.drop("empty file")
        return
    yield file_document(source, text)


def file_document(source: Input, text: str, title: str | None = None) -> Document:
    """The document that a whole file is."""
    label = source.file.label
    return Document(
        id=source.name,
        text=text,
        title=title or PurePath(source.name).stem,
        labels=() if label is None else (label,),
        source=source.name,
    )


def read_lines(source: Input) -> Iterator[Document]:
    """Each line as a document, with its number as id; blank lines are dropped."""
    name = source.name
    for number, line in source.lines():
        text = line.strip()
        if text:
            yield Document(str(number), text, source=name)
        elif line:
            source.drop("blank line")
