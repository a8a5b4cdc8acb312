"""Reports of runs for readers: a Word document, a web page without scripts, or Markdown.

`report_blocks` collects the content as a list of blocks, which each format writes in its own way. Every text of the
corpus is escaped: nothing in it becomes markup, a link or code.
"""

from __future__ import annotations

import html
import io
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from polyseme.errors import InputError, MissingExtraError
from polyseme.explore.page import digest
from polyseme.io.files import write_output
from polyseme.kernels import Floats
from polyseme.metrics.words import largest
from polyseme.progress import UNSAFE, escape_character, pluralize
from polyseme.runs.info import RunInfo
from polyseme.runs.languages import language_shares
from polyseme.runs.periods import periods
from polyseme.runs.tables import topics_in_order
from polyseme.runs.view import TopicView
from polyseme.text.readers.inputs import LABEL_SEPARATOR
from polyseme.text.sentences import cut_at_word

N_WORDS, N_QUOTES = 10, 2
_MAX_GROUPS, _GROUP_TOPICS, _TIME_TOPICS = 20, 3, 5
"""Labels that are shown, topics of each label, and topics over time."""
_NAME_LENGTH, _BAR_LENGTH = 40, 30
"""Characters of the name of a topic in charts and tables, and of the longest bar that is written as text."""
_MIN_SHARE, _MIN_GROUP_SHARE = 0.1, 0.005
"""Smallest share of a label that is shown with a topic, and of a topic that is shown with a label."""
_MISSING = "–"
"""Cell of a period without documents, which has no shares."""
_REFERENCES = {
    "PLSA": "Hofmann, T. (2001). Unsupervised learning by probabilistic latent semantic analysis. Machine Learning 42, "
    "177-196.",
    "LDA": "Blei, D. M., Ng, A. Y., and Jordan, M. I. (2003). Latent Dirichlet allocation. Journal of Machine Learning "
    "Research 3, 993-1022.",
    "CorrelatedTopicModel": "Blei, D. M., and Lafferty, J. D. (2007). A correlated topic model of Science. Annals of "
    "Applied Statistics 1, 17-35.",
    "HierarchicalPLSA": "Gaussier, E., Goutte, C., Popat, K., and Chen, F. (2002). A hierarchical model for clustering "
    "and categorising documents. ECIR.",
    "NMF": "Lee, D. D., and Seung, H. S. (2001). Algorithms for non-negative matrix factorization. NIPS.",
}
"""Paper of each estimator."""


@dataclass(frozen=True)
class Heading:
    """A heading; level 0 is the title."""

    text: str
    level: int = 1


@dataclass(frozen=True)
class Paragraph:
    """A paragraph, or a command to type."""

    text: str
    is_code: bool = False


@dataclass(frozen=True)
class Quote:
    """A quote with the title of its document."""

    text: str
    title: str


@dataclass(frozen=True)
class Table:
    """A table. Columns of numbers are aligned to the right."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    n_texts: int = 1
    """Number of columns at the beginning that are texts."""


@dataclass(frozen=True)
class Bars:
    """A bar chart of shares."""

    names: tuple[str, ...]
    shares: tuple[float, ...]


Block = Heading | Paragraph | Quote | Table | Bars


def write_report(view: TopicView, path: str | PathLike[str], title: str | None = None) -> None:
    """Write the report of a level of a run, in the format of the file's name, atomically."""
    render = check_report(path)
    write_output(path, render(report_blocks(view, title)))


def check_report(path: str | PathLike[str]) -> Callable[[Sequence[Block]], bytes]:
    """Return the function that renders a report for a file of this name. Raise an error if there is none."""
    suffix = Path(path).suffix.lower()
    if suffix not in _FORMATS:
        raise InputError(f"{path} must end with .docx, .html or .md: these are the formats of a report.")
    if suffix == ".docx":
        _docx()
    return _FORMATS[suffix]


def report_blocks(view: TopicView, title: str | None = None) -> list[Block]:
    """Return the content of a report."""
    info, order, titles = view.store.info, topics_in_order(view), view.topic_titles
    weights, n_documents = view.fitted.topic_weights, view.corpus.n_documents
    names = [cut_at_word(titles[topic], _NAME_LENGTH) for topic in order]
    return [
        Heading(title or view.title or "Topics", 0),
        Paragraph(f"{pluralize(len(order), 'topic')} in {pluralize(n_documents, 'document')}."),
        Heading("Documents"),
        *_corpus_blocks(view, info),
        Heading("Topics"),
        Paragraph("The share of a topic is its part of all counted words."),
        Bars(tuple(names), tuple(float(weights[topic]) for topic in order)),
        *_topic_blocks(view, order),
        *_group_blocks(view, titles),
        *_time_blocks(view, order, names),
        Heading("How the number of topics was chosen"),
        Paragraph(_chosen(view, info)),
        Heading("How to cite and repeat this"),
        *_method_blocks(info),
    ]


