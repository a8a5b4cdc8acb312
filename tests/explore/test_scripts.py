"""The scripts of the page compute what Python computes: `node --test` on vectors that Python has written."""

import base64
import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer

from explorer_corpora import themed_page_data, themed_texts
from polyseme import LDA, PLSA, CorrelatedTopicModel, HierarchicalPLSA, InputError, MultinomialMixture, fit
from polyseme.core.fitted import DocumentWeights, WordDocuments, posterior_operands
from polyseme.core.shard import sparse_counts
from polyseme.explore.page import LEVEL_STEPS, encode_varints, pack_section, summarize, word_rules
from polyseme.explore.page_data import Editing, page_data, run_page_data
from polyseme.layout.document_map import DocumentMap, RegionName
from polyseme.layout.region_names import place_names
from polyseme.metrics import distances, distinctive_words, top_words
from polyseme.metrics.words import LEAST_AMOUNT, relevance
from polyseme.retrieval import SearchIndex
from polyseme.retrieval.snippets import QueryFinder, parse_query
from polyseme.runs.names import checked_name
from polyseme.runs.periods import periods
from polyseme.runs.typical import DocumentScorer
from polyseme.solvers import Tempered
from polyseme.text import Vectorizer

SCRIPTS = Path(__file__).parent / "scripts"
NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")

QUERIES = (
    "ship",
    "bank loan interest",
    "Baking bread, at sea: waves of violins",
    "orchestra zebra",
    "kneaded doughs rate",
    "flour anchor violin broker, a recipe for sails",
)
MODELS = {
    "plain": lambda: PLSA(4, random_state=0, tol=1e-4),
    "background": lambda: PLSA(4, random_state=0, background=0.3),
    "tempered": lambda: PLSA(4, random_state=0, solver=Tempered(0.8), max_iter=1000),
    "variational": lambda: LDA(4, random_state=0),
    "logistic-normal": lambda: CorrelatedTopicModel(4, random_state=0),
    "mixture": lambda: MultinomialMixture(4, random_state=0),
    "tree": lambda: HierarchicalPLSA(branching=2, random_state=0),
}


