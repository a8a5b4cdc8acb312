"""Cases: search, selection, metrics, pages, model files, the command line."""

from __future__ import annotations

import base64
import csv
import gzip
import io
import json
import os
import re
import sys
from functools import cache, partial
from importlib import import_module
from importlib.metadata import distribution
from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from comparison import data
from comparison.estimators import settings
from comparison.names import (
    call,
    datasets,
    explore,
    metrics,
    page,
    page_data,
    polyseme,
    priors,
    retrieval,
    selection,
    solvers,
    text,
    topics,
)
from comparison.registry import add, case
from comparison.values import Message


def counted_texts() -> tuple[Any, Any]:
    """Return counts of the texts, and the vectorizer."""
    vectorizer = text.Vectorizer(language="english", n_jobs=1)
    return vectorizer.fit_transform(data.texts()[0]), vectorizer


@cache
def fitted_texts() -> tuple[Any, Any, Any]:
    """Return a model of the texts, their counts, and the vectorizer."""
    counts, vectorizer = counted_texts()
    words = vectorizer.get_feature_names_out()
    model = polyseme.PLSA(**settings(n_components=3)).fit(counts, feature_names=words)
    return model, counts, vectorizer


# search

QUERIES = ["apples and trees", "sailors loading grain", "butter", "wind of autumn"]
RECIPES: dict[str, dict[str, Any]] = {
    **{method: {"method": method} for method in ("tf", "tfidf", "bm25", "lsi", "plsi-u", "plsi-q", "plsi*")},
    **{
        f"{method}-{term}": {"method": method, "term": term, "term_weight": 0.3}
        for method, term in product(("lsi", "plsi-u", "plsi-q", "plsi*"), ("tf", "tfidf", "bm25"))
    },
    "latent-only": {"method": "plsi-q", "term_weight": 0.0},
}


@cache
def index() -> Any:
    """Return an index with everything that a recipe needs."""
    model, counts, vectorizer = fitted_texts()
    built = retrieval.SearchIndex(
        counts,
        list(vectorizer.get_feature_names_out()),
        ids=[f"d{row}" for row in range(counts.shape[0])],
        titles=[f"Title {row}" for row in range(counts.shape[0])],
        vectorizer=vectorizer,
    )
    return call(built.fit_lsi(5).fit_models((3, 4), random_state=0, n_jobs=1), "set_model", model)


def search(_: Path, **recipe: Any) -> Any:
    found = index()
    return {
        "scores": found.scores(QUERIES, **recipe),
        "search": [result.to_dict() for result in found.search_many(QUERIES, 5, **recipe)],
        "similar": call(found, "similar_documents", "d7", 5, **recipe).to_dict(),
    }


for name, recipe in RECIPES.items():
    add(f"search/recipes/{name}", partial(search, **recipe))


@case("search/index")
def search_index(folder: Path) -> Any:
    found = index()
    found.save(folder / "index")
    loaded = retrieval.SearchIndex.load(folder / "index", vectorizer=fitted_texts()[2])
    return {
        "topic_documents": [[hit.to_dict() for hit in call(found, "topic_documents", topic, 4)] for topic in range(3)],
        "related_words": call(found, "related_words", "apples", 6),
        "senses": found.senses("autumn"),
        "loaded": loaded.scores(QUERIES),
        "tf-lsi": retrieval.SearchIndex(found.counts, found.vocabulary)
        .fit_lsi(4, weighting="tf")
        .scores(found.counts[:3], method="lsi"),
    }


def judged(_: Path, method: str) -> Any:
    queries = {str(number): query for number, query in enumerate(QUERIES)}
    themes = ("orchard", "harbor", "kitchen", "harbor")
    judgments = {
        str(number): {f"d{row}": int(label == theme) for row, label in enumerate(data.texts()[1])}
        for number, theme in enumerate(themes)
    }
    return retrieval.evaluate_search(index(), queries, judgments, method=method)