def _corpus_blocks(view: TopicView, info: RunInfo) -> list[Block]:
    days = view.corpus.days
    several = len(info.languages) > 1
    facts = [
        ("documents", f"{info.documents:,}"),
        ("counted words", f"{info.tokens:,}"),
        ("vocabulary", pluralize(info.words, "word")),
        ("language", language_shares(info.languages) if several else (info.language or "").capitalize()),
        ("files", ", ".join(Path(name).name or name for name in info.inputs)),
    ]
    if days.any():
        first, last = (date.fromordinal(int(day)) for day in (days[days > 0].min(), days.max()))
        facts.append(("dates", f"{first} to {last}"))
        facts.append(("documents without a date", f"{np.count_nonzero(days == 0):,}" if (days == 0).any() else ""))
    if info.duplicates.found:
        facts.append(("near-duplicates", f"{info.duplicates.found:,} of {info.duplicates.documents:,}"))
    facts += [(f"left out: {reason}", f"{count:,}") for reason, count in info.left_out.items()]
    facts += [(f"problem while reading: {kind}", f"{count:,}") for kind, count in info.problems.items()]
    return [Table(("", ""), tuple((name, value) for name, value in facts if value), n_texts=2)]


def _topic_blocks(view: TopicView, order: Sequence[int]) -> list[Block]:
    blocks: list[Block] = []
    titles, words, finer = view.topic_titles, view.topic_words(N_WORDS), view.finer_topics(N_WORDS)
    typical, labels = view.typical_documents(N_QUOTES), view.corpus.label_numbers
    main = np.bincount(view.doc_topic.argmax(axis=1), minlength=len(titles))
    for place, topic in enumerate(order, start=1):
        share, documents = view.fitted.topic_weights[topic], pluralize(int(main[topic]), "document")
        blocks.append(Heading(f"{place}. {titles[topic]}", 2))
        blocks.append(Paragraph(f"Share {share:.1%}; main topic of {documents}. Words: {', '.join(words[topic])}."))
        shares = view.typical.shares[topic]
        known = [i for i in largest(shares, len(shares)) if shares[i] >= _MIN_SHARE and labels.names[i]]
        if known:
            listed = ", ".join(f"{labels.names[i]} {shares[i]:.0%}" for i in known)
            blocks.append(Paragraph(f"Labels of its documents: {listed}."))
        if topic in view.junk:
            blocks.append(Paragraph(f"May not describe a subject: {view.junk[topic].reason}."))
        blocks += [Quote(document.quote, document.title) for document in typical[topic] if document.quote]
        if finer[topic]:
            blocks.append(Paragraph(f"Finer topics: {'; '.join(child.name for child in finer[topic])}."))
    return blocks


def _group_blocks(view: TopicView, titles: Sequence[str]) -> list[Block]:
    """Return a table of the most frequent labels with their main topics; nothing if there are no labels."""
    members: dict[str, list[int]] = {}
    for row, label in enumerate(view.corpus.labels):
        for name in filter(None, label.split(LABEL_SEPARATOR)):
            members.setdefault(name, []).append(row)
    if not members:
        return []
    frequent = sorted(members, key=lambda name: (-len(members[name]), name))
    rows = []
    for name in frequent[:_MAX_GROUPS]:
        shares, shown = _shares(view, np.array(members[name])), _MISSING
        if shares is not None:
            best = [topic for topic in largest(shares, _GROUP_TOPICS) if shares[topic] >= _MIN_GROUP_SHARE]
            shown = "; ".join(f"{titles[topic]} {shares[topic]:.0%}" for topic in best)
        rows.append((name, shown, f"{len(members[name]):,}"))
    more = len(frequent) - len(rows)
    note = f" {pluralize(more, 'other label')} with fewer documents {'is' if more == 1 else 'are'} not shown."
    return [
        Heading("Labels"),
        Paragraph(f"The largest topics of the documents of each label, by share.{note if more else ''}"),
        Table(("label", "topics", "documents"), tuple(rows), n_texts=2),
    ]


