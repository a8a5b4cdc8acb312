"""Cases: corpora on disk and on Dask, checkpoints, text counting, readers."""

from __future__ import annotations

import bz2
import gzip
import json
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from comparison import data
from comparison.estimators import DTYPES, settings
from comparison.names import checkpoint, polyseme, priors, scale, solvers, text
from comparison.registry import Skip, add, case

# shards on disk

SHARD_FITS = {
    "auto": lambda: {},
    "em": lambda: {"solver": "em"},
    "accelerated-em": lambda: {"solver": "accelerated-em"},
    "tempered": lambda: {"solver": solvers.Tempered(0.8)},
    "online": lambda: {"solver": "online", "max_iter": 3},
    "scd": lambda: {"solver": "scd"},
    "background": lambda: {"background": 0.2, "doc_topic_prior": 1.1},
    "joint-background": lambda: {"background": polyseme.JointBackground(0.2)},
    "priors": lambda: {"doc_topic_prior": priors.Entropic(1.0), "topic_word_prior": priors.Decorrelation(0.3)},
    "selection": lambda: {"doc_topic_prior": priors.TopicSelection(0.1)},
    "n_init": lambda: {"solver": "accelerated-em", "n_init": 2},
    "threads": lambda: {"solver": "accelerated-em", "n_jobs": 2},
}


def shard_counts() -> Any:
    return data.more_counts()[:200, :80]


def shards(folder: Path) -> Any:
    """Write counts in about ten shards."""
    return scale.write_shards([shard_counts()], folder / "shards", shard_nonzeros=600)


def fit_shards(folder: Path, make: Any, dtype: str, **parameters: Any) -> Any:
    corpus = shards(folder)
    model = polyseme.PLSA(**settings(max_iter=9, dtype=dtype) | make() | parameters).fit(corpus)
    return model, model.transform(corpus), model.transform(shard_counts()[:20])


for (name, make), dtype in product(SHARD_FITS.items(), DTYPES):
    add(f"shards/fit/{name}/{dtype}", partial(fit_shards, make=make, dtype=dtype))

SHARD_MODELS = {
    "nmf": lambda: polyseme.NMF(**settings(solver="accelerated-em", max_iter=9)),
    "lda": lambda: polyseme.LDA(**settings(max_iter=9)),
    "lda-online": lambda: polyseme.LDA(**settings(solver="online", max_iter=3)),
    "lda-map": lambda: polyseme.LDA(**settings(solver="map", max_iter=9)),
    "tree": lambda: polyseme.HierarchicalPLSA(branching=2, random_state=0, max_iter=9, tol=0.0, n_jobs=1),
}


def fit_model_to_shards(folder: Path, make: Any) -> Any:
    corpus = shards(folder)
    model = make().fit(corpus)
    return model, model.transform(corpus)


for name, make in SHARD_MODELS.items():
    add(f"shards/models/{name}", partial(fit_model_to_shards, make=make))


@case("shards/text")
def shards_of_texts(folder: Path) -> Any:
    texts, _ = data.texts()
    corpus = scale.write_shards(
        texts, folder / "shards", vectorizer=text.Vectorizer(language="english"), shard_nonzeros=100
    )
    opened = scale.open_shards(folder / "shards")
    model = polyseme.PLSA(**settings(n_components=3, solver="accelerated-em", max_iter=9)).fit(opened)
    return np.array(corpus.shape), model, model.components_.shape[1]


@case("shards/partial_fit")
def shards_in_parts(folder: Path) -> Any:
    corpus = shards(folder)
    model = polyseme.PLSA(**settings())
    for part in corpus:
        model.partial_fit(part)
    return model, model.transform(corpus)


# fits that are killed and resumed


class Killed(Exception):
    """Ends a fit from its callback."""


def killed_at(iteration: int) -> Any:
    def callback(entry: Any) -> None:
        if entry["iteration"] == iteration:
            raise Killed

    return callback


def resume(folder: Path, **parameters: Any) -> Any:
    model = polyseme.PLSA(**settings(checkpoint=checkpoint(folder), callback=killed_at(9), **parameters))
    with suppress(Killed):
        model.fit(data.counts())
    seen: list[int] = []
    model.set_params(callback=lambda entry: seen.append(entry["iteration"])).fit(data.counts())
    return {"model": model, "iterations": seen}


CHECKPOINTS: dict[str, dict[str, Any]] = {
    "scd": {},
    "em": {"solver": "em", "topic_word_prior": 1.1},
    "accelerated-em": {"solver": "accelerated-em"},
    "background": {"background": 0.3},
    "tempered": {"solver": "tempered"},
    "online": {"solver": "online"},
    "plsi": {"solver": "plsi"},
    "n_init": {"n_init": 2},
}
for name, parameters in CHECKPOINTS.items():
    add(f"checkpoints/memory/{name}", partial(resume, **parameters))