for method in ("tfidf", "bm25", "lsi", "plsi-u", "plsi-q", "plsi*"):
    add(f"search/evaluation/{method}", partial(judged, method=method))

# selection


def chosen(_: Path, **options: Any) -> Any:
    counts = data.more_counts()[:150, :120]
    found = selection.select_n_topics(counts, (2, 4, 8), n_jobs=1, **options)
    return {
        "chosen": found.chosen_to_predict if hasattr(found, "chosen_to_predict") else found.chosen,
        "best": found.best,
        "rows": found.rows,
        "unigram": found.unigram_perplexity,
        "reason": Message(found.reason),
    }


add("selection/n_topics/default", chosen)
add("selection/n_topics/given", partial(chosen, n_folds=3, folds_run=3, refine=False, random_state=1))
add(
    "selection/n_topics/lda",
    lambda folder: chosen(folder, estimator=polyseme.LDA(max_iter=8, random_state=0), folds_run=1, refine=False),
)

VALIDATED = {
    "plsa": lambda: polyseme.PLSA(**settings()),
    "plsa-background": lambda: polyseme.PLSA(**settings(background=0.2, doc_topic_prior=1.1)),
    "lda": lambda: polyseme.LDA(**settings(max_iter=8)),
    "nmf": lambda: polyseme.NMF(**settings()),
}


def validated(_: Path, make: Any, **options: Any) -> Any:
    found = selection.cross_validate(make(), data.counts(), n_folds=3, **options)
    return {
        "perplexity": found.perplexity,
        "error": found.standard_error,
        "unigram": found.unigram_perplexity,
        "folds": found.fold_perplexities,
        "ratio": found.predicted_ratio,
    }


for (name, make), by in product(VALIDATED.items(), ("documents", "words", "entries")):
    add(f"selection/cross-validation/{name}/{by}", partial(validated, make=make, by=by))


@case("selection/masked")
def masked(_: Path) -> Any:
    hidden = np.random.default_rng(0).random(data.counts().shape) < 0.2
    weights = polyseme.losses.HiddenEntries(hidden)
    found = {}
    for loss in ("kullback-leibler", "squared"):
        fit = polyseme.NMF(**settings(n_components=3, max_iter=30, loss=loss)).fit(data.counts(), entry_weight=weights)
        found |= {f"{loss}-doc_factor": fit.doc_factor_, f"{loss}-components": fit.components_}
        found |= {f"{loss}-history": fit.history_, f"{loss}-transform": fit.transform(data.counts(), weights)}
    return found


@case("selection/suggestions")
def suggestions(_: Path) -> Any:
    counts = data.more_counts()
    many = polyseme.PLSA(**settings(n_components=14, max_iter=60)).fit(counts)
    few = polyseme.PLSA(**settings(n_components=2, max_iter=60)).fit(counts)
    return {
        "merges": selection.suggest_merges(many, max_divergence=0.6),
        "splits": selection.suggest_splits(few, counts, n_jobs=1, min_gain=0.0),
    }


# metrics


@case("metrics/evaluate")
def evaluated(_: Path) -> Any:
    model, counts, vectorizer = fitted_texts()
    texts, labels = data.texts()
    return {
        "documents": metrics.evaluate(model, counts, labels).to_dict(),
        "windows": metrics.evaluate(model, counts, texts=vectorizer.sequences(texts), n_words=5).to_dict(),
        "lda": metrics.evaluate(polyseme.LDA(**settings()).fit(counts), counts, labels).to_dict(),
    }


