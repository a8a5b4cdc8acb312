"""Readers of e-mail: single messages (.eml) and mailboxes (.mbox).

A message is a document with its subject as title, its sender as label and its date. Quoted messages, signatures and the
lines that introduce them are left out. Attached documents and messages are documents of their own, read by the readers
of their types; attachments of other types are counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from email.utils import parseaddr
from pathlib import PurePath
from typing import Any

from polyseme.errors import MissingExtraError
from polyseme.text.dates import iso_date
from polyseme.text.readers.decoding import decode_all
from polyseme.text.readers.html import read_html
from polyseme.text.readers.inputs import BAD_DATE, Document, File, Input, printable
from polyseme.text.readers.office import read_docx
from polyseme.text.readers.pdf import read_pdf
from polyseme.text.readers.text import read_file

_MAX_DEPTH = 5
"""Depth of messages attached to messages."""
_READERS: dict[str, Callable[[Input], Iterator[Document]]] = {
    ".pdf": read_pdf, ".docx": read_docx, ".html": read_html, ".htm": read_html, ".txt": read_file, ".md": read_file,
}  # fmt: skip
_SUFFIXES = {
    "application/pdf": ".pdf",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
    "text/html": ".html",
    "text/plain": ".txt",
}
_ESCAPED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)
_POSTMARK = re.compile(rb"From \S.*\d:\d\d")
_INTRODUCTION = re.compile(
    r"(?i)(?:on\b.*\bwrote|.*\bwrites|.* wrote|am\b.*\bschrieb\b.*|le\b.*\ba écrit|el\b.*\bescribió|il\b.*\bha scritto|"
    r"op\b.*\bschreef\b.*)\s*:\s*"
)
"""Line above a quotation."""
_ORIGINAL = re.compile(
    r"(?i)\s*(?:-{2,}\s*(?:original message|ursprüngliche nachricht|message d'origine|mensaje original|"
    r"messaggio originale|forwarded message)\s*-{2,}|_{20,})\s*"
)
"""Line above a complete earlier message."""
_MAX_SIGNATURE = 10
"""Largest number of lines of a signature after "--" without a space."""


def read_eml(source: Input) -> Iterator[Document]:
    """Yield a message and its attachments."""
    content = source.whole()
    if content is not None:
        yield from _documents(source, content, source.name)


def read_mbox(source: Input) -> Iterator[Document]:
    """Yield the messages of a mailbox and their attachments. The id of a message is its number."""
    for number, content in enumerate(_messages(source), 1):
        if content is None:
            limit = source.settings.limits.document
            source.problem("damaged message", f"message {number} is longer than {limit} bytes")
        else:
            yield from _documents(source, content, str(number))


def _messages(source: Input) -> Iterator[bytes | None]:
    """Yield the bytes of each message; None if it exceeds the limit of a document."""
    lines: list[bytes] = []
    size, after_blank, started = 0, True, False
    for line in _byte_lines(source):
        if line.startswith(b"From ") and after_blank and (not started or _POSTMARK.match(line)):
            if started:
                yield b"".join(lines) if size <= source.settings.limits.document else None
            lines, size, started = [], 0, True
            continue
        if not started:
            if not line.strip():
                continue
            source.problem("damaged file", 'it is not a mailbox: it does not begin with a line "From "')
            return
        size += len(line)
        if size <= source.settings.limits.document:
            lines.append(line)
        after_blank = not line.strip()
    if started:
        yield b"".join(lines) if size <= source.settings.limits.document else None


def _byte_lines(source: Input) -> Iterator[bytes]:
    """Yield the lines of a file with their ends. Parts of a very long line are yielded as lines."""
    rest: list[bytes] = []
    size = 0
    for chunk in source.chunks():
        *complete, last = chunk.split(b"\n")
        for piece in complete:
            yield b"".join([*rest, piece, b"\n"])
            rest, size = [], 0
        rest.append(last)
        size += len(last)
        if size > source.settings.limits.document:
            yield b"".join(rest)
            rest, size = [], 0
    if size:
        yield b"".join(rest)


def _documents(source: Input, content: bytes, name: str) -> Iterator[Document]:
    """Yield the documents of a message. What the email package raises for a damaged message is reported."""
    try:
        message = message_from_bytes(_ESCAPED_FROM.sub(rb"\1", content), policy=default)
        found = list(_message_documents(source, message, name, 0))
    except (MemoryError, MissingExtraError):
        raise
    except Exception as error:  # the email package raises nearly any exception for damaged messages
        source.problem("damaged message", f"message {name} cannot be read ({type(error).__name__}: {error})")
        return
    yield from found


def _message_documents(source: Input, message: Any, name: str, depth: int) -> Iterator[Document]:
    """Yield a message and its attachments."""
    sender = parseaddr(_header(message, "From"))
    time = _header(message, "Date")
    date = iso_date(time)
    if time and date is None:
        source.problem(BAD_DATE, f"{time[:60]!r} in message {name}")
    subject = _header(message, "Subject")
    label = sender[0] or sender[1]
    about: dict[str, Any] = {
        "labels": (label,) if label else (), "time": date or time or None, "source": source.name,
    }  # fmt: skip
    body = message.get_body(("plain", "html")) if isinstance(message, EmailMessage) else None
    text = "" if body is None else _body_text(source, body)
    own = without_quotes(text)
    if own:
        yield Document(name, own, subject or None, **about)
    else:
        source.drop("message that only quotes" if text else "empty message")
    for number, part in enumerate(message.iter_attachments() if message.is_multipart() else (), 1):
        yield from _attachment(source, part, f"{name}/{number}", subject, about, depth)


def _attachment(
    source: Input, part: Any, name: str, subject: str, about: dict[str, Any], depth: int
) -> Iterator[Document]:
    """Yield the documents of an attachment; count it if it is of another type."""
    kind = part.get_content_type()
    if kind == "message/rfc822" and depth < _MAX_DEPTH:
        for message in part.get_payload():
            yield from _message_documents(source, message, name, depth + 1)
        return
    file_name = PurePath(part.get_filename() or "").name
    read = _READERS.get(PurePath(file_name).suffix.lower() or _SUFFIXES.get(kind, ""))
    content = part.get_payload(decode=True)
    if read is None or not isinstance(content, bytes):
        source.drop("attachment of another type")
        return
    try:
        for document in read(_input(source, content, f"{source.name}, {file_name or name}")):
            title = ": ".join(filter(None, (subject, file_name))) or document.title
            yield Document(name, document.text, title, **about)
    except MissingExtraError as error:
        source.problem("refused file", f"attachment {name}: {error}")


def _input(source: Input, content: bytes, name: str) -> Input:
    """Return a part of a message as a file, which has the same limits."""
    return Input(File(None, name, size=len(content)), source.settings, source.current, content)


def _body_text(source: Input, body: Any) -> str:
    """Return the text of the body of a message."""
    content = body.get_payload(decode=True) or b""
    if body.get_content_type() == "text/html":
        return "\n".join(document.text for document in read_html(_input(source, content, source.name)))
    charset = body.get_content_charset("utf-8")
    try:
        return content.decode(charset)
    except (LookupError, ValueError):
        text, bad = decode_all(content, "utf-8")
        source.problem(
            "undecodable bytes", f"bytes that are not {charset[:40]} were replaced by U+FFFD", times=bad or 1
        )
        return text


def without_quotes(text: str) -> str:
    """Return a message without quotations, lines that introduce them, complete earlier messages and the signature.

    If nothing is before a complete earlier message, which is then forwarded, it is kept.
    """
    lines = text.splitlines()
    for place, line in enumerate(lines):
        rest = lines[place + 1 :]
        starts_signature = line == "-- " or (line.rstrip() == "--" and len(rest) <= _MAX_SIGNATURE)
        is_header = line.startswith(("From:", "Von:", "De :", "De:")) and _is_header_block(rest[:5])
        if starts_signature or ((_ORIGINAL.fullmatch(line[:200]) or is_header) and any(map(str.strip, lines[:place]))):
            lines = lines[:place]
            break
    kept: list[str] = []
    for line in lines:
        if not line.startswith(">"):
            kept.append(line)
            continue
        while kept and not kept[-1].strip():
            kept.pop()
        for height in (1, 2):  # the line may be broken
            if _INTRODUCTION.fullmatch(" ".join(kept[-height:])[:300]):
                del kept[-height:]
                break
    while kept and not kept[-1].strip():
        kept.pop()
    if kept and _INTRODUCTION.fullmatch(kept[-1][:300]):
        kept.pop()
    return "\n".join(kept).strip()


def _is_header_block(lines: list[str]) -> bool:
    """Return whether lines after "From:" are further headers of a message."""
    heads = ("Sent:", "Date:", "To:", "Subject:", "Gesendet:", "An:", "Betreff:", "Envoyé :", "À :", "Objet :")
    return sum(line.lstrip("*").startswith(heads) for line in lines) >= 2


def _header(message: Any, name: str) -> str:
    """Return a decoded header on one line; as it is written if it cannot be decoded; empty if there is none."""
    try:
        value = str(message[name] or "")
    except Exception:  # the parser of headers raises nearly any exception
        value = next((str(raw) for key, raw in message.raw_items() if key.lower() == name.lower()), "")
    return " ".join(printable(value).split())
