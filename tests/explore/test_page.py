"""The explorer page: its data, packing, map, periods, models of other libraries, and errors."""

import base64
import gzip
import hashlib
import json
import re
from dataclasses import replace
from datetime import date
from importlib.resources import files
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import NMF as SklearnNMF
from sklearn.decomposition import LatentDirichletAllocation, TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer

import polyseme
from explorer_corpora import HOSTILE, hostile_page_data, themed_page_data, themed_texts
from polyseme import (
    LDA,
    LSA,
    NMF,
    PLSA,
    CorrelatedTopicModel,
    HierarchicalPLSA,
    InputError,
    JointBackground,
    MultinomialMixture,
)
from polyseme.core.fold_in import MaximumLikelihood
from polyseme.explore import write_page
from polyseme.explore.page import (
    LEVEL_STEPS,
    LOG_STEP,
    SHARE_STEPS,
    encode_varints,
    pack_counts,
    pack_level_weights,
    pack_topics,
    pack_weights,
    render_page,
)
from polyseme.explore.page_data import PageData, page_data
from polyseme.layout.colors import DARK, LIGHT
from polyseme.metrics import coherence, top_words
from polyseme.metrics.topics import classical_scaling
from polyseme.runs.documents import excerpt
from polyseme.runs.info import Reproducibility, Selection, SelectionRow
from polyseme.runs.periods import periods
from polyseme.text import Vectorizer


@pytest.fixture(scope="module")
def parts():
    return themed_page_data()


