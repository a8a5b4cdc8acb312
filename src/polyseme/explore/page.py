"""The explorer page: one HTML file that needs no server and no network.

The data is stored as base64 in inert script elements, and a content security policy allows only the script and the
style of the page, so that no text of a corpus can run as code. The data has sections, which the page loads one by one:
JSON values, and typed arrays that are sparse, quantized and compressed. The rules of a vectorizer are plain data, with
which the page counts the words of new texts as Python does.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import sys
import unicodedata
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt
from sklearn.feature_extraction.text import CountVectorizer

from polyseme.core.dirichlet import with_posterior
from polyseme.core.fold_in import MaximumLikelihood
from polyseme.errors import InputError
from polyseme.explore.bundle import bundle
from polyseme.explore.page_data import PageData, page_data, run_page_data
from polyseme.io.files import write_output
from polyseme.kernels import Array, Floats, single_threaded_blas
from polyseme.layout.document_map import DocumentMap
from polyseme.metrics import coherence, distances, top_words
from polyseme.metrics.topics import classical_scaling, topic_fit
from polyseme.metrics.words import DECIMALS, LEAST_AMOUNT, RELEVANCE, WordAmounts
from polyseme.retrieval import postings
from polyseme.runs import Run
from polyseme.runs.documents import EXCERPT_LENGTH, excerpt
from polyseme.runs.periods import periods
from polyseme.runs.typical import MIN_RELATIVE_LENGTH, PRIOR
from polyseme.runs.view import TopicView
from polyseme.text.languages import Language, get_language, language_token_rules, scikit_learn_token_rules
from polyseme.text.sentences import shortened
from polyseme.text.tokens import Characters, TokenRules
from polyseme.text.vectorizer import Vectorizer
from polyseme.uncertainty.groups import SIGNIFICANT
from polyseme.uncertainty.intervals import Intervals


@overload
def write_page(
    model: Any, path: None = None, text: str = "auto", *, height: int | None = None, **arguments: Any
) -> NotebookPage: ...
@overload
def write_page(model: Any, path: str | PathLike[str], text: str = "auto", **arguments: Any) -> Path: ...
def write_page(
    model: Any,
    path: str | PathLike[str] | None = None,
    text: str = "auto",
    *,
    height: int | None = None,
    **arguments: Any,
) -> Path | NotebookPage:
    """Write the explorer page of a fitted model, a run or PageData to an HTML file, or show it in a notebook.

    The file is written atomically. It always contains the word counts of the documents.

    Parameters
    ----------
    model : estimator, Run or PageData
        What the page shows. An estimator is a fitted model of polyseme, a LatentDirichletAllocation, NMF or
        MiniBatchNMF of scikit-learn, or an LdaModel of gensim.
    path : str, PathLike or None, default=None
        File to write. None: nothing is written, and the page is returned for display in a notebook.
    text : {"auto", "full", "excerpt", "none"}, default="auto"
        How much of each document's text the page contains: "auto" is "full" if all texts have less than 5 MB, else
        "excerpt". "none" also leaves out the quotes of typical documents.
    height : int or None, default=None
        Height of the frame in a notebook in pixels. None: 800.
    **arguments : object
        For an estimator: ``counts`` that it was fitted to, or of other documents with the same words (for gensim, lists
        of a word's number and its count); ``vocabulary`` or ``vectorizer``, the word of each column (with a vectorizer
        the page counts new texts by its rules); ``ids``, ``titles``, ``labels`` (or lists of labels), ``times`` and
        ``texts`` of the documents; ``title`` of the page. For a run: ``intervals`` as in `Run.explore`.

    Returns
    -------
    Path or NotebookPage
        The file, or the page.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import PLSA
    >>> from polyseme.explore import write_page
    >>> X, words = np.array([[4, 3, 0], [5, 2, 1], [0, 1, 6]]), ["wine", "bread", "guitar"]
    >>> model = PLSA(2, random_state=0).fit(X)
    >>> file = write_page(model, "topics.html", counts=X, vocabulary=words)
    >>> page = write_page(model, counts=X, vocabulary=words, height=600)  # a notebook shows it
    """
    if path is None:
        return NotebookPage(render_page(model, text, **arguments), 800 if height is None else height)
    if height is not None:
        raise InputError("height= is that of the frame in a notebook: leave it out, or leave path= out.")
    write_output(path, render_page(model, text, **arguments).encode("utf-8", "replace"))
    return Path(path)


def render_page(model: Any, text: str = "auto", **arguments: Any) -> str:
    """Return the HTML of the page that `write_page` writes."""
    if isinstance(model, Run | TopicView) and not arguments.keys() - {"intervals"}:
        # The full texts of a run are read only if the page contains them.
        data = run_page_data(model, most_bytes={"full": None, "auto": MAX_FULL_TEXT}.get(text, 0), **arguments)
    else:
        data = page_data(model, **arguments)
    first, *others = (_block(name, section) for name, section in summarize(data, text).items())
    script, style = _script(), _asset("style.css")
    policy = (
        f"default-src 'none'; script-src '{digest(script)}'; style-src '{digest(style)}'; img-src data: blob:; "
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


def _block(name: str, section: Section) -> str:
    """Return the script element of a section; base64 has no character that could end the element."""
    packed = pack_section(section.values, section.arrays)
    return f'<script type="application/octet-stream" id="{name}">{base64.b64encode(packed).decode()}</script>'


@cache
def _asset(name: str) -> str:
    return files("polyseme.explore").joinpath("assets", name).read_text(encoding="utf-8")


@cache
def _script() -> str:
    return bundle("app.js", _asset)


def digest(content: str) -> str:
    """Return the source expression of a content security policy that allows exactly this script or style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