def _time_blocks(view: TopicView, order: Sequence[int], names: Sequence[str]) -> list[Block]:
    """Return a table of the shares of the largest topics over time; nothing if there are no dates."""
    times = view.corpus.column("time")
    found = periods(times) if any(times) else None
    if found is None or len(found.names) < 2:
        return []
    rows = []
    for number, period in enumerate(found.names):
        members = np.flatnonzero(found.numbers == number)
        shares = _shares(view, members)
        cells = [_MISSING if shares is None else f"{shares[topic]:.1%}" for topic in order[:_TIME_TOPICS]]
        rows.append((period, f"{len(members):,}", *cells))
    undated = int(np.count_nonzero(found.numbers < 0))
    note = f" {pluralize(undated, 'document')} without a date {'is' if undated == 1 else 'are'} left out."
    return [
        Heading("Time"),
        Paragraph(
            f"Shares of the largest topics in the documents of each period; {_MISSING} is a period without documents."
            f"{note if undated else ''}"
        ),
        Table(("period", "documents", *names[:_TIME_TOPICS]), tuple(rows)),
    ]


def _shares(view: TopicView, rows: Any) -> Floats | None:
    """Return the shares of the topics in the words of some documents; None if they have no words."""
    weights = np.asarray(view.training.doc_weights[rows], dtype=np.float64)
    total = weights.sum()
    return np.asarray(weights @ np.asarray(view.doc_topic[rows], dtype=np.float64) / total) if total > 0 else None


def _chosen(view: TopicView, info: RunInfo) -> str:
    if view.finer is not None:
        return f"These are the topics of the level with {view.finer} topics, below {info.model.n_topics} topics."
    if info.selection is not None:
        return info.selection.reason
    return f"{pluralize(info.model.n_topics, 'topic')}: the number was given."


def _method_blocks(info: RunInfo) -> list[Block]:
    version = info.versions.get("polyseme", "")
    facts = [
        ("model", info.model.estimator),
        ("seed", str(info.model.random_state)),
        ("iterations", f"{info.iterations:,}{'' if info.converged else ', not converged'}" if info.iterations else ""),
        ("fitted", info.written),
        ("versions", ", ".join(f"{name} {number}" for name, number in info.versions.items())),
        ("edits after the fit", f"{len(info.edits):,}" if info.edits else ""),
        ("updates after the fit", f"{len(info.updates):,}" if info.updates else ""),
    ]
    reference = _REFERENCES.get(info.model.estimator)
    blocks: list[Block] = [
        Paragraph(
            "The polyseme developers. polyseme: probabilistic latent semantic analysis and related topic models. "
            f"Version {version} [computer software]."
        )
    ]
    if reference:
        blocks.append(Paragraph(reference))
    blocks.append(Table(("", ""), tuple((name, value) for name, value in facts if value), n_texts=2))
    if info.command:
        blocks.append(Paragraph(shlex.join(info.command), is_code=True))
    return blocks


def _plain(text: str) -> str:
    """Return a text on one line, with control characters in escaped form, which no format can contain."""
    return UNSAFE.sub(escape_character, " ".join(text.split(" ")).replace("\n", " ").replace("\t", " "))


# Markdown

_MARKUP = re.compile(r"([\\`*_\[\]<>|#~&$!])")
_LINE_START = re.compile(r"^(\s*)([-+=]|\d+(?=[.)]))")


def _markdown(blocks: Sequence[Block]) -> bytes:
    return ("\n\n".join(map(_markdown_block, blocks)) + "\n").encode()