def unpacked_varints(packed):
    numbers, number, shift = [], 0, 0
    for byte in packed.tolist():
        number += (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(number)
            number, shift = 0, 0
    return numbers


def sections(text):
    """Return the decoded sections of a page (see data.js)."""
    found = {}
    for name, content in re.findall(r'<script type="application/octet-stream" id="(\w+)">([^<]*)</script>', text):
        raw = gzip.decompress(base64.b64decode(content, validate=True))
        length = int.from_bytes(raw[:4], "little")
        header = json.loads(raw[4 : 4 + length])
        assert (4 + length) % 8 == 0
        arrays = {
            key: np.frombuffer(raw, kind.removesuffix("Array").lower(), size, 4 + length + offset)
            for key, (kind, offset, size) in header["arrays"].items()
        }
        found[name] = header["values"] | arrays
    return found


def test_varints():
    values = [0, 1, 127, 128, 300, 2**14, 2**31, 2**40]
    assert unpacked_varints(encode_varints(np.array(values))) == values
    assert encode_varints(np.array([], dtype=int)).size == 0


@pytest.mark.parametrize("dtype", [np.int32, np.float64])
def test_counts_survive_packing(dtype):
    dense = np.random.default_rng(0).poisson(0.4, (30, 12)).astype(dtype)
    dense[:, 3] = 0
    if dtype is np.float64:
        dense[0, 0] = 0.75
    packed = pack_counts(sp.csr_array(dense))
    gaps = iter(unpacked_varints(packed["gaps"]))
    values = iter(unpacked_varints(packed["counts"]) if "counts" in packed else packed["amounts"])
    again = np.zeros_like(dense)
    for word, size in enumerate(unpacked_varints(packed["documents_of"])):
        document = -1
        for _ in range(size):
            document += 1 + next(gaps)
            again[document, word] = next(values)
    np.testing.assert_array_equal(again, dense)


def test_packed_probabilities_are_close(parts):
    packed = pack_topics(parts.topic_word)
    again = np.zeros_like(parts.topic_word.T)
    rows = np.repeat(np.arange(len(again)), unpacked_varints(packed["topics_of_word"]))
    again[rows, packed["word_topics"]] = np.exp(-LOG_STEP * packed["word_logs"])
    stored = again > 0
    np.testing.assert_allclose(again[stored], parts.topic_word.T[stored], rtol=LOG_STEP / 2 + 1e-9)
    most = np.broadcast_to(parts.topic_word.max(axis=0)[:, np.newaxis], again.shape)
    assert (parts.topic_word.T[~stored] < 1e-6 * most[~stored]).all()
    packed = pack_weights(parts.doc_topic)
    theta = np.zeros_like(parts.doc_topic)
    rows = np.repeat(np.arange(len(theta)), unpacked_varints(packed["topics_of_document"]))
    theta[rows, packed["document_topics"]] = packed["document_shares"] / SHARE_STEPS
    np.testing.assert_allclose(theta, parts.doc_topic, atol=2 / SHARE_STEPS)


def test_shares_of_finer_levels_are_within_a_step_and_keep_their_sum():
    exact = np.random.default_rng(2).dirichlet(np.full(60, 0.05), 200)
    exact[0] = 1 / 60  # 16.7 steps each
    exact[1] = 0  # a document without words may have no topics
    packed = pack_level_weights(exact)
    rows = np.repeat(np.arange(len(exact)), unpacked_varints(packed["topics_of_document"]))
    again = np.zeros_like(exact)
    again[rows, packed["document_topics"]] = np.array(unpacked_varints(packed["level_shares"])) / LEVEL_STEPS
    np.testing.assert_allclose(again, exact, atol=1.001 / LEVEL_STEPS)
    np.testing.assert_allclose(again.sum(axis=1), exact.sum(axis=1), atol=1e-12)


def test_excerpts_are_shorter_if_there_are_many(parts, monkeypatch):
    sentence = "The ship left the harbor with a cargo of salt. "
    data = replace(parts, texts=[10 * sentence] * len(parts.doc_topic))
    assert sections(render_page(data, "excerpt"))["texts0"]["texts"][0] == (6 * sentence).strip()
    monkeypatch.setattr("polyseme.explore.page.MAX_EXCERPTS", 120 * len(parts.doc_topic))
    assert sections(render_page(data, "excerpt"))["texts0"]["texts"][0] == (2 * sentence).strip()


def test_the_map_keeps_distances_that_fit_a_plane():
    points = np.random.default_rng(1).normal(size=(7, 2))
    distances = np.linalg.norm(points[:, np.newaxis] - points, axis=2)
    places = classical_scaling(distances)
    np.testing.assert_allclose(np.linalg.norm(places[:, np.newaxis] - places, axis=2), distances, atol=1e-12)


@pytest.mark.parametrize("size", [1, 2])
def test_a_map_of_very_few_topics(size):
    assert classical_scaling(np.ones((size, size)) - np.eye(size)).shape == (size, 2)


def test_periods():
    assert periods(["x", None, ""]) is None
    years = periods([1999, "2003", None, 2001.0])
    assert years.names == ["1999", "2000", "2001", "2002", "2003"]
    assert years.numbers.tolist() == [0, 4, -1, 2]
    decades = periods([f"{year}" for year in range(1800, 2000)])
    assert decades.names[0] == "1800s"
    assert len(decades.names) == 20
    months = periods([date(2020, 1, 3), "2020-11-30T10:00:00Z", np.datetime64("2021-02-01")])
    assert months.names[0] == "2020-01"
    assert months.numbers.tolist() == [0, 10, 13]
    # twelve documents in twelve months: a month would have one document
    few = [f"2020-{month:02}-10" for month in range(1, 13)]
    assert periods(few).names == ["2020 Q1", "2020 Q2", "2020 Q3", "2020 Q4"]
    assert len(periods(2 * few).names) == 12
    days = periods(["2020-02-27", "2020/03/01", "2020-13-01"])
    assert days.names == ["2020-02-27", "2020-02-28", "2020-02-29", "2020-03-01"]
    assert days.numbers.tolist() == [0, 3, -1]


def test_a_page_contains_its_data(parts):
    found = sections(render_page(parts, "full"))
    core = found["core"]
    assert core["words"] == parts.vocabulary
    np.testing.assert_allclose(core["weights"], parts.topic_weights)
    assert found["documents"]["titles"] == parts.titles
    assert [text for name in found if name.startswith("texts") for text in found[name]["texts"]] == parts.texts
    assert core["history"]["log_likelihood"][-1] == pytest.approx(parts.history["log_likelihood"][-1], abs=1e-6)
    assert len(found["documents"]["periods"]) > 5


def test_a_page_contains_as_much_text_as_requested(parts):
    texts = {
        kind: [
            text
            for name, section in sections(render_page(parts, kind)).items()
            if name[:5] == "texts"
            for text in section["texts"]
        ]
        for kind in ("excerpt", "full", "none")
    }
    assert texts["full"] == parts.texts
    assert all(len(text) <= 300 for text in texts["excerpt"])
    assert texts["none"] == []
    assert parts.texts[0] not in render_page(parts, "none")


def test_a_small_corpus_has_full_texts_and_a_large_one_excerpts_with_the_reason(parts, monkeypatch, tmp_path):
    run = polyseme.fit(parts.texts, 3, output=tmp_path / "run", levels="none", page=False)
    for data, how in ((parts, r"write_page\(..., text=\"full\"\)"), (run, "polyseme explore RUN --text full")):
        found = sections(render_page(data))
        assert found["texts0"]["texts"] == parts.texts
        assert (found["core"]["text"], found["core"]["text_note"]) == ("full", "")
        size = sum(map(len, parts.texts))
        with monkeypatch.context() as patch:
            patch.setattr("polyseme.explore.page.MAX_FULL_TEXT", size)
            found = sections(render_page(data))
            assert found["core"]["text"] == "excerpt"
            assert re.fullmatch(
                rf"Excerpt: these documents have 0 MB of text; {how} shows .*", found["core"]["text_note"]
            )
            patch.setattr("polyseme.explore.page.MAX_FULL_TEXT", size + 1)
            assert sections(render_page(data))["core"]["text"] == "full"
        assert sections(render_page(data, "excerpt"))["core"]["text_note"] == ""


def test_a_page_quotes_the_typical_documents(parts, tmp_path):
    for kind in ("auto", "full", "excerpt"):
        found = sections(render_page(parts, kind))["documents"]
        quoted = zip(found["typical_documents"], found["quotes"], strict=True)
        assert all(quote in parts.texts[row] for row, quote in quoted)
    assert "quotes" not in sections(render_page(parts, "none"))["documents"]
    bare = replace(parts, vectorizer=None)
    assert len(sections(render_page(bare))["documents"]["quotes"]) == len(found["quotes"])
    assert "quotes" not in sections(render_page(replace(parts, texts=None)))["documents"]
    run = polyseme.fit(parts.texts, 3, levels="none", keep_texts=False)
    quotes = sections(render_page(run))["documents"]["quotes"]
    assert quotes == [document.quote for found in run.typical_documents(10) for document in found]


def test_the_page_is_deterministic_and_allows_only_its_own_script(parts):
    text = render_page(parts)
    assert text == render_page(parts)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text).group(1)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    script = re.search(r"<script>(.*?)</script>", text, re.DOTALL).group(1)
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL).group(1)
    for content in (script, style):
        assert base64.b64encode(hashlib.sha256(content.encode()).digest()).decode() in policy
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|https?://(?!www\.w3\.org)", script
    )