@case("metrics/functions")
def metric_functions(_: Path) -> Any:
    model, counts, vectorizer = fitted_texts()
    _, labels = data.texts()
    components, weights = model.components_, model.doc_topic_
    top = metrics.top_words(components, 8)
    half = [model.perplexity_report(counts[:30]), model.perplexity_report(counts[30:])]
    apart = metrics.distinctive_words(counts, labels)
    distinct_labels, scores = apart.labels, apart.scores
    return {
        "agreement": metrics.label_agreement(weights, labels),
        "hard_labels": metrics.hard_labels(weights),
        "coherence": {name: metrics.coherence(top, counts, name) for name in ("umass", "uci", "npmi", "c_v")},
        "sequences": metrics.coherence(top, vectorizer.sequences(data.texts()[0]), "npmi", window=5),
        "distances": {
            name: metrics.distances(components, metric=name) for name in ("hellinger", "symmetric-kl", "cosine")
        },
        "word_topics": topics.word_topics(components, model.topic_weights_),
        "diversity": metrics.topic_diversity(top),
        "redundancy": topics.topic_redundancy(top),
        "exclusivity": metrics.exclusivity(components),
        "frex": metrics.frex(components),
        "fit_report": topics.fit_report(weights, model.doc_weights_),
        "topic_fit": metrics.topic_fit(weights, model.topic_doc_),
        "effective_topics": topics.effective_topics(weights),
        "top_words": metrics.top_words(model, 6),
        "relevance": metrics.relevance(
            model.word_documents_, model.topic_documents_, model.document_frequency_, total=60.0
        ),
        "pooled": type(half[0]).pool(half) if hasattr(half[0], "pool") else metrics.pool_reports(half),
        "distinctive": [list(map(str, distinct_labels)), scores],
    }


@case("metrics/stability")
def stabilities(_: Path) -> Any:
    model, counts, _ = fitted_texts()
    runs = [polyseme.PLSA(**settings(n_components=3, random_state=seed)).fit(counts).components_ for seed in (1, 2)]
    return {
        "stability": metrics.stability(model.components_, runs),
        "bootstrap": metrics.bootstrap_stability(model, counts, n_samples=2),
    }


# pages

BLOCK = re.compile(r'<script type="application/octet-stream" id="(\w+)">([^<]*)</script>')


def page_sections(page: str) -> dict[str, Any]:
    """Return the data of an explorer page: the JSON values and the bytes of the arrays of every section."""
    sections: dict[str, Any] = {}
    for name, block in BLOCK.findall(page):
        content = gzip.decompress(base64.b64decode(block))
        start = 4 + int.from_bytes(content[:4], "little")
        header = json.loads(content[4:start])
        for place in header.get("values", {}).get("facts", {}):
            if re.search("second|version|time|date|written", place):
                header["values"]["facts"][place] = None
        sections[name] = {"header": header, "arrays": content[start:]}
    if "core" not in sections:
        raise ValueError("the page has no section 'core'")
    return sections


PAGES = {
    "plsa": lambda: polyseme.PLSA(**settings(n_components=3)),
    "background": lambda: polyseme.PLSA(**settings(n_components=3, background=0.2)),
    "tempered": lambda: polyseme.PLSA(**settings(n_components=3, solver=solvers.Tempered(0.8))),
    "sparse": lambda: polyseme.PLSA(**settings(n_components=3, doc_topic_prior=priors.Entropic(1.0))),
    "lda": lambda: polyseme.LDA(**settings(n_components=3)),
    "nmf": lambda: polyseme.NMF(**settings(n_components=3)),
    "tree": lambda: polyseme.HierarchicalPLSA(branching=2, random_state=0, max_iter=20),
    "correlated": lambda: polyseme.CorrelatedTopicModel(3, random_state=0, max_iter=8),
}


def page_of_model(_: Path, make: Any, **options: Any) -> Any:
    counts, vectorizer = counted_texts()
    texts, labels = data.texts()
    model = make().fit(counts)
    described = page_data.page_data(
        model,
        counts,
        vectorizer=vectorizer,
        titles=[f"Title {row}" for row in range(60)],
        labels=labels,
        times=[f"{1990 + row % 7}-03-01" for row in range(60)],
        texts=texts,
    )
    return page_sections(page.render_page(described, **options))


for name, make in PAGES.items():
    add(f"pages/models/{name}", partial(page_of_model, make=make))