def resume_shards(folder: Path, **parameters: Any) -> Any:
    corpus = shards(folder)
    stored = checkpoint(folder, shards=True)
    model = polyseme.PLSA(**settings(checkpoint=stored, callback=killed_at(12), **parameters))
    with suppress(Killed):
        model.fit(corpus)
    seen: list[int] = []
    model.set_params(callback=lambda entry: seen.append(entry["iteration"])).fit(corpus)
    assert seen[0] > 1
    return {"model": model, "iterations": seen}


for name in ("accelerated-em", "em", "online"):
    add(f"checkpoints/shards/{name}", partial(resume_shards, solver=name, max_iter=15))


# Dask


@contextmanager
def client(*, processes: bool = False) -> Iterator[Any]:
    """Start two Dask workers: threads of this process, or processes."""
    try:
        import distributed
    except ImportError:
        raise Skip("distributed is not installed") from None
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    cluster = distributed.LocalCluster(processes=processes, memory_limit=0, **options)
    with cluster, distributed.Client(cluster) as connected:
        yield connected


def fit_on_dask(folder: Path, *, processes: bool = False, **parameters: Any) -> Any:
    with client(processes=processes) as cluster:
        shards(folder)
        corpus = scale.open_shards((folder / "shards").resolve(), cluster=cluster)
        model = polyseme.PLSA(**settings(**{"max_iter": 6, **parameters})).fit(corpus)
        return model, model.transform(corpus)


DASK_FITS: dict[str, dict[str, Any]] = {
    "auto": {},
    "accelerated-em": {"solver": "accelerated-em"},
    "em": {"solver": "em", "dtype": "float32"},
    "background": {"background": 0.2, "doc_topic_prior": 1.1},
    "online": {"solver": "online", "max_iter": 2},
    "processes": {"processes": True, "solver": "accelerated-em"},
}
for name, parameters in DASK_FITS.items():
    add(f"dask/fit/{name}", partial(fit_on_dask, **parameters))


@case("dask/write")
def dask_shards(folder: Path) -> Any:
    with client() as cluster:
        import dask.array

        blocks = dask.array.from_array(shard_counts().toarray(), chunks=(50, -1))
        corpus = scale.write_dask_shards(blocks, (folder / "shards").resolve(), cluster=cluster)
        return polyseme.PLSA(**settings(solver="accelerated-em", max_iter=4)).fit(corpus)


# text counting

VECTORIZERS: dict[str, dict[str, Any]] = {
    "plain": {},
    "english": {"language": "english"},
    "no-stems": {"language": "english", "stem": False},
    "auto": {"language": "auto"},
    "phrases": {"phrases": True},
    "english-phrases": {"language": "english", "phrases": 0.2},
    "n-grams": {"ngram_range": (1, 3)},
    "characters": {"analyzer": "char_wb", "ngram_range": (2, 4)},
    "pattern": {"token_pattern": r"[a-z]{3,}"},
    "pruned": {"min_df": 3, "max_df": 0.6, "max_features": 30},
    "numbers": {"language": "english", "keep_numbers": True},
    "stop-words": {"stop_words": "english", "extra_stop_words": ["year", "apple"]},
    "stems-left-out": {"language": "english", "extra_stop_words": ["apples"]},
    "binary": {"binary": True, "dtype": np.float32},
    "accents": {"strip_accents": "unicode", "lowercase": False},
    "threads": {"language": "english", "n_jobs": 2},
}


def count_texts(_: Path, documents: Any, **parameters: Any) -> Any:
    vectorizer = text.Vectorizer(**{"n_jobs": 1, **parameters})
    texts = documents()
    counts = vectorizer.fit_transform(texts)
    again = text.Vectorizer.from_dict(json.loads(json.dumps(vectorizer.to_dict())), trust_pattern=True)
    single_words = "analyzer" not in parameters and "ngram_range" not in parameters
    sequences = vectorizer.sequences(texts) if single_words else None
    return {
        "counts": counts,
        "words": vectorizer.get_feature_names_out().tolist(),
        "vectorizer": vectorizer,
        "new": vectorizer.transform(["Apples and ships, San Francisco 1999", "", *list(data.LANGUAGES.values())]),
        "restored": again.transform(texts),
        "sequences": None if sequences is None else (sequences.tokens, sequences.indptr),
    }


def all_languages() -> list[str]:
    return [*data.LANGUAGES.values()] * 3


for name, parameters in VECTORIZERS.items():
    add(f"text/vectorizer/{name}", partial(count_texts, documents=lambda: data.texts()[0], **parameters))
    add(
        f"text/languages/{name}",
        partial(count_texts, documents=all_languages, **parameters | {"min_df": 1, "max_df": 1.0}),
    )
for language in data.LANGUAGES:
    add(
        f"text/languages/language={language}",
        partial(count_texts, documents=lambda language=language: [data.LANGUAGES[language]] * 3, language=language),
    )


@case("text/pipeline")
def pipeline(_: Path) -> Any:
    texts, _ = data.texts()
    joined = text.make_pipeline(text.Vectorizer(language="english"), polyseme.PLSA(**settings(n_components=3)))
    weights = joined.fit_transform(texts)
    return weights, joined[-1], list(joined[-1].topics()), joined.transform(["apples and pears"])


# readers

