"""One self-contained HTML page: the explorer. No server, no network, nothing from the corpus is ever code."""

from __future__ import annotations

import base64
import hashlib
import html
from functools import cache
from importlib.resources import files
from os import PathLike
from typing import Any

from polyseme.errors import InputError
from polyseme.explore.packing import packed_section
from polyseme.explore.page_data import PageData, page_data, run_page_data
from polyseme.explore.summary import Section, summarize
from polyseme.io.files import write_atomically

SCRIPTS = (
    "data.js", "words.js", "folding.js", "corpus.js", "search.js", "dom.js", "export.js", "charts.js", "charts_more.js",
    "pieces.js", "view_topics.js", "view_topic.js", "view_documents.js", "view_document.js", "view_word.js",
    "view_search.js", "view_paste.js", "view_labels.js", "view_time.js", "view_tree.js", "view_fit.js", "app.js",
)  # fmt: skip
"""in this order they become one script"""


def write_page(corpus: Any, path: str | PathLike[str], text: str = "excerpt", **parts: Any) -> None:
    """Writes the explorer of a run, of `Parts`, or of a fitted model with its counts, to one HTML file.

    text : "excerpt" (how each document begins), "full", or "none"; the counts of words are always in the page.
    parts : for a fitted model, the arguments of `polyseme.explore.of_model`: counts, vocabulary, titles ...

    The file appears whole or not at all.
    """
    write_atomically(path, render_page(corpus, text, **parts).encode())


def render_page(corpus: Any, text: str = "excerpt", **parts: Any) -> str:
    """The text of the page that `write_page` writes."""
    made = page_data_of(corpus, text, **parts)
    first, *others = (_block(name, section) for name, section in summarize(made, text).items())
    script, style = _script(), _asset("style.css")
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    filled = {
        "policy": html.escape(policy, quote=False),
        "title": html.escape(made.title),
        "style": style,
        "core": first,
        "others": "\n".join(others),
        "script": script,
    }
    pieces = _asset("page.html").split("%%")
    return "".join(filled[piece] if place % 2 else piece for place, piece in enumerate(pieces))


class Shown:
    """A page in a notebook: the explorer in a frame of its own."""

    def __init__(self, content: str, height: int) -> None:
        self.content = content
        self.height = height

    def _repr_html_(self) -> str:
        inside = html.escape(self.content)
        return (
            f'<iframe srcdoc="{inside}" width="100%" height="{self.height}" style="border:0" title="Explorer" '
            'sandbox="allow-scripts allow-downloads"></iframe>'
        )


def show_page(corpus: Any, *, text: str = "excerpt", height: int = 800, **parts: Any) -> Shown:
    """The explorer inline in a notebook; arguments as `write_page`'s."""
    return Shown(render_page(corpus, text, **parts), height)


def page_data_of(corpus: Any, text: str = "full", **parts: Any) -> PageData:
    """Parts of whatever has them: Parts, a run, or a fitted model with counts."""
    if isinstance(corpus, PageData):
        made = corpus
    elif hasattr(corpus, "documents") and hasattr(corpus, "model"):
        made = run_page_data(corpus, texts=text == "full")
    elif "counts" in parts:
        return page_data(corpus, **parts)
    else:
        raise InputError("A fitted model alone knows no documents: give counts=, and vocabulary= or vectorizer=.")
    if parts:
        raise InputError(f"{', '.join(parts)}: these are for a fitted model; a run or Parts has them already.")
    return made


def _block(name: str, section: Section) -> str:
    """The element of a section; base64 has no character that could end it."""
    packed = packed_section(section.values, section.arrays)
    return f'<script type="application/octet-stream" id="{name}">{base64.b64encode(packed).decode()}</script>'


@cache
def _asset(name: str) -> str:
    return files("polyseme.explore").joinpath("assets", name).read_text(encoding="utf-8")


@cache
def _script() -> str:
    return '\n(() => {\n"use strict";\n' + "\n".join(_asset(name) for name in SCRIPTS) + "\n})();\n"


def _digest(content: str) -> str:
    """The corpus expression that lets exactly this inline script or style through a content security policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