FORMAT_VERSION = 1
TEXTS = ("auto", "full", "excerpt", "none")
MAX_FULL_TEXT = 5_000_000
"""Bytes of the texts that a page contains by default."""
MAX_EXCERPTS, MIN_EXCERPT = 20_000_000, 100
"""Characters of the excerpts of a page, which are shorter if there are many, and the least characters of one."""
MAX_LABELS = 200
CANDIDATES, LAMBDAS = 30, 21
"""Words of a topic that the page shows, and steps of its slider for lambda."""
DOCUMENTS_SHOWN = 10
"""Documents of each topic that the page lists."""
_CHUNK_CHARACTERS = 400_000


@dataclass(frozen=True)
class Section:
    """Part of the page that is loaded at once."""

    values: dict[str, Any]
    arrays: dict[str, Array]


def summarize(data: PageData, text: str = "auto") -> dict[str, Section]:
    """Return the sections of a page.

    core : topics, words and facts about the fit; everything that the first view shows.
    documents : names, labels, times and P(z|d). counts : all counts. rules : how texts are split into words.
    level40, ... : P(z|d) of finer levels, with the number of topics.
    intervals : shares of labels and periods with intervals, if they were computed.
    texts0, texts1, ... : the texts in chunks; core has the number of the first document of each chunk.
    """
    if text not in TEXTS:
        raise InputError(f"text must be one of {', '.join(map(repr, TEXTS))}, got {text!r}.")
    text, note = _chosen_text(data, text)
    texts = _texts(data, text)
    firsts = _chunks(texts)
    sections = {
        "core": _core(data, text, note, firsts),
        "documents": _documents(data, quotes=text != "none"),
        "counts": Section({}, pack_counts(data.counts)),
        "rules": Section(*word_rules(data.vectorizer)),
        "map": _map(data.document_map),
    }
    if (intervals := _intervals(data)) is not None:
        sections["intervals"] = intervals
    for weights in data.level_weights:
        arrays = {**pack_level_weights(weights), "main_topics": _main_topics(data, weights)}
        sections[f"level{weights.shape[1]}"] = Section({}, arrays)
    for number, (start, end) in enumerate(pairwise([*firsts, len(texts)])):
        sections[f"texts{number}"] = Section({"texts": texts[start:end]}, {})
    return sections


