"""Files that are encoded as text, such as attachments in mails and keys in notes: their parts are no words.

Uuencoded and base64 lines have no spaces (uuencode may have some, but no small letters), all have the same length, and
mix capitals, small letters and digits, as names of files and addresses do not.
"""

from __future__ import annotations

import re

LEFT_OUT = "[…]"
"""What a text has in place of encoded data."""
_MARKS = r"[>|:X \t]{0,4}"
"""Marks of quoting, and the X with which archives of the shell begin a line."""
_LINES = re.compile(rf"(?:^{_MARKS}(?:M[ -`]{{60}}|[!-~]{{60,}})[ \t\r]*(?:\n|\Z)){{2,}}", re.MULTILINE)
_UUENCODED = re.compile(rf"{_MARKS}M[ -`]{{60}}")
_BASE64 = re.compile(r"[A-Za-z0-9+/]{200,}={0,2}")
"""Data on one line, as in an address that begins with "data:"."""
_MIN_LETTERS, _MIN_DIGITS = 0.1, 0.05
"""Least shares of capitals, of small letters and of digits."""

_START = 10


def without_encoded(text: str) -> str:
    """Return a text with LEFT_OUT in place of encoded data."""
    if len(text) > 120:  # two lines
        text = _BASE64.sub(lambda match: LEFT_OUT if _is_mixed(match[0]) else match[0], text)
        text = _LINES.sub(lambda match: _without_blocks(match[0]), text)
    return text


def _without_blocks(lines: str) -> str:
    """Return lines without spaces; two or more of one length that are encoded become LEFT_OUT."""
    kept: list[str] = []
    block: list[str] = []
    for line in [*lines.splitlines(keepends=True), ""]:
        if block and len(line.rstrip()) != len(block[0].rstrip()):
            kept += [LEFT_OUT + "\n"] if len(block) > 1 and _is_encoded(block) else block
            block = []
        block.append(line)
    return "".join(kept)


def _is_encoded(block: list[str]) -> bool:
    if all(_UUENCODED.match(line) for line in block):
        return True
    starts = {line[:_START] for line in block}  # those of addresses of one host are equal
    return len(starts) > 1 and _is_mixed("".join(block))


def _is_mixed(text: str) -> bool:
    """Return whether a text has capitals, small letters and digits."""
    n = len(text)
    capitals, small, digits = (sum(map(kind, text)) for kind in (str.isupper, str.islower, str.isdigit))
    return min(capitals, small) >= _MIN_LETTERS * n and digits >= _MIN_DIGITS * n