def run_node(name, vectors, tmp_path):
    """Run the tests of a script on vectors."""
    path = tmp_path / "vectors.json"
    path.write_text(json.dumps(vectors), encoding="utf-8")
    done = subprocess.run(
        [NODE, "--test", SCRIPTS / f"{name}.test.js"],
        env={**os.environ, "POLYSEME_VECTORS": str(path)}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def packed(section):
    return base64.b64encode(pack_section(*section)).decode()


def page_sections(data, *names):
    sections = summarize(data, "none")
    return {name: packed((sections[name].values, sections[name].arrays)) for name in names}


@pytest.fixture(scope="module")
def fitted():
    """Return each model with the data of its page."""
    return {name: (model := make(), themed_page_data(model)) for name, make in MODELS.items()}


def test_data(fitted, tmp_path):
    values = {"text": "é 😀", "list": [1, None, "x"], "empty": {}}
    types = {"uint8": [0, 255], "uint16": [65535], "uint32": [1, 2**32 - 1, 3], "int32": [-5, 7], "float32": [0.5]}
    arrays = {name: np.array(numbers, dtype=name) for name, numbers in (types | {"float64": [0.1, -1e300]}).items()}
    fractions = np.array([[0.5, 0, 2.25], [0, 1.5, 0], [3.0, 0, 0.125]])
    small = PLSA(2, random_state=0).fit(fractions)
    pages = {"whole numbers": fitted["plain"][1], "fractions": page_data(small, fractions, ["ab", "bc", "cd"])}
    numbers = [0, 1, 127, 128, 300, 2**14, 2**31]
    vectors = {
        "section": {
            "section": packed((values, arrays)),
            "values": values,
            "arrays": {name: [f"{name.capitalize()}Array", array.tolist()] for name, array in arrays.items()},
        },
        "varints": {"bytes": encode_varints(np.array(numbers)).tolist(), "numbers": numbers},
        "pages": {
            name: {
                **page_sections(data, "core", "documents", "counts"),
                "expected": {
                    "counts": data.counts.toarray().tolist(),
                    "doc_topic": data.doc_topic.tolist(),
                    "topic_word": data.topic_word.tolist(),
                },
            }
            for name, data in pages.items()
        },
    }
    run_node("data", vectors, tmp_path)


TONGUES = [
    "Don't stop: the baker's well-known bread — O’Neill’s, naïve café; x86_64 ﬁle state-of-the-art",
    "İstanbul'da IŞIK ve ılık; ΟΔΥΣΣΕΥΣ Σίσυφος ΣΑΣ ς Straße GROSSE ǅ",
    "我们在银行工作，银行在河边。東京タワーへ行きます。 한국어 텍스트 입니다 ภาษาไทยง่ายนิดเดียว",
    "हिन्दी में शब्द, বাংলা; ကမ္ဘာ العَرَبِيّة كتـــاب עִבְרִית don\u00adt zero\u200dwidth 𝒜𝓁𝓅𝒽𝒶 😀 ½ ① e\u0301te\u0301",
    "bank bank, loan rates of the bank. Bank loan; san francisco and new york city, new york city",
]
RULES = {
    "scikit-learn": CountVectorizer(),
    "defaults": Vectorizer(),
    "english": Vectorizer(language="english"),
    "no stems": Vectorizer(language="english", stem=False, stop_words=[]),
    "turkish": Vectorizer(language="turkish"),
    "other": Vectorizer(language="other"),
    "korean": Vectorizer(language="korean"),
    "runs of words": Vectorizer(ngram_range=(1, 3), stop_words="english"),
    "runs of stems": Vectorizer(language="english", ngram_range=(2, 2)),
    "phrases": Vectorizer(language="english", phrases=0.2),
    "letters": Vectorizer(token_pattern=r"\b[^\W\d_]{3,}\b", lowercase=False),
    "accents": Vectorizer(strip_accents="unicode"),
    "ascii": Vectorizer(strip_accents="ascii", binary=True),
}


def test_words(tmp_path):
    vectors = {}
    for name, vectorizer in RULES.items():
        vectorizer.fit(TONGUES * 12)  # phrases must occur ten times
        words = vectorizer.get_feature_names_out().tolist()
        texts = []
        for text in (*TONGUES, " ".join(TONGUES), ".".join(reversed(TONGUES)), ""):
            row = vectorizer.transform([text])
            texts.append([text, {words[j]: int(n) for j, n in zip(row.indices, row.data, strict=True)}])
        vectors[name] = {"rules": packed(word_rules(vectorizer)), "words": words, "texts": texts}
    run_node("words", vectors, tmp_path)


def folded(vectorizer, fold_in, texts):
    """Return the counts of texts with their topics."""
    rows = [vectorizer.transform([text]) for text in texts]
    return [
        {"words": row.indices.tolist(), "values": row.data.tolist(), "topics": fold_in(row)[0].tolist()} for row in rows
    ]


def test_folding(fitted, tmp_path):
    texts = themed_texts(12, seed=5)[0]
    vectors = {}

    def add(name, model, data, texts):
        def posterior(row):
            return model.fold_in(row, inference="posterior").doc_topic

        vectors[name] = {"texts": folded(data.vectorizer, posterior, texts), **page_sections(data, "core")}

    for name, (model, data) in fitted.items():
        add(name, model, data, (*texts, *QUERIES[1:]))
    for background in (0.0, 0.3):
        parts = themed_page_data(model := PLSA(4, random_state=0, background=background))
        model._fitted = replace(model._fitted, active=np.array([True, False, True, True]))
        data = page_data(model, parts.counts, vectorizer=parts.vectorizer)
        name = f"a topic that is off, background {background}"
        add(name, model, data, (" ".join(texts[:6]), " ".join(texts[6:])))  # a text without a known word gets P(z)
        assert all(text["topics"][1] < 1e-3 for text in vectors[name]["texts"])
    vectorizer = CountVectorizer(stop_words="english")
    counts = vectorizer.fit_transform(themed_texts()[0])
    lda = LatentDirichletAllocation(4, random_state=0, max_doc_update_iter=1000, mean_change_tol=1e-6).fit(counts)
    vectors["scikit-learn"] = {
        "texts": folded(vectorizer, lda.transform, QUERIES[:3]),
        **page_sections(page_data(lda, counts, vectorizer=vectorizer), "core"),
    }
    run_node("folding", vectors, tmp_path)


def answers(scores, hits, query):
    return {
        "query": query,
        "scores": scores.tolist(),
        "unknown": [{"word": found.word, "nearest": found.nearest} for found in hits.unknown],
        "hits": [
            {"row": hit.row, "score": hit.score, "words": [[reason.word, reason.weight] for reason in hit.words]}
            for hit in hits
        ],
    }


ASKED = (
    "harbour ships wind",
    "the loans of banks",
    "sai* -wind loans",
    "bank* flour NOT rat*",
    "laon wimd viloin zebra brocker* zeb*",
)


def test_search(fitted, tmp_path):
    """By the default method."""
    vectors = {}
    names = ("core", "documents", "counts", "rules")
    for name, (model, data) in fitted.items():
        index = SearchIndex(data.counts, data.vocabulary, vectorizer=data.vectorizer).set_model(model)
        queries = []
        for query in QUERIES:
            found = replace(index.search(query, n_documents=10), unknown=index.unknown_words(query))
            queries.append(answers(index.scores(query)[0], found, query))
        vectors[name] = {"queries": queries, **page_sections(data, *names)}
    options = {"language": "english", "min_df": 1, "max_df": 1.0, "page": False, "random_state": 0}
    run = fit(themed_texts()[0], 4, output=tmp_path / "run", **options)
    queries = []
    for query in (*QUERIES, *ASKED):
        scores = np.zeros(run.counts.shape[0])
        for hit in run.search(query, len(scores)):
            scores[hit.row] = hit.score
        queries.append(answers(scores, run.search(query, 10), query))
    assert [len(found["unknown"]) for found in queries[-3:]] == [0, 0, 6]
    assert [word["nearest"] != () for word in queries[-1]["unknown"]] == [True, True, True, False, True, False]
    vectors["a run"] = {"queries": queries, **page_sections(run_page_data(run), *names)}
    run_node("search", vectors, tmp_path)


QUOTED = (
    '"apple pears" on a hill',
    "«THE farmer’s   apples»",
    '"farmer\'s apples"',
    'orchard "pears" hill',
    '"new york" "bank loan"',
    "“银行”",
    '"C++ (draft)"',
    'apple "pears',
    '".." apple',
    "no phrase",
    'ap* -pear well-rea* NOT Hill* -5 k-means "a -b c*" not - ÉT* 银* NOT -snow',
    'apple - "pears"',
    "apple NOT",
    "-apple NOT pears",
    'apple -"pears"',
    'apple NOT "pears"',
)
FRUIT = [
    "Apple pears grow on a hill. The farmer's apples are red.",
    "On a hill there are apple\npears, and the orchard is near. The farmer’s  Apples are green.",
    "Pineapple pears, a hill, an orchard, farmer's applesauce. The pear's hill: C++ (draft).",
]


def test_query(tmp_path):
    vectors = []
    for query in QUOTED:
        try:
            asked = parse_query(query)
        except InputError:
            vectors.append({"query": query, "problem": True})
            continue
        finder = QueryFinder([], asked.phrases, CountVectorizer(vocabulary=["a"]))
        texts = [[text, finder.has_phrases(text)] for text in (*FRUIT, *TONGUES)]
        vectors.append({"query": query, "problem": False, "texts": texts, **asked._asdict()})
    assert sum(vector["problem"] for vector in vectors) == 6
    run_node("query", vectors, tmp_path)


def test_topics(fitted, tmp_path):
    model, data = fitted["plain"]
    labels = [names[0] for names in data.labels]
    data = replace(data, labels=[[label] for label in labels])
    vocabulary = data.vocabulary
    index = SearchIndex(data.counts, vocabulary, titles=data.titles).set_model(model)
    word = vocabulary.index("bank")
    senses, neighbors = index.senses("bank"), index.related_words("bank", 20)
    apart = distinctive_words(data.counts, labels)
    names, scores = apart.labels, apart.scores
    assert np.count_nonzero(scores > 0) > 20
    best = {name: np.argsort(-row, kind="stable") for name, row in zip(names, scores, strict=True)}
    vectors = {
        "page": page_sections(data, "core", "documents", "counts"),
        "relevance": [
            {
                "topic": topic,
                "lambda": value,
                "words": [
                    vocabulary[w]
                    for w in top_words(data.word_documents, 30, relevance=value)[topic]
                    if data.topic_word[topic, w] > 0
                ],
            }
            for topic in range(4)
            for value in (0, 0.35, 0.5, 1)
        ],
        "first": [[vocabulary[w] for w in words] for words in top_words(data.word_documents, 3)],
        "typical": data.topic_documents(10).documents,
        "likeliest": [
            {
                "document": d,
                "topics": [
                    [int(w), int((data.doc_topic[d] * data.topic_word[:, w]).argmax())]
                    for w in data.counts[[d]].indices
                ],
            }
            for d in (0, 4, 7)
        ],
        "senses": {
            "word": word,
            "topics": [sense.topic for sense in senses],
            "shares": [sense.share for sense in senses],
            "documents": [[data.titles.index(title) for _, title in sense.documents] for sense in senses],
            "neighbors": [neighbor.word for neighbor in neighbors],
            "weights": [neighbor.weight for neighbor in neighbors],
        },
        "labels": {
            name: [vocabulary[w] for w in best[name] if scores[names.index(name), w] > 0][:30] for name in names
        },
    }
    run_node("topics", vectors, tmp_path)


NAMES = (
    "Space",
    " a ",
    "",
    " ",
    "x" * 80,
    "x" * 81,
    "a\nb",
    "a\x1b[2J",
    "<b>",
    "a < b",
    "< img",
    "```",
    "é 😀",
    "\u2028",
)


def is_name(name):
    try:
        return checked_name(name) == name.strip()
    except ValueError:
        return False


def test_edits(fitted, tmp_path):
    """A page with merged topics shows what merging gives in Python; shares of documents are sums."""
    model, data = fitted["plain"]
    data = replace(data, editing=Editing("digest", None, True, True, False, ()))
    merged = model.with_edited_topics([[0], [1, 3], [2]], [], data.counts)
    groups = ([0], [1, 3], [2])
    weights, shares = (
        np.array([values[..., group].sum(axis=-1) for group in groups])
        for values in (data.topic_weights, np.asarray(data.doc_topic))
    )
    vectors = {
        "page": page_sections(data, "core", "documents", "counts"),
        "merged": {
            "topics": [0, 1, 2],
            "topic_word": merged.components_.tolist(),
            "weights": weights.tolist(),
            "doc_topic": shares.T.tolist(),
            "distances": distances(merged.components_)[1].tolist(),
        },
        "folded": folded(
            data.vectorizer,
            lambda row: merged.fold_in(row, inference="posterior").doc_topic,
            themed_texts(6, seed=5)[0],
        ),
        "names": [[name, is_name(name)] for name in NAMES],
    }
    run_node("edits", vectors, tmp_path)


def placed_names(names, side):
    """Return what the page has to show of the names of regions in a square window."""

    def on_screen(name):
        return side * name.x, side * name.y, side * name.radius

    found = place_names(names, on_screen, lambda text: 0.55 * len(text), side, side)
    assert found
    shown = [[one.name.level, one.name.topic, "\n".join(one.lines), one.rank, one.x, one.y, one.size] for one in found]
    return {"names": [vars(name) for name in names], "side": side, "shown": shown}


def test_map(fitted, tmp_path):
    _, data = fitted["plain"]
    n_documents, rng = data.counts.shape[0], np.random.default_rng(0)
    codes = rng.integers(0, 65536, size=(n_documents, 2)).astype(np.uint16)
    places = codes / 65535
    names = [RegionName(4, topic, topic, f"topic {topic} <b>", 0.25 * topic, 0.5, 0.1) for topic in range(4)]
    data = replace(data, map=DocumentMap(codes, names, [3, 1, 0, 2]))
    palette = rng.integers(0, 256, size=(4, 3))
    squares = data.doc_topic**2
    points = rng.random((40, 2))
    far = 0.08
    between = np.hypot(*(points[:, None] - places[None]).transpose(2, 0, 1))
    polygons = [rng.random((size, 2)) for size in (3, 4, 7)]
    binary = data.counts.toarray() > 0
    regions = [
        RegionName(level, topic, topic % 20, ", ".join(rng.choice(data.vocabulary, 3)), *rng.random(2), radius)
        for level, radius in ((20, 0.1), (40, 0.05), (90, 0.1)) for topic in range(level)
    ]  # fmt: skip
    vectors = {
        "page": page_sections(data, "core", "documents", "counts", "rules", "map"),
        "placed": [placed_names(regions[first:], side) for first in (0, 20, 60) for side in (400, 900, 1600)],
        "places": places.tolist(),
        "names": [vars(name) for name in names],
        "palette": palette.tolist(),
        "colors": (squares @ palette / squares.sum(axis=1, keepdims=True)).tolist(),
        "nearest": [
            {"x": x, "y": y, "far": far, "nearest": int(row.argmin()) if row.min() <= far else -1}
            for (x, y), row in zip(points.tolist(), between, strict=True)
        ],
        "polygons": [
            {"corners": corners.tolist(), "inside": np.flatnonzero(inside(corners, places)).tolist()}
            for corners in polygons
        ],
        "lit": [
            {"text": word, "documents": np.flatnonzero(binary[:, data.vocabulary.index(word)]).tolist()}
            for word in ("bank", "violin")
        ],
    }
    assert -1 in {case["nearest"] for case in vectors["nearest"]}
    run_node("map", vectors, tmp_path)


LEVEL = 6
"""Number of topics of the finer level."""
LEAST_SEEN = 1e-3
"""Smaller amounts may be left out, because the page stores P(z|d) in steps of 1/65535."""
FILTERS = (
    {"topic": "1"},
    {"topic": "6.4"},
    {"label": "music"},
    {"from": "2003", "to": "2009"},
    {"to": "2004", "label": "kitchen"},
    {"q": "bank"},
    {"q": '"bank rates" -money', "from": "2001"},
    {"topic": "2", "label": "money", "q": "loan* waves"},
    {"label": "nobody"},
    {"topic": "7.1"},
    {"from": "1066"},
)


def test_subset(fitted, tmp_path):
    """What the page shows of some documents is what Python computes from them with the topics fixed."""
    pages, cases = {}, []
    for name in ("plain", "background", "tempered"):
        model, data = fitted[name]
        finer = themed_page_data(PLSA(LEVEL, random_state=1))
        tops = (finer.topic_word @ data.topic_word.T).argmax(axis=1)
        nodes = [
            {"level": LEVEL, "topic": topic, "name": f"finer {topic}", "weight": float(finer.topic_weights[topic]),
             "parent_share": 0.5, "words": ["bread"], "children": []}
            for topic in range(LEVEL)
        ]  # fmt: skip
        tree = [[node for node, top in zip(nodes, tops, strict=True) if top == topic] for topic in range(4)]
        # shares that the page stores exactly; test_page.py tests how it rounds others
        steps = np.rint(np.cumsum(finer.doc_topic, axis=1) * LEVEL_STEPS)
        data = replace(data, finer=tree, level_weights=[np.diff(steps, axis=1, prepend=0) / LEVEL_STEPS])
        pages[name] = page_sections(data, "core", "documents", "counts", "rules", f"level{LEVEL}")
        for filters in FILTERS:
            cases.append({"model": name, "filters": filters, **of_subset(model, data, filters)})
    vectors = {
        "level": LEVEL, "least": LEAST_SEEN, "pages": pages, "cases": cases, "names": [node["name"] for node in nodes],
        "tops": tops.tolist(), "weights": [node["weight"] for node in nodes],
    }  # fmt: skip
    run_node("subset", vectors, tmp_path)


def passing(data, filters):
    """Return a mask of the documents that pass the filters, word by word."""
    n_documents = data.counts.shape[0]
    found = periods(data.times)
    binary = data.counts.toarray() > 0
    mask = np.ones(n_documents, dtype=bool)
    if "topic" in filters:
        level, _, topic = filters["topic"].rpartition(".")
        weights = {"": data.doc_topic, str(LEVEL): data.level_weights[0]}.get(level)
        mask &= False if weights is None else weights.argmax(axis=1) == int(topic)
    if "label" in filters:
        mask &= np.array([filters["label"] in names for names in data.labels])
    if "from" in filters or "to" in filters:
        first, last = (filters.get(name, found.names[end]) for name, end in (("from", 0), ("to", -1)))
        inside = [first, last] if {first, last} <= set(found.names) else ["z", ""]
        mask &= np.array([number >= 0 and inside[0] <= found.names[number] <= inside[1] for number in found.numbers])
    if "q" in filters:
        query = parse_query(filters["q"])

        def having(text):
            if text.endswith("*"):
                names = [name for name in data.vocabulary if name.startswith(text[:-1])]
                return binary[:, [data.vocabulary.index(name) for name in names]].any(axis=1)
            return binary[:, data.vectorizer.transform([text]).indices].any(axis=1)

        asked = [*query.words.split(), *query.prefixes]
        mask &= np.any([having(word) for word in asked], axis=0)
        for word in query.excluded:
            mask &= ~having(word)
        for word in " ".join(query.phrases).split():
            mask &= having(word)
    return mask


def of_subset(model, data, filters):
    """Return figures of the documents that pass the filters; the topics and the frequencies are those of all."""
    rows = np.flatnonzero(passing(data, filters))
    counts, tokens = data.counts[rows], data.tokens[rows]
    documents = data.documents.take(rows)
    whole = replace(data.fitted, word_documents=WordDocuments(*data.word_documents[1:4]))
    binary = counts.toarray() > 0
    inference = whole.inference
    operands = posterior_operands(
        inference.operands(DocumentWeights(documents.doc_topic, documents.background, sparse_counts(counts, float)),
                           whole.topic_word), inference.temperature
    )  # fmt: skip
    A, B = (np.asarray(operand, dtype=float) for operand in operands)
    topic, word = 1, data.vocabulary.index("bank")
    products = A @ B.T
    posterior = np.einsum("dk,wk->dkw", A[:, :4], B[:, :4]) / np.where(products > 0, products, 1)[:, None]
    amounts = (posterior * binary[:, None]).sum(axis=0)
    sizes = documents.doc_topic.sum(axis=0)
    df = binary.sum(axis=0)
    relevances = np.round(relevance(amounts, sizes, df), 4)[topic] if len(rows) else np.zeros(len(df))
    used = [int(w) for w in np.flatnonzero(amounts[topic] > LEAST_SEEN)]
    ranked = sorted(used, key=lambda w: (amounts[topic, w] < LEAST_AMOUNT - 0.00005, -relevances[w], w))
    nats = DocumentScorer(whole, documents).scores(counts, slice(0, len(rows)))[:, topic] if len(rows) else np.zeros(0)
    long = tokens >= 0.5 * np.median(tokens) if len(rows) else np.zeros(0, dtype=bool)
    inside = np.isin(np.arange(data.counts.shape[0]), rows)
    apart = np.zeros(0)
    if 0 < len(rows) < len(inside):
        apart = np.sort(distinctive_words(data.counts, inside.astype(str)).scores[1])[::-1][:12]
    label_names = sorted({name for found in data.labels for name in found})
    found = periods(data.times)
    theta = np.asarray(data.level_weights[0])[rows]
    joint = theta * tokens[:, None]
    by_label = [np.array([name in data.labels[row] for row in rows], dtype=bool) for name in label_names]
    by_period = [found.numbers[rows] == number for number in range(len(found.names))]
    total = max(tokens.sum(), 1.0)
    share = joint.sum(axis=0)[1]
    mean = (documents.doc_topic * tokens[:, None]).sum(axis=0)
    norms = np.linalg.norm(documents.doc_topic, axis=1) * max(np.linalg.norm(mean), 1e-12)
    senses = (counts.toarray()[:, word, None] * posterior[:, :, word]).sum(axis=0)
    index = SearchIndex(data.counts, data.vocabulary, vectorizer=data.vectorizer).set_model(model)
    return {
        "documents": rows.tolist(),
        "tokens": float(tokens.sum()),
        "topics": [
            {
                "size": weights.shape[1],
                "weights": (tokens @ weights[rows] / total).tolist(),
                "fit": (tokens @ weights[rows] ** 2 / np.maximum(tokens @ weights[rows], 1e-12)).tolist(),
                "main": np.bincount(weights[rows].argmax(axis=1), minlength=weights.shape[1]).tolist(),
            }
            for weights in (np.asarray(data.doc_topic), np.asarray(data.level_weights[0]))
        ],
        "word_tokens": np.asarray(counts.sum(axis=0)).ravel().tolist(),
        "word_documents": df.tolist(),
        "apart": [float(score) for score in apart if score > 0],
        "topic": topic,
        "amounts": [[w, float(amounts[topic, w])] for w in used],
        "relevance": [[w, float(relevances[w])] for w in ranked],
        "nats": np.sort(nats[long & (nats > LEAST_SEEN)])[::-1].tolist(),
        "cosines": np.sort(documents.doc_topic @ mean / np.maximum(norms, 1e-12))[::-1].tolist(),
        "label_documents": [int(has.sum()) for has in by_label],
        "labels": [(joint[has].sum(axis=0) / max(tokens[has].sum(), 1.0)).tolist() for has in by_label],
        "labels_of_topic": [float(joint[has].sum(axis=0)[1] / share) if share else 0.0 for has in by_label],
        "periods": [int(has.sum()) for has in by_period],
        "time": [
            [float(joint[has].sum(axis=0)[k] / tokens[has].sum()) if has.any() else None for has in by_period]
            for k in range(LEVEL)
        ],
        "word": word,
        "senses": (senses / max(senses.sum(), 1e-12)).tolist(),
        "largest": [float(value) for value in np.sort(joint[:, 1])[::-1][:5] if value > 0],
        "scores": [hit.score for hit in index.search("bank violin", 5, allowed=inside)],
    }


def inside(corners, places):
    """Return whether places lie inside a polygon: the angles at which its edges are seen add up to an odd number of
    turns."""
    steps = corners[None] - places[:, None]
    angles = np.arctan2(steps[..., 1], steps[..., 0])
    turns = np.diff(np.concatenate([angles, angles[:, :1]], axis=1), axis=1)
    turns = (turns + np.pi) % (2 * np.pi) - np.pi
    return np.round(turns.sum(axis=1) / (2 * np.pi)).astype(int) % 2 == 1