PAGE = (
    "<page><title>{title}</title><ns>0</ns><id>{number}</id><revision><id>9</id>"
    "<timestamp>2020-01-0{number}T00:00:00Z</timestamp><text>{text}</text></revision></page>"
)
WIKI = (
    '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/"><siteinfo><namespaces><namespace key="0" />'
    '<namespace key="14">Categoria</namespace></namespaces></siteinfo>'
    + PAGE.format(title="Gatto", number=1, text="Il '''gatto''' e [[Cane|cani]].{{x}}[[Categoria:Felini]]")
    + PAGE.format(title="Cane", number=2, text="== Titolo ==\n* Il cane&lt;ref&gt;no&lt;/ref&gt;.[[Categoria:Canini]]")
    + PAGE.format(title="Altro", number=3, text="#REDIRECT [[Gatto]]")
    + "</mediawiki>"
)
CSV = (
    'id,title,body,tag,day\n1,First,"Apples, ""ripe""\nand pears",fruit,2020-01-01\n'
    "2,Second,Ships,sea,2020-02-01\n3,,,,\n"
)
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
HTML = "<html><head><title>A page</title><script>x()</script></head><body><p>Apples &amp; pears</p></body></html>"
JSONL = '{"id": 1, "text": "Apples", "label": "fruit"}\n{"id": 2, "text": "Ships", "label": ["sea", "wind"]}\nno JSON\n'


def write_folder(folder: Path) -> None:
    """Write text files in two subfolders, which are their labels, one of them not in UTF-8."""
    texts, labels = data.texts()
    for number, (content, label) in enumerate(zip(texts[:12], labels, strict=False)):
        (folder / "texts" / label).mkdir(parents=True, exist_ok=True)
        (folder / "texts" / label / f"{number}.txt").write_text(content, encoding="utf-8")
    (folder / "texts" / "latin.txt").write_bytes(data.LANGUAGES["german"].encode("cp1252"))
    (folder / "texts" / "empty.txt").write_bytes(b"")
    with gzip.open(folder / "texts" / "packed.txt.gz", "wt", encoding="utf-8") as file:
        file.write("Packed apples")


def write_docx(folder: Path) -> None:
    body = "".join(f"<w:p><w:r><w:t>{line}</w:t></w:r></w:p>" for line in ("Apples and pears", "Ships"))
    with zipfile.ZipFile(folder / "a.docx", "w") as archive:
        archive.writestr("word/document.xml", f'<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>')


def write_parquet(folder: Path) -> None:
    import polars

    polars.DataFrame({"text": data.texts()[0][:8], "label": data.texts()[1][:8]}).write_parquet(folder / "a.parquet")


COLUMNS = {"text": "body", "title": "title", "label": "tag", "time": "day", "id": "id"}
READERS: dict[str, tuple[Any, str, dict[str, Any]]] = {
    # how the input is written, its name, and options of `read`
    "folder": (write_folder, "texts", {}),
    "sample": (write_folder, "texts", {"sample": 5, "random_state": 1}),
    "categories": (write_folder, "texts", {"categories": ["orchard"], "noise": 3}),
    "lines": (lambda folder: (folder / "a.txt").write_text("one apple\n\ntwo ships\n", encoding="utf-8"), "a.txt", {}),
    "csv": (lambda folder: (folder / "a.csv").write_text(CSV, encoding="utf-8"), "a.csv", COLUMNS),
    "tsv": (
        lambda folder: (folder / "a.tsv").write_text("text\ttag\nan apple\tx\n", encoding="utf-8"),
        "a.tsv",
        {"label": "tag"},
    ),
    "jsonl": (lambda folder: (folder / "a.jsonl").write_text(JSONL, encoding="utf-8"), "a.jsonl", {"label": "label"}),
    "jsonl-bz2": (lambda folder: (folder / "a.jsonl.bz2").write_bytes(bz2.compress(JSONL.encode())), "a.jsonl.bz2", {}),
    "parquet": (write_parquet, "a.parquet", {"text": "text", "label": "label"}),
    "wiki": (lambda folder: (folder / "a.xml").write_text(WIKI, encoding="utf-8"), "a.xml", {}),
    "wiki-bz2": (lambda folder: (folder / "a.xml.bz2").write_bytes(bz2.compress(WIKI.encode())), "a.xml.bz2", {}),
    "html": (lambda folder: (folder / "a.html").write_text(HTML, encoding="utf-8"), "a.html", {}),
    "docx": (write_docx, "a.docx", {}),
    "missing": (lambda folder: None, "nothing.csv", {}),
}


def read_documents(folder: Path, write: Any, name: str, options: dict[str, Any]) -> Any:
    write(folder)
    reader = text.read(folder / name, **options)
    documents = [(*document[:5],) for document in reader]
    dropped = sum(reader.dropped.values()) + sum(reader.problems.counts.values())
    return {"documents": documents, "dropped": dropped, "bytes": reader.bytes_read}


for name, (write, file, options) in READERS.items():
    add(f"text/readers/{name}", partial(read_documents, write=write, name=file, options=options))
