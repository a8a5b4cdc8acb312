"""The explorer page: one HTML file that needs no server and no network.

The data are base64 in inert script elements, and a content security policy allows only the page's own script and
style, so that no text of a corpus can run as code.
"""

from __future__ import annotations

import base64
import hashlib
import html
from functools import cache
from importlib.resources import files
from os import PathLike
from typing import Any

from polyseme.explore.page_data import PageData, page_data, run_page_data
from polyseme.explore.sections import Section, pack_section, summarize
from polyseme.io.files import write_atomically
from polyseme.runs import Run

SCRIPTS = (
    "data.js", "words.js", "folding.js", "corpus.js", "search.js", "dom.js", "export.js", "charts.js", "charts_more.js",
    "pieces.js", "view_topics.js", "view_topic.js", "view_documents.js", "view_document.js", "view_word.js",
    "view_search.js", "view_paste.js", "view_labels.js", "view_time.js", "view_tree.js", "view_fit.js", "app.js",
)  # fmt: skip
"""Scripts of the page, in the order in which they are joined to one script."""


def write_page(model: Any, path: str | PathLike[str], text: str = "excerpt", **arguments: Any) -> None:
    """Write the explorer page of a fitted model, a run or PageData to an HTML file.

    The file is written atomically. It always contains the word counts of the documents.

    Parameters
    ----------
    model : estimator, Run or PageData
        What the page shows.
    path : str or PathLike
        File to write.
    text : {"excerpt", "full", "none"}, default="excerpt"
        How much of each document's text the page contains.
    **arguments : object
        Arguments of `page_data` for a fitted model: counts, vocabulary, titles and others.
    """
    write_atomically(path, render_page(model, text, **arguments).encode())


def render_page(model: Any, text: str = "excerpt", **arguments: Any) -> str:
    """Return the HTML of the page that `write_page` writes.

    Parameters
    ----------
    model : estimator, Run or PageData
        What the page shows.
    text : {"excerpt", "full", "none"}, default="excerpt"
        How much of each document's text the page contains.
    **arguments : object
        Arguments of `page_data` for a fitted model: counts, vocabulary, titles and others.

    Returns
    -------
    str
        HTML of the page.
    """
    data = _as_page_data(model, text, arguments)
    first, *others = (_block(name, section) for name, section in summarize(data, text).items())
    script, style = _script(), _asset("style.css")
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    filled = {
        "policy": html.escape(policy, quote=False),
        "title": html.escape(data.title),
        "style": style,
        "core": first,
        "others": "\n".join(others),
        "script": script,
    }
    pieces = _asset("page.html").split("%%")
    return "".join(filled[piece] if place % 2 else piece for place, piece in enumerate(pieces))


def show_page(model: Any, *, text: str = "excerpt", height: int = 800, **arguments: Any) -> NotebookPage:
    """Show the explorer page in a notebook.

    Parameters
    ----------
    model : estimator, Run or PageData
        What the page shows.
    text : {"excerpt", "full", "none"}, default="excerpt"
        How much of each document's text the page contains.
    height : int, default=800
        Height of the frame in pixels.
    **arguments : object
        Arguments of `page_data` for a fitted model: counts, vocabulary, titles and others.

    Returns
    -------
    NotebookPage
        Object that a notebook displays as the page.
    """
    return NotebookPage(render_page(model, text, **arguments), height)


class NotebookPage:
    """A page that a notebook displays in a frame."""

    def __init__(self, content: str, height: int) -> None:
        self.content = content
        self.height = height

    def _repr_html_(self) -> str:
        content = html.escape(self.content)
        return (
            f'<iframe srcdoc="{content}" width="100%" height="{self.height}" style="border:0" title="Explorer" '
            'sandbox="allow-scripts allow-downloads"></iframe>'
        )


def _as_page_data(model: Any, text: str, arguments: dict[str, Any]) -> PageData:
    """Return the data of the page; the full texts of a run are read only if the page contains them."""
    if isinstance(model, Run) and not arguments:
        return run_page_data(model, texts=text == "full")
    return page_data(model, **arguments)


def _block(name: str, section: Section) -> str:
    """Return the script element of a section; base64 has no character that could end the element."""
    packed = pack_section(section.values, section.arrays)
    return f'<script type="application/octet-stream" id="{name}">{base64.b64encode(packed).decode()}</script>'


@cache
def _asset(name: str) -> str:
    return files("polyseme.explore").joinpath("assets", name).read_text(encoding="utf-8")


@cache
def _script() -> str:
    return '\n(() => {\n"use strict";\n' + "\n".join(_asset(name) for name in SCRIPTS) + "\n})();\n"


def _digest(content: str) -> str:
    """Return the source expression of a content security policy that allows exactly this script or style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