def _core(data: PageData, text: str, note: str, firsts: list[int]) -> Section:
    view = data.fitted.symmetric_view(data.documents)
    with single_threaded_blas():
        between = distances(data.topic_word)
    measures = {"coherence": coherence(top_words(data.word_documents), data.counts).topics, **data.measures}
    inference, inference_arrays = _inference(data)
    explained = data.explained
    n_docs, n_words = data.counts.shape
    values = {
        "format": FORMAT_VERSION,
        "title": data.title,
        "model": data.model_name,
        "n_documents": n_docs,
        "n_words": n_words,
        "n_topics": data.fitted.n_topics,
        "n_tokens": float(data.tokens.sum()),
        "log_step": LOG_STEP,
        "shares": SHARE_STEPS,
        "level_shares": LEVEL_STEPS,
        "words": data.vocabulary,
        "relevance": RELEVANCE,
        "search": {
            "weight": postings.WEIGHT,
            "feedback": postings.FEEDBACK,
            "pool": postings.POOL,
            "leading": postings.LEADING,
            "typical": postings.TYPICAL,
            "k1": postings.K1,
            "b": postings.B,
        },
        "least_documents": LEAST_AMOUNT - 0.5 * 10**-DECIMALS,  # rounded as in top_words
        "typical": {"prior": PRIOR, "length": MIN_RELATIVE_LENGTH},
        "topic_names": {str(topic): str(name) for topic, name in data.topic_names.items()},
        "hidden": [int(column) for column in data.hidden],
        "measures": {name: _json_numbers(values) for name, values in measures.items()},
        "text": text,
        "text_note": note,
        "text_starts": firsts,
        "history": {name: _json_numbers(values) for name, values in data.history.items()},
        "facts": {name: _json_value(value) for name, value in data.facts.items()},
        "explained": {
            "total": _json_value(explained.total),
            "dispersion": _json_value(explained.median_dispersion),
            "least_tokens": explained.least_tokens,
            "documents": [[row, float(explained.documents[row])] for row in explained.worst_documents().tolist()],
        },
        "selection": [dict(row) for row in data.selection],
        "selection_reason": data.selection_reason,
        "chosen": data.chosen_size,
        "tree": [dict(node) for node in data.tree],
        "finer": [[dict(topic) for topic in topics] for topics in data.finer] if any(data.finer) else [],
        "inference": inference,
        "junk": {str(topic): reason for topic, reason in data.junk.items()},
        "hidden_topics": sorted(data.hidden_topics),
        "editing": None if data.editing is None else asdict(data.editing),
        "colors": list(data.document_map.colors),
        "intervals": data.comparison is not None or data.timeline is not None,
    }
    arrays = {
        "weights": view.topic_weights,
        "fit": topic_fit(data.doc_topic, view.topic_doc),
        "places": classical_scaling(between).astype(np.float32),
        "distances": between.astype(np.float32),
        "word_totals": np.asarray(data.counts.sum(axis=0), dtype=np.float64).ravel(),
        **pack_topics(data.topic_word),
        **_candidates(data.word_documents),
        **inference_arrays,
    }
    return Section(values, {name: np.ascontiguousarray(array).ravel() for name, array in arrays.items()})


def _map(found: DocumentMap) -> Section:
    arrays: dict[str, Array] = {"places": found.places.ravel()}
    if found.documents is not None:
        arrays["documents"] = found.documents.astype(np.uint32)
    return Section({"names": [asdict(name) for name in found.names]}, arrays)