def _markdown_block(block: Block) -> str:
    if isinstance(block, Heading):
        return f"{'#' * (block.level + 1)} {_escape_markdown(block.text, start=False)}"
    if isinstance(block, Paragraph):
        return f"    {_plain(block.text)}" if block.is_code else _escape_markdown(block.text)
    if isinstance(block, Quote):
        return f"> {_escape_markdown(block.text)}\n>\n> — {_escape_markdown(block.title, start=False)}"
    if isinstance(block, Bars):
        block = _bar_table(block)
    rule = ["---"] * block.n_texts + ["---:"] * (len(block.header) - block.n_texts)
    rows = [[_escape_markdown(cell, start=False) for cell in row] for row in (block.header, *block.rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (rows[0], rule, *rows[1:]))


def _escape_markdown(text: str, *, start: bool = True) -> str:
    """Return a text that Markdown shows as it is. start : whether it is at the start of a line."""
    escaped = _MARKUP.sub(r"\\\1", _plain(text).strip())
    return _LINE_START.sub(_escape_start, escaped) if start else escaped


def _escape_start(match: re.Match[str]) -> str:
    """Escape the beginning of a list: a dash, or the mark after a number."""
    return f"{match[1]}\\{match[2]}" if not match[2].isdigit() else f"{match[1]}&#{ord(match[2][0])};{match[2][1:]}"


def _bar_table(bars: Bars) -> Table:
    """Return a chart as a table with bars of block characters."""
    longest = max(bars.shares, default=1.0) or 1.0
    drawn = ["█" * max(1, round(_BAR_LENGTH * share / longest)) for share in bars.shares]
    shown = (f"{share:.1%}" for share in bars.shares)
    return Table(("topic", "", "share"), tuple(zip(bars.names, drawn, shown, strict=True)), n_texts=2)


# HTML

_STYLE = """
body { font: 16px/1.55 Georgia, serif; color: #23221f; max-width: 46rem; margin: 2.5rem auto; padding: 0 1.25rem; }
h1, h2, h3 { line-height: 1.25; overflow-wrap: anywhere; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid #e5e1d9; padding-bottom: 0.3rem; }
h3 { margin: 1.8rem 0 0.4rem; }
p, td { overflow-wrap: anywhere; }
blockquote { margin: 0.8rem 0; padding: 0 0 0 1rem; border-left: 3px solid #c9d5e8; }
blockquote p { margin: 0; } cite { color: #66625b; font-size: 0.9rem; font-style: normal; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.92rem; margin: 1rem 0; }
th, td { text-align: left; vertical-align: top; padding: 0.25rem 1.2rem 0.25rem 0; border-bottom: 1px solid #e5e1d9; }
th { color: #66625b; font-weight: normal; }
.number { text-align: right; font-variant-numeric: tabular-nums; } td.number { white-space: nowrap; }
pre { background: #f1eee8; padding: 0.7rem 1rem; white-space: pre-wrap; overflow-wrap: anywhere; font-size: 0.85rem; }
svg { width: 100%; height: auto; font: 13px system-ui, sans-serif; } svg rect { fill: #3566b8; }
svg text { fill: #23221f; }
"""
_SVG_WIDTH, _SVG_LABELS, _SVG_ROW = 720, 290, 24


def _html(blocks: Sequence[Block]) -> bytes:
    title = next(_plain(block.text) for block in blocks if isinstance(block, Heading))
    policy = f"default-src 'none'; style-src '{digest(_STYLE)}'; base-uri 'none'; form-action 'none'"
    head = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
    )
    return (head + "\n".join(map(_html_block, blocks)) + "\n</body>\n</html>\n").encode()


def _html_block(block: Block) -> str:
    if isinstance(block, Heading):
        return f"<h{block.level + 1}>{_escape_html(block.text)}</h{block.level + 1}>"
    if isinstance(block, Paragraph):
        text = _escape_html(block.text)
        return f"<pre>{text}</pre>" if block.is_code else f"<p>{text}</p>"
    if isinstance(block, Quote):
        return f"<blockquote><p>{_escape_html(block.text)}</p><cite>{_escape_html(block.title)}</cite></blockquote>"
    if isinstance(block, Bars):
        return _svg(block)
    rows = [
        "".join(_html_cell("td", cell, place >= block.n_texts) for place, cell in enumerate(row)) for row in block.rows
    ]
    if any(block.header):
        rows.insert(
            0, "".join(_html_cell("th", cell, place >= block.n_texts) for place, cell in enumerate(block.header))
        )
    return f'<div class="wide"><table>{"".join(f"<tr>{row}</tr>" for row in rows)}</table></div>'


def _html_cell(tag: str, text: str, is_number: bool) -> str:
    kind = ' class="number"' if is_number else ""
    return f"<{tag}{kind}>{_escape_html(text)}</{tag}>"