def test_hostile_names_stay_in_their_blocks():
    text = render_page(hostile_page_data()[1], "full")
    outside = re.sub(r'<script type="application/octet-stream".*?</script>', "", text, flags=re.DOTALL)
    assert all(name not in outside for name in HOSTILE if "<" in name)
    assert text.count("<script") == len(sections(text)) + 1


def test_a_lone_surrogate_becomes_a_question_mark():
    counts = np.array([[1, 2], [2, 0]])
    model = PLSA(2, random_state=0).fit(counts)
    text = render_page(model, "full", counts=counts, vocabulary=["a\ud800", "b"], texts=["\udfff x", "y"])
    assert sections(text)["core"]["words"] == ["a?", "b"]
    text.encode()


def test_the_file_is_written_atomically(parts, tmp_path):
    path = tmp_path / "page.html"
    write_page(parts, path)
    assert path.read_text(encoding="utf-8") == render_page(parts)
    with pytest.raises(InputError, match="text must be one of"):
        write_page(parts, path, text="some")
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]


def test_without_a_path_a_page_is_a_frame_in_a_notebook(parts, tmp_path):
    shown = write_page(parts, height=123)._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert 'height="123"' in shown
    assert shown.count('"><script') == 0
    with pytest.raises(InputError, match="leave it out, or leave path= out"):
        write_page(parts, tmp_path / "page.html", height=123)