def _intervals(data: PageData) -> Section | None:
    """Return shares with intervals by label and by period; periods without documents have NaN."""
    values: dict[str, Any] = {}
    arrays: dict[str, Array] = {}
    if (found := data.comparison) is not None:
        values["labels"] = [str(name) for name in found.groups.names]
        values["label_documents"] = [int(n) for n in found.groups.documents]
        arrays |= _ends("label", found.groups.shares)
        arrays["differences"], arrays["q_values"] = found.differences.estimate, found.differences.q_values
    if (timeline := data.timeline) is not None:
        values["periods"], values["period_documents"] = timeline.periods, [int(n) for n in timeline.documents]
        arrays |= _ends("period", timeline.shares)
    if not values:
        return None
    values["significant"] = SIGNIFICANT
    return Section(values, {name: np.asarray(array, dtype=np.float32).ravel() for name, array in arrays.items()})


def _ends(name: str, shares: Intervals) -> dict[str, Array]:
    return {f"{name}_shares": shares.estimate, f"{name}_low": shares.low, f"{name}_high": shares.high}


def _inference(data: PageData) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return how the page folds in new texts (folding.js): JSON values and arrays."""
    inference, background = with_posterior(data.fitted).inference, data.fitted.inference.background
    note, arrays = _INFERENCES[inference.kind](inference)
    if background is not None:
        arrays["background"] = np.asarray(background.word_probabilities, dtype=np.float64)
    inactive = np.flatnonzero(~data.fitted.active)
    if inactive.size:
        arrays["inactive"] = inactive.astype(np.uint32)
    values = {
        "kind": inference.kind if inference.is_likelihood else MaximumLikelihood.kind,
        "temperature": data.fitted.inference.temperature,
        "background": 0.0 if background is None else background.share,
        "note": data.folding_note or note,
    }
    return values, arrays


def _likelihood(inference: Any) -> tuple[str, dict[str, Array]]:
    """Return a note about what the page leaves out when it folds in by likelihood."""
    if inference.prior is not None:
        return "New texts are folded in without the model's prior on documents.", {}
    joint = inference.background is not None and inference.background.joint
    return "New texts are folded in with the same share of the background for every text." if joint else "", {}


def _dirichlet(inference: Any) -> tuple[str, dict[str, Array]]:
    """Return alpha, and the sums of lambda over the words."""
    totals = np.asarray(inference.topic_word.sum(axis=1, dtype=np.float64))
    return "", {"alpha": np.asarray(inference.alpha, dtype=np.float64), "totals": totals}


def _posterior(inference: Any) -> tuple[str, dict[str, Array]]:
    """Return the parameters of the learned prior."""
    return "", {"alpha": np.asarray(inference.alpha, dtype=np.float64)}


def _logistic_normal(inference: Any) -> tuple[str, dict[str, Array]]:
    """Return mean and precision of the prior of eta."""
    return "", {"mean": inference.prior.mean, "precision": inference.prior.precision}


def _mixture(inference: Any) -> tuple[str, dict[str, Array]]:
    """Return P(z)."""
    return "", {"topic_shares": np.asarray(inference.topic_shares, dtype=np.float64)}


def _loss(inference: Any) -> tuple[str, dict[str, Array]]:
    """Return a note that the page folds in by likelihood."""
    return f"New texts are folded in by likelihood, not by the model's loss ({inference.loss.name}).", {}


_INFERENCES = {
    "likelihood": _likelihood, "posterior": _posterior, "dirichlet": _dirichlet, "logistic-normal": _logistic_normal,
    "mixture": _mixture, "loss": _loss,
}  # fmt: skip
"""Functions by the kind of inference, which return a note on how the page differs from it, and the arrays it needs."""


def _candidates(amounts: WordAmounts) -> dict[str, Array]:
    """Return the words of each topic that rank high for some lambda of the slider, with their numbers of documents."""
    topics: list[Array] = []
    lambdas = np.linspace(0, 1, LAMBDAS)
    at_lambda = [top_words(amounts, CANDIDATES, relevance=value) for value in lambdas]
    for topic, row in enumerate(amounts.topic_word):
        candidates = np.unique(np.concatenate([words[topic] for words in at_lambda]))
        topics.append(candidates[row[candidates] > 0])
    numbers = np.repeat(np.arange(len(topics)), [len(words) for words in topics])
    words = np.concatenate(topics)
    return {
        "topic_documents": amounts.topics,
        "candidates_of_topic": encode_varints(np.array([len(candidates) for candidates in topics])),
        "candidate_words": words.astype(np.uint32),
        "candidate_documents": np.asarray(amounts.amounts)[numbers, words].astype(np.float32),
        "candidate_frequency": amounts.words[words].astype(np.float32),
    }


def _documents(data: PageData, *, quotes: bool) -> Section:
    n_docs = data.counts.shape[0]
    ids = data.ids or [str(number) for number in range(n_docs)]
    titles = data.titles or ids
    values: dict[str, Any] = {"titles": [title or name for title, name in zip(titles, ids, strict=True)]}
    if data.ids is not None and values["titles"] != data.ids:
        values["ids"] = data.ids
    shown = data.topic_documents(DOCUMENTS_SHOWN)
    if quotes and (found := data.document_quotes(shown)) is not None:
        values["quotes"] = [quote for of_topic in found for quote in of_topic]
    arrays = {
        **pack_weights(data.doc_topic),
        "main_topics": _main_topics(data, data.doc_topic),
        "typical_of_topic": encode_varints(np.array([len(rows) for rows in shown.documents])),
        "typical_documents": np.array([row for rows in shown.documents for row in rows], dtype=np.uint32),
        "typical_nats": np.array([nats for row in shown.scores for nats in row], dtype=np.float32),
    }
    copies = np.arange(0) if data.groups is None else np.flatnonzero(data.groups < np.arange(n_docs))
    if data.groups is not None and len(copies):
        arrays["copies"], arrays["firsts"] = copies.astype(np.uint32), data.groups[copies].astype(np.uint32)
    if data.labels is not None:
        values["labels"], arrays["labels_of_document"], arrays["document_labels"] = _labels(data.labels)
    by_time = None if data.times is None else periods(data.times)
    if by_time is not None:
        values["periods"] = by_time.names
        values["times"] = [None if time is None else str(time) for time in data.times or ()]
        arrays["document_periods"] = by_time.numbers
    return Section(values, arrays)


def _main_topics(data: PageData, doc_topic: Array) -> Array:
    """Return the main topic of each document; the number of topics for documents without words."""
    n_topics = doc_topic.shape[1]
    main = np.where(data.tokens > 0, np.asarray(doc_topic).argmax(axis=1), n_topics)
    return main.astype(np.uint8 if n_topics < 256 else np.uint16)


def _labels(labels: list[list[str]]) -> tuple[list[str], Array, Array]:
    """Return the most frequent labels, sorted; how many of them each document has; and which ones, by number."""
    tally: dict[str, int] = {}
    for names in labels:
        for name in dict.fromkeys(names):
            tally[name] = tally.get(name, 0) + 1
    frequent = sorted(tally, key=lambda name: (-tally[name], name))[:MAX_LABELS]
    number_of = {name: number for number, name in enumerate(sorted(frequent))}
    rows = [[number_of[name] for name in dict.fromkeys(names) if name in number_of] for names in labels]
    sizes = np.array([len(row) for row in rows], dtype=np.int32)
    return sorted(frequent), sizes, np.array([number for row in rows for number in row], dtype=np.int32)


def _chosen_text(data: PageData, text: str) -> tuple[str, str]:
    """Return how much of the texts the page contains, and the reason if "auto" means excerpts."""
    if text != "auto" or (data.texts is None and not data.text_bytes):
        return "excerpt" if text == "auto" else text, ""
    size = data.text_bytes or sum(len(full.encode("utf-8", "surrogatepass")) for full in data.texts or ())
    if size < MAX_FULL_TEXT:
        return "full", ""
    how = "polyseme explore RUN --text full" if data.text_bytes else 'write_page(..., text="full")'
    return "excerpt", f"Excerpt: these documents have {size / 1e6:.0f} MB of text; {how} shows all of it."


def _texts(data: PageData, text: str) -> list[str]:
    if text == "none":
        return []
    if text == "full":
        if data.texts is None:
            raise InputError("text='full': there are no full texts; give texts=, or use text='excerpt'.")
        return data.texts
    excerpts = data.excerpts if data.excerpts is not None else [excerpt(full) for full in data.texts or ()]
    width = MAX_EXCERPTS // max(len(excerpts), 1)
    return excerpts if width >= EXCERPT_LENGTH else [shortened(found, max(width, MIN_EXCERPT)) for found in excerpts]


def _chunks(texts: list[str]) -> list[int]:
    """Return the number of the first document of each chunk of texts."""
    firsts, size = [], _CHUNK_CHARACTERS
    for number, text in enumerate(texts):
        if size >= _CHUNK_CHARACTERS:
            firsts.append(number)
            size = 0
        size += len(text) + 1
    return firsts


def _json_numbers(values: Any) -> list[float | None]:
    """Return floats for JSON, with None for NaN and infinity, which JSON cannot represent."""
    array = np.asarray(values, dtype=np.float64).ravel()
    return [float(f"{value:.7g}") if np.isfinite(value) else None for value in array]


def _json_value(value: Any) -> Any:
    """Return a value for JSON; NaN and infinity become None."""
    if isinstance(value, bool | str) or value is None:
        return value
    number = float(value)
    return (int(number) if number.is_integer() else number) if np.isfinite(number) else None


# compact arrays

Bytes = npt.NDArray[np.uint8]

LOG_STEP = 4e-4
"""Step of quantized logarithms; the relative error of a probability is at most 0.02 percent."""
MIN_RELATIVE_PROBABILITY = 1e-6
"""P(w|z) is left out if it is smaller than this times the largest P(w|z) of the word.