for kind in ("full", "none"):
    add(f"pages/texts/{kind}", partial(page_of_model, make=PAGES["plsa"], text=kind))


@case("pages/scikit-learn")
def page_of_other(_: Path) -> Any:
    from sklearn.decomposition import LatentDirichletAllocation

    counts, vectorizer = counted_texts()
    model = LatentDirichletAllocation(3, random_state=0, max_iter=5).fit(counts)
    if hasattr(import_module("polyseme.explore"), "from_sklearn"):  # an older build
        data = explore.from_sklearn(model, counts, vectorizer)
    else:
        data = page_data.page_data(model, counts, vectorizer=vectorizer)
    return page_sections(page.render_page(data))


@case("pages/pyldavis")
def pyldavis(_: Path) -> Any:
    model, counts, vectorizer = fitted_texts()
    return explore.pyldavis_arguments(model, counts, list(vectorizer.get_feature_names_out()))


# data sets and model files


@case("datasets/synthetic")
def synthetic(_: Path) -> Any:
    found = {}
    for model in ("lda", "plsa"):
        corpus = datasets.synthetic_corpus(50, n_topics=3, n_words=40, length=20, model=model, random_state=1)
        found[model] = [corpus.topic_word, corpus.words, corpus.counts(), corpus.doc_topic()]
    return found


SAVED = {
    **PAGES,
    "stream": lambda: polyseme.PLSA(**settings(solver=solvers.StepwiseEM(batch_size=9))),
    "squared": lambda: polyseme.NMF(**settings(loss="squared")),
    "map": lambda: polyseme.LDA(**settings(solver="map")),
    "tensor": lambda: polyseme.TensorPLSA(**settings()),
    "lsa": lambda: polyseme.LSA(4),
    "early-stopping": lambda: polyseme.PLSA(**settings(early_stopping=solvers.EarlyStopping(patience=2))),
    "grown": lambda: polyseme.HierarchicalPLSA(branching=2, growth=solvers.TreeGrowth(5), random_state=0, max_iter=9),
    "joint": lambda: polyseme.PLSA(**settings(background=polyseme.JointBackground(0.2))),
}


def saved(folder: Path, make: Any) -> Any:
    make().fit(data.counts()).save(folder / "model.safetensors")
    loaded = polyseme.load(folder / "model.safetensors")
    return loaded, loaded.transform(data.new_documents())


for name, make in SAVED.items():
    add(f"files/models/{name}", partial(saved, make=make))

# the command line

ENVIRONMENT = {"COLUMNS": "120", "TERM": "dumb", "NO_COLOR": "1"}


def command(*arguments: str, stdin: str = "") -> str:
    """Return the output of a command, which runs in this process and folder, because starting Python is slow."""
    main = distribution("polyseme").entry_points.select(group="console_scripts", name="polyseme")["polyseme"].load()
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    errors = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    given = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
    streams = {"stdout": output, "stderr": errors, "stdin": given, "argv": ["polyseme", *arguments]}
    code: Any = 0
    with mock.patch.multiple(sys, **streams), mock.patch.dict(os.environ, ENVIRONMENT):
        try:
            code = main()
        except SystemExit as end:
            code = end.code
    if code:
        lines = _written(errors).strip().splitlines()
        raise RuntimeError(f"polyseme {' '.join(arguments)} ended with {code}: {' '.join(lines[-2:])}")
    return _written(output)


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    return stream.buffer.getvalue().decode()  # type: ignore[attr-defined]


def printed(output: str) -> dict[str, Any]:
    """Return the numbers in a text, without times, and the text as a message."""
    plain = re.sub(r"\d+(\.\d+)? ?(s|ms|seconds?|minutes?|min)\b|\d+:\d\d(:\d\d)?", "TIME", output)
    plain = "\n".join(line.rstrip() for line in plain.splitlines())
    return {"numbers": re.findall(r"\d[\d,.]*", plain), "text": Message(plain)}