MODELS = {
    "PLSA": lambda: PLSA(3, random_state=0),
    "NMF": lambda: NMF(3, random_state=0),
    "NMF of squares": lambda: NMF(3, loss="squared", random_state=0, max_iter=1000),
    "LDA": lambda: LDA(3, random_state=0),
    "LDA by EM": lambda: LDA(3, solver="map", doc_topic_prior=1.5, random_state=0),
    "LDA by mini-batches": lambda: LDA(3, solver="online", random_state=0),
    "tree": lambda: HierarchicalPLSA(branching=2, random_state=0),
    "correlated": lambda: CorrelatedTopicModel(3, random_state=0),
    "mixture": lambda: MultinomialMixture(3, random_state=0),
}
KINDS = {
    "LDA": "dirichlet", "LDA by mini-batches": "dirichlet", "correlated": "logistic-normal",
    "mixture": "mixture", "NMF of squares": "likelihood",
}  # fmt: skip
NOTES = {"NMF of squares": "by likelihood, not by the model's loss (squared)"}


@pytest.mark.parametrize("name", MODELS)
def test_every_topic_model_has_a_page(name):
    texts, *_ = themed_texts(40)
    counts = Vectorizer().fit_transform(texts)
    model = MODELS[name]().fit(counts)
    made = page_data(model, counts, [f"w{i}" for i in range(counts.shape[1])])
    np.testing.assert_allclose(made.topic_word.sum(axis=1), 1)
    np.testing.assert_array_equal(made.doc_topic, model._training.doc_topic)
    assert made.topic_weights.sum() == pytest.approx(1)
    core = sections(render_page(made))["core"]
    assert core["inference"]["kind"] == KINDS.get(name, "posterior")
    assert NOTES.get(name, "") in core["inference"]["note"]
    assert bool(core["inference"]["note"]) == (name in NOTES)
    assert len(core["tree"]) == (7 if name == "tree" else 0)
    assert core["facts"]["iterations"] == model.n_iter_


def test_a_page_of_topics_that_are_off_or_of_a_joint_background():
    counts = Vectorizer().fit_transform(themed_texts(40)[0])
    words = [f"w{i}" for i in range(counts.shape[1])]
    model = PLSA(3, background=JointBackground(0.3), random_state=0, solver="em").fit(counts)
    made = page_data(model, counts, words)
    core = sections(render_page(made))["core"]
    assert core["inference"]["kind"] == "posterior"
    assert core["alpha"].size == 4  # one more of the background
    assert core["inference"]["background"] == 0.3
    assert "inactive" not in core
    np.testing.assert_array_equal(made.documents.background, model.doc_background_)
    off = replace(made.fitted, active=np.array([True, False, True]))
    assert sections(render_page(replace(made, fitted=off)))["core"]["inactive"].tolist() == [1]


def test_a_page_after_partial_fit():
    counts = Vectorizer().fit_transform(themed_texts(40)[0])
    words = [f"w{i}" for i in range(counts.shape[1])]
    for model in (PLSA(3, solver="online", random_state=0), LDA(3, solver="online", random_state=0)):
        made = page_data(model.partial_fit(counts), counts, words)
        np.testing.assert_array_equal(made.doc_topic, model.transform(counts))
        assert made.word_documents.unit == "documents"
        assert "iterations" not in sections(render_page(made))["core"]["facts"]


def test_a_page_of_arrays(parts):
    """Arrays without a model give the page of the model, up to the rounding of the words' document numbers."""
    made = PageData.from_arrays(3 * parts.topic_word, parts.doc_topic, parts.counts, parts.vocabulary)
    np.testing.assert_allclose(made.topic_word, parts.topic_word)
    assert isinstance(made.fitted.inference, MaximumLikelihood)
    assert made.topic_documents(3).documents == parts.topic_documents(3).documents
    np.testing.assert_allclose(made.word_documents.amounts, parts.word_documents.amounts, rtol=1e-4, atol=1e-5)
    assert sections(render_page(made))["core"]["words"] == parts.vocabulary