At the optimal weights of a document with n tokens every word has q_w >= max_z P(w|z) / n, because the derivatives of
the log-likelihood are at most n. Leaving these values out changes q_w by a relative error of at most n 1e-6."""
SHARE_STEPS, LEVEL_STEPS = 65535, 1000
"""Number of steps in which P(z|d) is stored: of the page's topics, and of finer levels."""
_MIN_CODE = 2
"""Smaller codes are stored as zero."""
_TYPES = {
    "uint8": "Uint8Array", "uint16": "Uint16Array", "uint32": "Uint32Array", "int32": "Int32Array",
    "float32": "Float32Array", "float64": "Float64Array",
}  # fmt: skip
"""Typed arrays of JavaScript by the NumPy type."""


def encode_varints(values: Array) -> Bytes:
    """Encode non-negative integers, seven bits per byte, low bits first; the high bit says that more bytes follow."""
    numbers = np.ascontiguousarray(values, dtype=np.uint64)
    lengths = np.ones(numbers.size, dtype=np.int64)
    for bits in range(7, 64, 7):
        lengths += numbers >= np.uint64(1) << np.uint64(bits)
    ends = np.cumsum(lengths)
    packed = np.zeros(int(ends[-1]) if ends.size else 0, dtype=np.uint8)
    starts = ends - lengths
    for place in range(int(lengths.max()) if lengths.size else 0):
        here = lengths > place
        byte = (numbers[here] >> np.uint64(7 * place)) & np.uint64(0x7F)
        more = (lengths[here] > place + 1).astype(np.uint64) << np.uint64(7)
        packed[starts[here] + place] = (byte | more).astype(np.uint8)
    return packed