def write_texts(folder: Path) -> None:
    """Write docs.csv with the first 48 texts, and new.csv with the rest."""
    texts, labels = data.texts()
    for name, rows in (("docs.csv", range(48)), ("new.csv", range(48, 60))):
        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["id", "body", "theme", "day"])
            writer.writerows([f"d{row}", texts[row], labels[row], f"{1990 + row % 7}-03-01"] for row in rows)


COLUMNS = ("--text", "body", "--id", "id", "--label", "theme", "--time", "day")
AFTER_FIT: dict[str, tuple[str, ...]] = {
    "topics": ("topics", "run", "--json"),
    "search": ("search", "run", "apples", "and", "winds", "--json"),
    "search-bm25": ("search", "run", "apples", "--method", "bm25", "--json"),
    "similar": ("search", "run", "d7", "--like", "--json"),
    "transform": ("transform", "run", "new.csv", *COLUMNS, "--json"),
    "evaluate": ("evaluate", "run", "--json"),
    "evaluate-new": ("evaluate", "run", "new.csv", *COLUMNS, "--windows", "--json"),
}


def parsed(output: str) -> Any:
    """Return JSON or lines of JSON as values."""
    try:
        return json.loads(output)
    except json.JSONDecodeError:
        return [json.loads(line) for line in output.splitlines()]


def run_folder(folder: Path) -> dict[str, Any]:
    """Return the results in a run folder."""
    return {
        "model": polyseme.load(folder / "model.safetensors"),
        "topics": list(csv.reader(io.StringIO((folder / "topics.csv").read_text(encoding="utf-8")))),
        "page": page_sections((folder / "explorer.html").read_text(encoding="utf-8")),
    }


def fit_and_ask(folder: Path, *options: str) -> Any:
    write_texts(folder)
    shown = printed(command("fit", "docs.csv", "-o", "run", "-q", *COLUMNS, *options))
    answers = {name: parsed(command(*arguments)) for name, arguments in AFTER_FIT.items()}
    return {"fit": shown, "run": run_folder(folder / "run"), **answers}


add("commands/fit/k=3", lambda folder: fit_and_ask(folder, "-k", "3"))
add("commands/fit/shards", lambda folder: fit_and_ask(folder, "-k", "3", "--shards"))


@case("commands/fit/chosen")
def fit_chosen(folder: Path) -> Any:
    write_texts(folder)
    shown = printed(command("fit", "docs.csv", "-o", "run", "--phrases", "--background", "0.2", *COLUMNS))
    return {"fit": shown, "run": run_folder(folder / "run"), "table": printed(command("topics", "run"))}


@case("commands/changes")
def change_run(folder: Path) -> Any:
    write_texts(folder)
    command("fit", "docs.csv", "-o", "run", "-q", "-k", "4", *COLUMNS)
    command("fit", "docs.csv", "-o", "other", "-q", "-k", "3", "--seed", "1", *COLUMNS)
    found: dict[str, Any] = {"compare": parsed(command("compare", "run", "other", "--json"))}
    command("update", "run", "new.csv", *COLUMNS, "-q")
    found["updated"] = run_folder(folder / "run")
    command("edit", "run", "--merge", "0,1", "--rename", "2=Second", "--ban", "wind", "--refit", "-q")
    found["edited"] = run_folder(folder / "run")
    command("update", "run", "new.csv", "--id", "day", "--text", "body", "--refit", "-q")
    return found | {"refined": run_folder(folder / "run")}


@case("commands/select")
def select_command(folder: Path) -> Any:
    write_texts(folder)
    return parsed(command("select", "docs.csv", "-k", "2,3", "--no-refine", "--json", "-q", *COLUMNS))


@case("commands/lines")
def lines_command(folder: Path) -> Any:
    lines = "\n".join(data.texts()[0])
    command("fit", "-", "-k", "3", "-o", "run", "-q", "--language", "english", stdin=lines)
    return run_folder(folder / "run")
