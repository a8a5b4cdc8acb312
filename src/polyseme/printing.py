"""Results as a printed table and, in a notebook, as an HTML table."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Sequence
from typing import NamedTuple

_WIDTH = 80
"""Width of a printed table, in columns of a terminal; the last column of a row is shortened to fit."""


class Table(NamedTuple):
    """A heading, and rows of texts with the names of their columns."""

    heading: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


class Printed:
    """Base class of results that print as a table, which `_printed_table` returns."""

    def _printed_table(self) -> Table:
        raise NotImplementedError

    def __repr__(self) -> str:
        heading, columns, rows = self._printed_table()
        heading = "\n".join(textwrap.fill(line, _WIDTH) for line in heading.split("\n"))
        if not rows:
            return heading
        widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
        lines = ("  ".join(_cells(row, widths)).rstrip() for row in (columns, *rows))
        return "\n".join([heading, *(line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…" for line in lines)])

    def _repr_html_(self) -> str:
        heading, columns, rows = self._printed_table()
        title = f"<p>{html.escape(heading)}</p>".replace("\n", "<br>")
        if not rows:
            return title
        head = "".join(f'<th style="text-align:left">{html.escape(name)}</th>' for name in columns)
        cells = [[f'<td style="text-align:left">{html.escape(cell)}</td>' for cell in row] for row in rows]
        body = "".join(f"<tr>{''.join(row)}</tr>" for row in cells)
        return f"{title}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cells(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Return the cells of a row, padded to the widths; numbers are aligned on the right."""
    return [
        cell.rjust(width) if cell[:1].isdigit() or cell[:1] in "-+" else cell.ljust(width)
        for cell, width in zip(row, widths, strict=True)
    ]


def decimal(value: float, digits: int) -> str:
    """Return a number with this many digits after the point; an empty text for NaN."""
    return "" if value != value else f"{value:,.{digits}f}"