def pack_counts(counts: Any) -> dict[str, Array]:
    """Encode counts (documents x words, CSR) by word: number of documents, gaps between their rows, and counts."""
    by_word = counts.tocsc()
    by_word.sort_indices()
    gaps = np.diff(by_word.indices.astype(np.int64), prepend=-1)
    starts = by_word.indptr[:-1][np.diff(by_word.indptr) > 0]
    gaps[starts] = by_word.indices[starts] + 1
    arrays = {"documents_of": encode_varints(np.diff(by_word.indptr)), "gaps": encode_varints(gaps - 1)}
    only_integers = by_word.data.size == 0 or bool((by_word.data == np.floor(by_word.data)).all())
    if only_integers:
        return arrays | {"counts": encode_varints(by_word.data)}
    return arrays | {"amounts": by_word.data.astype(np.float32)}


def pack_topics(topic_word: Floats) -> dict[str, Array]:
    """Encode P(w|z) by word: number of topics, the topics, and -log P(w|z) in steps of LOG_STEP."""
    by_word = np.ascontiguousarray(topic_word.T)
    stored = (by_word > 0) & (by_word >= MIN_RELATIVE_PROBABILITY * by_word.max(axis=1, keepdims=True))
    codes = np.round(-np.log(np.maximum(by_word[stored], 1e-300)) / LOG_STEP)
    return {
        "topics_of_word": encode_varints(stored.sum(axis=1)),
        "word_topics": np.nonzero(stored)[1].astype(_topic_type(topic_word.shape[0])),
        "word_logs": np.minimum(codes, 65535).astype(np.uint16),
    }