def test_topics_of_scikit_learn():
    texts, titles, *_ = themed_texts(40)
    vectorizer = CountVectorizer()
    counts = vectorizer.fit_transform(texts)
    lda = LatentDirichletAllocation(3, random_state=0).fit(counts)
    made = page_data(lda, counts, vectorizer=vectorizer, titles=titles)
    np.testing.assert_allclose(made.topic_word, lda.components_ / lda.components_.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(made.doc_topic, lda.transform(counts))
    assert made.vocabulary == list(vectorizer.get_feature_names_out())
    nmf = SklearnNMF(3, random_state=0, max_iter=500).fit(counts)
    made = page_data(nmf, counts, vectorizer=vectorizer)
    W, H = nmf.transform(counts), nmf.components_
    mass = (W * H.sum(axis=1)).sum(axis=1)
    np.testing.assert_allclose(mass[:, np.newaxis] * (made.doc_topic @ made.topic_word), W @ H, atol=1e-8)
    with pytest.raises(InputError, match="negative"):
        page_data(TruncatedSVD(3).fit(counts), counts, vectorizer=vectorizer)


def test_topics_of_gensim():
    """Uses an object with the interface of LdaModel, because gensim is not a dependency."""
    lambda_ = np.array([[3.0, 1.0, 0.5], [0.2, 2.0, 4.0]])
    corpus = [[(0, 2), (1, 1)], [(2, 5)], []]
    gamma = np.array([[3.0, 1.0], [0.5, 4.5], [1.0, 1.0]])
    model = SimpleNamespace(
        state=SimpleNamespace(get_lambda=lambda: lambda_), id2word={0: "a", 1: "b", 2: "c"}, alpha=np.array([0.5, 0.5]),
        eta=np.full(3, 0.1), inference=lambda documents: (gamma[: len(documents)], None),
    )  # fmt: skip
    made = page_data(model, iter(corpus), titles=["x", "y", "z"])
    np.testing.assert_array_equal(made.counts.toarray(), [[2, 1, 0], [0, 0, 5], [0, 0, 0]])
    np.testing.assert_allclose(made.doc_topic, gamma / gamma.sum(axis=1, keepdims=True))
    assert sections(render_page(made))["core"]["totals"].tolist() == [4.5, 6.2]
    assert made.vocabulary == ["a", "b", "c"]
    with pytest.raises(InputError, match="leave vocabulary= and vectorizer= out"):
        page_data(model, iter(corpus), ["a", "b", "c"])


def test_new_counts_are_folded_in(parts):
    """The bits are those of the fit, because each document is folded in on its own."""
    model = PLSA(4, random_state=0, tol=1e-4).fit(parts.counts)
    made = page_data(model, parts.counts[:7], parts.vocabulary)
    np.testing.assert_array_equal(made.doc_topic, model.doc_topic_[:7])


REFUSED = {
    "one name for each": lambda p: page_data(PLSA(2, random_state=0).fit(p.counts), p.counts, ["a"]),
    "one name for each of the": lambda p: page_data(
        PLSA(2, random_state=0).fit(p.counts), p.counts[:3, :2], p.vocabulary[:2]
    ),
    "Every count": lambda p: page_data(
        PLSA(2, random_state=0).fit(p.counts), np.full((1, len(p.vocabulary)), 1e300), p.vocabulary
    ),
    "FittedTopics has no fitted topics": lambda p: page_data(p.fitted, p.counts, p.vocabulary),
    "titles must have one entry": lambda p: page_data(
        PLSA(2, random_state=0).fit(p.counts), p.counts, p.vocabulary, titles=["a"]
    ),
    "PLSA has no fitted topics: call fit first": lambda p: page_data(PLSA(2), p.counts, p.vocabulary),
    "give vocabulary or vectorizer": lambda p: page_data(PLSA(2, random_state=0).fit(p.counts), p.counts),
    "LSA has no fitted topics": lambda p: page_data(LSA(2).fit(p.counts), p.counts, p.vocabulary),
    "LatentDirichletAllocation has no fitted topics": lambda p: page_data(
        LatentDirichletAllocation(2), p.counts, p.vocabulary
    ),
    "doc_topic has shape": lambda p: PageData.from_arrays(p.topic_word, p.doc_topic[1:], p.counts, p.vocabulary),
    "needs documents: give counts=": lambda p: render_page(PLSA(2, random_state=0).fit(p.counts)),
    "already contains them": lambda p: render_page(p, titles=["a"]),
    "no full texts": lambda p: render_page(
        page_data(PLSA(2, random_state=0).fit(p.counts), p.counts, p.vocabulary), "full"
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_wrong_arguments_are_refused(parts, message):
    with pytest.raises(InputError, match=message):
        REFUSED[message](parts)


def test_a_run_has_a_page(tmp_path):
    pl = pytest.importorskip("polars")
    texts, titles, labels, times = themed_texts(30)
    frame = pl.DataFrame(
        {"text": texts, "title": titles, "label": ["; ".join(names) for names in labels], "time": times}
    )
    run = polyseme.fit(frame, 3, language="english", min_df=1, max_df=1.0, output=tmp_path / "run")
    model, counts = run.model, run.counts
    selection = Selection(3, "Three do.", (SelectionRow(3, 0.5, 0.1),))
    run.store.info = replace(run.info, topic_names={1: "Bread"}, selection=selection, stability=(0.5, 0.25, 1))
    found = (Reproducibility(1.0, 0.8, 1.0), Reproducibility(0.5, 0.3, 0.7), Reproducibility(0.0, 0.0, 0.2))
    run.store.info = replace(run.info, reproducibility=found)
    found = sections(render_page(run))
    assert found["core"]["title"] == "run"
    assert found["core"]["topic_names"] == {str(topic): name for topic, name in enumerate(run.topic_titles)}
    assert found["core"]["topic_names"]["1"] == "Bread"
    assert found["core"]["selection"] == [{"k": 3, "agreement": 0.5, "error": 0.1}]
    assert found["core"]["selection_reason"] == "Three do."
    assert found["core"]["measures"]["stability"] == [0.5, 0.25, 1]
    assert found["core"]["measures"]["reproducibility"] == [1, 0.5, 0]
    assert found["core"]["measures"]["reproducibility_least"] == [0.8, 0.3, 0]
    assert found["core"]["measures"]["reproducibility_most"] == [1, 0.7, 0.2]
    npmi = coherence(top_words(model), counts).topics
    assert found["core"]["measures"]["coherence"] == pytest.approx(npmi, abs=1e-6)
    assert found["core"]["facts"]["seed"] == 0
    assert found["texts0"]["texts"] == [excerpt(text) for text in texts]
    assert found["documents"]["labels"] == ["harbour", "kitchen", "money", "music"]
    assert sections(render_page(run, "full"))["texts0"]["texts"] == texts
    word = run.topic_words(1)[0][0]
    hidden = run.edit(ban=[word])
    column = run.vocabulary.index(word)
    assert column in found["core"]["candidate_words"]
    core = sections(render_page(hidden))["core"]
    assert column not in core["candidate_words"]
    assert core["hidden"] == [column]


def test_a_fitted_model_shows_its_topics_in_a_notebook(parts):
    model = PLSA(2, random_state=0)
    assert "<th>weight</th>" not in model._repr_html_()
    model.fit(np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]]))
    for shown in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        assert shown.count("<tr><td>") == 2
    model.set_vocabulary(["<b>", "x", "y", "z"])
    assert "&lt;b&gt;" in model._repr_html_()
    import sklearn

    with sklearn.config_context(display="text"):
        assert not hasattr(model, "_repr_html_")


@pytest.mark.parametrize(("scheme", "palette"), [(0, LIGHT), (1, DARK)], ids=["light", "dark"])
def test_the_style_sheet_has_the_colors_of_the_layout(scheme, palette):
    style = files("polyseme.explore").joinpath("assets", "style.css").read_text(encoding="utf-8")
    part = style.split("@media screen and (prefers-color-scheme: dark)")[scheme]
    assert tuple(re.findall(r"--d\d+: (#[0-9a-f]{6});", part)) == palette