def _svg(bars: Bars) -> str:
    """Return a bar chart, with the names of the bars before them and the shares behind them."""
    longest = max(bars.shares, default=1.0) or 1.0
    scale = (_SVG_WIDTH - _SVG_LABELS - 70) / longest
    parts = []
    for place, (name, share) in enumerate(zip(bars.names, bars.shares, strict=True)):
        y, width = place * _SVG_ROW, max(1.0, share * scale)
        parts.append(
            f'<text x="{_SVG_LABELS - 8}" y="{y + 16}" text-anchor="end">{_escape_html(name)}</text>'
            f'<rect x="{_SVG_LABELS}" y="{y + 4}" width="{width:.1f}" height="{_SVG_ROW - 8}"></rect>'
            f'<text x="{_SVG_LABELS + width + 6:.1f}" y="{y + 16}">{share:.1%}</text>'
        )
    height = _SVG_ROW * len(parts)
    return (
        f'<svg viewBox="0 0 {_SVG_WIDTH} {height}" role="img" aria-label="Shares of the topics">{"".join(parts)}</svg>'
    )


def _escape_html(text: str) -> str:
    return html.escape(_plain(text))


# Word

_WORD_WIDTH = 15.2
"""Width of the text of a page in centimeters."""
_LONGEST_COLUMN = 50
"""Characters of a cell beyond which its column does not become wider."""


def _docx() -> Any:
    """Return the package python-docx, or raise MissingExtraError."""
    try:
        import docx
    except ModuleNotFoundError:
        raise MissingExtraError("A report in .docx", "report") from None
    return docx


def _word(blocks: Sequence[Block]) -> bytes:
    docx = _docx()
    document = docx.Document()
    title = next(block.text for block in blocks if isinstance(block, Heading))
    document.core_properties.title, document.core_properties.author = _plain(title)[:255], "polyseme"
    for block in blocks:
        if isinstance(block, Heading):
            document.add_heading(_plain(block.text), block.level)
        elif isinstance(block, Quote):
            quote = document.add_paragraph(_plain(block.text), style="Quote")
            quote.paragraph_format.space_after, quote.paragraph_format.keep_with_next = 0, True
            for paragraph in (quote, document.add_paragraph(f"— {_plain(block.title)}")):
                paragraph.paragraph_format.left_indent = docx.shared.Cm(1)
        elif isinstance(block, Bars):
            picture = _picture(block)
            if picture is None:
                _add_table(docx, document, _bar_table(block))
            else:
                document.add_picture(picture, width=docx.shared.Cm(_WORD_WIDTH))
        elif isinstance(block, Table):
            _add_table(docx, document, block)
        elif block.is_code:
            document.add_paragraph().add_run(_plain(block.text)).font.name = "Courier New"
        else:
            document.add_paragraph(_plain(block.text))
    content = io.BytesIO()
    document.save(content)
    return content.getvalue()


def _add_table(docx: Any, document: Any, block: Table) -> None:
    """Add a table to a Word document."""
    rows = [block.header, *block.rows] if any(block.header) else list(block.rows)
    table = document.add_table(len(rows), len(block.header), style="Light List Accent 1" if any(block.header) else None)
    lengths = [min(max(map(len, column)), _LONGEST_COLUMN) + 4 for column in zip(*rows, strict=True)]
    table.autofit = False
    for column, length in zip(table.columns, lengths, strict=True):
        column.width = docx.shared.Cm(_WORD_WIDTH * length / sum(lengths))
    for cells, row in zip(table.rows, rows, strict=True):
        for place, (cell, text) in enumerate(zip(cells.cells, row, strict=True)):
            cell.width = table.columns[place].width
            cell.paragraphs[0].add_run(_plain(text)).font.size = docx.shared.Pt(9)
            cell.paragraphs[0].paragraph_format.space_after = 0
            if place >= block.n_texts:
                cell.paragraphs[0].alignment = docx.enum.text.WD_ALIGN_PARAGRAPH.RIGHT
    document.add_paragraph()


def _picture(bars: Bars) -> io.BytesIO | None:
    """Return a bar chart as PNG; None without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        return None
    figure = Figure(figsize=(7, 0.6 + 0.28 * len(bars.names)), layout="constrained")
    axes = figure.subplots()
    names = [_plain(name).replace("$", r"\$") for name in bars.names]
    drawn = axes.barh(range(len(names)), bars.shares, color="#3566b8")
    axes.bar_label(drawn, [f"{share:.1%}" for share in bars.shares], padding=3, fontsize=8)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.invert_yaxis()
    axes.xaxis.set_visible(False)
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.margins(x=0.12)
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=200)
    content.seek(0)
    return content


_FORMATS: dict[str, Callable[[Sequence[Block]], bytes]] = {".docx": _word, ".html": _html, ".md": _markdown}
"""Functions that render a report, by the end of the name of the file."""