def pack_weights(doc_topic: Array) -> dict[str, Array]:
    """Encode P(z|d) by document: number of topics, the topics, and P(z|d) in steps of 1 / SHARE_STEPS."""
    codes = np.round(np.asarray(doc_topic, dtype=np.float64) * SHARE_STEPS).astype(np.uint16)
    stored = codes >= _MIN_CODE
    return {
        "topics_of_document": encode_varints(stored.sum(axis=1)),
        "document_topics": np.nonzero(stored)[1].astype(_topic_type(doc_topic.shape[1])),
        "document_shares": codes[stored],
    }


def pack_level_weights(doc_topic: Array) -> dict[str, Array]:
    """Encode P(z|d) of a finer level as pack_weights does, but in steps of 1 / LEVEL_STEPS, as varints.

    The shares of a document are rounded so that the sum of the first ones is the nearest number of steps to what it
    is: every share is within a step, and the sum does not change.
    """
    steps = np.cumsum(doc_topic, axis=1, dtype=np.float64)
    steps *= LEVEL_STEPS
    codes = np.diff(np.rint(steps, out=steps), axis=1, prepend=0)
    stored = codes > 0
    return {
        "topics_of_document": encode_varints(stored.sum(axis=1)),
        "document_topics": np.nonzero(stored)[1].astype(_topic_type(doc_topic.shape[1])),
        "level_shares": encode_varints(codes[stored]),
    }


def pack_section(values: dict[str, Any], arrays: dict[str, Array]) -> bytes:
    """Encode a section of the page with gzip: the length of a JSON header, the header, and the arrays it lists."""
    table, offset = {}, 0
    for name, array in arrays.items():
        table[name] = [_TYPES[array.dtype.name], offset, int(array.size)]
        offset += -(-array.nbytes // 8) * 8
    header = json.dumps({"values": values, "arrays": table}, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "replace"  # a lone surrogate becomes a question mark
    )  # fmt: skip
    header += b" " * (-(len(header) + 4) % 8)
    pieces = [len(header).to_bytes(4, "little"), header]
    for array in arrays.values():
        content = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
        pieces += [content, bytes(-len(content) % 8)]
    return gzip.compress(b"".join(pieces), 6, mtime=0)


def _topic_type(n_topics: int) -> type[np.unsignedinteger[Any]]:
    return np.uint8 if n_topics <= 256 else np.uint16


# rules of a vectorizer

_KIND_SHIFT = 24


def word_rules(vectorizer: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the rules as JSON values and arrays. `reason` says why the page cannot apply them; "" if it can.

    Without a vectorizer, or with a reason, texts are split as in scikit-learn's CountVectorizer, and the words are
    looked up in the vocabulary, as in `SearchIndex`.
    """
    reason = "" if vectorizer is None else _unsupported(vectorizer)
    if vectorizer is None or reason:
        vectorizer = CountVectorizer()
    language = _language(vectorizer)
    splitting = _token_rules(vectorizer)
    forms, named = _forms(vectorizer)
    values = {
        "reason": reason,
        "lowercase": bool(vectorizer.lowercase),
        "accents": vectorizer.strip_accents or "",
        "marks": (
            [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.combining(chr(code))]
            if vectorizer.strip_accents == "unicode"
            else []
        ),
        "language": "" if language is None else language.name,
        "normal": language is not None,
        "dotless": language is not None and language.code == "tr",
        "apostrophes": language is not None and "'" in language.joiners,
        "binary": bool(vectorizer.binary),
        "runs": [int(size) for size in vectorizer.ngram_range],
        "stops": sorted(splitting.stops),
        "phrases": [[list(pair) for pair in pairs] for pairs in getattr(vectorizer, "phrases_", [])],
        "forms": forms,
        "names": named,
        "shortest": splitting.characters.min_length,
    }
    return values, _kinds(splitting.characters)


def _language(vectorizer: CountVectorizer) -> Language | None:
    name = getattr(vectorizer, "language_", None)
    return None if name is None else get_language(name)


def _token_rules(vectorizer: CountVectorizer) -> TokenRules:
    language = _language(vectorizer)
    return scikit_learn_token_rules(vectorizer) if language is None else language_token_rules(vectorizer, language)


def _unsupported(vectorizer: Any) -> str:
    """Return why the page cannot count texts as this vectorizer does; "" if it can."""
    if not isinstance(vectorizer, CountVectorizer):
        return f"The words were counted with {type(vectorizer).__name__}, which only runs in Python."
    if callable(vectorizer.analyzer):
        return "The texts were split into words by an analyzer written in Python."
    if vectorizer.tokenizer is not None:
        return "The texts were split into words by a tokenizer written in Python."
    if vectorizer.preprocessor is not None:
        return "The texts were prepared by a preprocessor written in Python."
    if vectorizer.analyzer != "word":
        return "The counts are of parts of words, not of words."
    if callable(vectorizer.strip_accents):
        return "The accents were removed by a function written in Python."
    if isinstance(vectorizer, Vectorizer) and vectorizer.language is not None and _language(vectorizer) is None:
        return "The vectorizer is not fitted, so its language is not known."
    if _token_rules(vectorizer).words is not None:
        return "The texts were split into words by a pattern that needs Python's regular expressions."
    return ""


def _forms(vectorizer: Any) -> tuple[list[str], list[str]]:
    """Return the forms that are counted as another word, and these words; other forms are counted as themselves."""
    stem_of, shown = getattr(vectorizer, "forms_", {}), getattr(vectorizer, "shown_", {})
    pairs = sorted((form, shown[stem]) for form, stem in stem_of.items() if stem in shown and shown[stem] != form)
    return [form for form, _ in pairs], [name for _, name in pairs]


def _kinds(characters: Characters) -> dict[str, Array]:
    """Return the kind of every code point in run-length form: the start and the kind of each run."""
    kinds = (characters.table >> np.uint32(_KIND_SHIFT)).astype(np.uint8)
    starts = np.flatnonzero(np.diff(kinds, prepend=kinds[0] + 1))
    return {"kind_starts": starts.astype(np.uint32), "kinds": kinds[starts]}
