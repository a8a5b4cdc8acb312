"""Early stopping: held-out tokens end a fit, the result is the best point, and threads change no bit."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

import oracles
import polyseme
from polyseme import NMF, PLSA, InputError, UnsupportedError
from polyseme.core.fold_in import fold_in
from polyseme.core.model import Model
from polyseme.core.shard import split_in_parts, split_tokens
from polyseme.datasets import synthetic_corpus
from polyseme.kernels import padded
from polyseme.priors import Dirichlet
from polyseme.solvers import EarlyStopping, HeldOutTempered, Tempered
from polyseme.solvers.ascent import EM
from polyseme.solvers.base import Auto, FitProblem
from polyseme.solvers.initialize import random_topics
from solver_problems import begin, make_corpus

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X = synthetic_corpus(150, n_topics=4, n_words=200, length=50, random_state=1).counts().toarray().astype(np.float64)
START = oracles.random_factors(3, *X.shape, 12)


def parts(X, share=0.1, seed=0):
    """Return the seen and the held-out counts as dense arrays."""
    counts = make_corpus(X).by_doc
    return [counts.with_values(values).matrix().toarray() for values in split_tokens(counts, seed, share)]


def naive_score(seen, held_out, theta, phi, eps=0.01):
    unigram = seen.sum(axis=0) / seen.sum()
    x = np.where(unigram > 0, held_out, 0)
    p = (1 - eps) * theta @ phi + eps * unigram
    return (x * np.log(np.where(x > 0, p, 1))).sum() / x.sum()


@pytest.mark.parametrize("solver", [EM(), Tempered(0.9), None], ids=["em", "tempered", "auto"])
def test_the_result_is_the_best_point_and_scores_equal_a_naive_loop(solver):
    seen, held_out = parts(X)
    run = begin(EarlyStopping(solver=solver, patience=4, folds=1, by="words"), X, START)
    plain = begin(solver or Auto(), seen, START)
    scores, points = [], []
    while not run.exhausted:
        theta, phi = plain.theta[:, :12], plain.phi[:, :12].T
        scores.append(naive_score(seen, held_out, theta, phi))
        points.append((theta, phi))
        run.advance()
        plain.advance()
    scores.append(naive_score(seen, held_out, plain.theta[:, :12], plain.phi[:, :12].T))
    np.testing.assert_allclose(run.held_out, scores, rtol=1e-9)
    best = 1 + int(np.argmax(scores[1:]))
    assert len(scores) == best + 5
    assert run.score == pytest.approx(max(scores[1:]))
    np.testing.assert_allclose(run.theta[:, :12], points[best][0], atol=1e-12)
    np.testing.assert_allclose(run.phi[:, :12].T, points[best][1], atol=1e-12)


def test_a_start_that_knows_the_held_out_words_does_not_end_the_fit():
    """It has the frequencies of all words; the first iteration has lost those of the held-out words."""
    corpus = synthetic_corpus(300, n_topics=20, n_words=600, length=60, random_state=3).counts()
    stopping = EarlyStopping(folds=1, by="words", patience=2)
    known = random_topics(make_corpus(corpus.toarray().astype(float)), 40, np.random.default_rng(0)).T
    start = np.full((300, 40), 1 / 40), known
    model = PLSA(40, init=start, solver=Tempered(0.8), max_iter=100, early_stopping=stopping).fit(corpus)
    assert max(model.held_out_[1:4]) < model.held_out_[0]
    assert np.argmax(model.held_out_) > 20


@pytest.mark.parametrize(
    "solver",
    [EarlyStopping(folds=3), EarlyStopping(folds=3, by="words"), EarlyStopping(folds=1, by="words"), HeldOutTempered()],
    ids=["documents", "words", "tokens", "tempered"],
)
def test_a_start_is_made_from_what_the_fit_sees(solver):
    seen = []

    def start(corpus, rows):
        seen.append(corpus.tokens)
        part = slice(None) if rows is None else rows
        assert np.array_equal(np.flatnonzero(corpus.totals), np.flatnonzero(X[part].sum(axis=1)))
        return padded(START[0][part], corpus.dtype), padded(START[1].T, corpus.dtype)

    solver.begin_from(FitProblem(Model(12), make_corpus(X)), start)
    n_parts = getattr(solver, "folds", 1)
    expected = [X.sum()] * (n_parts > 1)
    assert seen[: len(expected)] == expected
    assert len(seen) == len(expected) + n_parts
    assert all(tokens < 0.95 * X.sum() for tokens in seen[len(expected) :])


def test_folds_of_words_stop_the_fit_on_all_documents():
    run = begin(EarlyStopping(solver=EM(), folds=3, by="words", patience=3), X, START)
    plain = begin(EM(), X, START)
    counts = make_corpus(X).by_doc
    folds = []
    for values in split_in_parts(counts, 3, 0):
        held_out = counts.with_values(values).matrix().toarray()
        folds.append((X - held_out, held_out, begin(EM(), X - held_out, START)))
    points = []
    while not run.exhausted:
        points.append((plain.theta.copy(), plain.phi.copy()))
        mean = np.mean([naive_score(a, b, fit.theta[:, :12], fit.phi[:, :12].T) for a, b, fit in folds])
        assert run.held_out[-1] == pytest.approx(mean, rel=1e-9)
        for fit in (run, plain, *(fit for _, _, fit in folds)):
            fit.advance()
    best = 1 + int(np.argmax(run.held_out[1:]))
    np.testing.assert_array_equal(run.theta, points[best][0])
    np.testing.assert_array_equal(run.phi, points[best][1])


def test_folds_of_documents_are_folded_in():
    run = begin(EarlyStopping(solver=EM(), patience=3), X, START)
    order = np.random.default_rng(0).permutation(len(X))
    for _ in range(3):
        run.advance()
    means = []
    for part in np.array_split(order, 5):
        train, test = np.setdiff1d(order, part), np.sort(part)
        fit = begin(EM(), X[train], (START[0][train], START[1]))
        for _ in range(3):
            fit.advance()
        observed, scored = parts(X[test], 0.5)
        topics = np.ascontiguousarray(fit.phi[:, :12].T)
        theta = fold_in(fit.model, make_corpus(observed).by_doc, topics, None, n_threads=1).doc_topic
        unigram = X[train].sum(axis=0) / X[train].sum()
        x = np.where(unigram > 0, scored, 0)
        p = 0.99 * theta @ topics + 0.01 * unigram
        means.append((x * np.log(np.where(x > 0, p, 1))).sum() / x.sum())
    assert run.held_out[3] == pytest.approx(np.mean(means), rel=1e-8)


def test_early_stopping_prevents_overfitting():
    new = synthetic_corpus(500, n_topics=4, n_words=200, length=50, random_state=1).counts()[150:]
    plain = PLSA(30, solver="em", random_state=0, max_iter=300, tol=1e-4).fit(X)
    early = PLSA(30, solver="em", random_state=0, max_iter=300, tol=1e-4, early_stopping=EarlyStopping()).fit(X)
    assert early.n_iter_ < plain.n_iter_
    assert early.converged_
    # by folding in, which is what the held-out documents of the fit are scored by
    early_score, plain_score = (model.completion_perplexity(new, inference="model") for model in (early, plain))
    assert early_score < 0.9 * plain_score
    assert early.held_out_.shape == (early.n_iter_ + 1,)
    assert not hasattr(plain, "held_out_")


def test_the_start_is_never_the_result():
    """Many topics overfit few documents from the second iteration on."""
    counts = synthetic_corpus(60, n_topics=3, n_words=800, length=30, random_state=1).counts()
    model = PLSA(30, random_state=0, early_stopping=EarlyStopping()).fit(counts)
    assert model.held_out_[0] > model.held_out_[1:].max()
    best = 1 + int(np.argmax(model.held_out_[1:]))
    plain = PLSA(30, random_state=0, max_iter=best).fit(counts)
    assert np.array_equal(model.components_, plain.components_)


def test_held_out_documents_do_not_stop_topics_that_still_improve():
    """Weights of training documents overfit long before the topics, so held-out words of theirs end the fit early."""
    corpus = synthetic_corpus(500, n_topics=20, n_words=600, length=40, random_state=2).counts()
    known, new = corpus[:250], corpus[250:]
    plain, by_documents, by_words = (
        PLSA(20, init="random", random_state=0, early_stopping=settings)
        .fit(known)
        .completion_perplexity(new, inference="model")
        for settings in (None, EarlyStopping(), EarlyStopping(folds=1, by="words"))
    )
    assert by_documents < 1.01 * plain
    assert by_words > 1.03 * plain


@pytest.mark.parametrize(
    "settings",
    [EarlyStopping(folds=1, by="words"), EarlyStopping(folds=3, by="words"), EarlyStopping(folds=3)],
    ids=["one", "words", "documents"],
)
def test_the_same_bits_for_any_number_of_threads_and_any_layout(settings):
    fits = [
        PLSA(6, random_state=0, early_stopping=settings, n_jobs=n_jobs, dtype=np.float64).fit(data)
        for n_jobs, data in ((1, sp.csr_array(X)), (2, sp.csr_array(X)))
    ]
    assert np.array_equal(fits[0].components_, fits[1].components_)
    assert np.array_equal(fits[0].held_out_, fits[1].held_out_)
    dense = PLSA(6, random_state=0, early_stopping=settings, dtype=np.float64).fit(X)
    np.testing.assert_allclose(dense.held_out_, fits[0].held_out_, atol=1e-9)


def test_max_iter_and_ctrl_c_give_the_best_point_too():
    full = PLSA(12, solver="em", random_state=0, early_stopping=EarlyStopping(patience=20)).fit(X)
    best = 1 + int(np.argmax(full.held_out_[1:]))
    assert best + 20 == full.n_iter_
    cut = PLSA(12, solver="em", random_state=0, max_iter=best + 5, early_stopping=EarlyStopping(patience=20)).fit(X)
    assert np.array_equal(cut.components_, full.components_)

    def interrupt(entry):
        if entry["iteration"] == best + 5:
            raise KeyboardInterrupt

    stopped = PLSA(12, solver="em", random_state=0, early_stopping=EarlyStopping(patience=20), callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(X)
    assert np.array_equal(stopped.components_, full.components_)


def test_the_best_of_several_starts_is_the_best_on_held_out_words():
    fits = [
        PLSA(12, solver="em", random_state=0, n_init=n, early_stopping=EarlyStopping(folds=3)).fit(X) for n in (1, 4)
    ]
    assert fits[1].held_out_[1:].max() >= fits[0].held_out_[1:].max()


def test_weights_background_and_priors():
    weights = np.random.default_rng(0).integers(1, 3, len(X)).astype(float)
    model = PLSA(
        4, random_state=0, early_stopping=EarlyStopping(), background=0.2, doc_topic_prior=1.1, topic_word_prior=1.01
    ).fit(X, sample_weight=weights)
    assert model.held_out_[-1] > model.held_out_[0]


@pytest.mark.parametrize("settings", [EarlyStopping(), EarlyStopping(0.2, 1, "words", 3, solver=Tempered(0.8))])
def test_saved_and_loaded(tmp_path, settings):
    model = PLSA(4, random_state=0, early_stopping=settings).fit(X)
    model.save(tmp_path / "model")
    loaded = polyseme.load(tmp_path / "model")
    assert loaded.early_stopping == settings
    assert np.array_equal(loaded.held_out_, model.held_out_)
    assert np.array_equal(clone(loaded).fit(X).components_, model.components_)


def test_nmf_stops_early_too():
    early = NMF(12, random_state=0, early_stopping=EarlyStopping()).fit(X)
    same = PLSA(12, random_state=0, early_stopping=EarlyStopping()).fit(X)
    assert np.array_equal(early.components_, same.components_)


@pytest.mark.parametrize(
    ("settings", "error", "sentence"),
    [
        (
            True,
            InputError,
            "early_stopping must be None or a solver such as polyseme.solvers.EarlyStopping(), got True",
        ),
        (EarlyStopping(held_out=0), InputError, "EarlyStopping: held_out and smoothing must each be between 0 and 1."),
        (EarlyStopping(patience=0), InputError, "EarlyStopping: patience and folds must each be at least 1."),
        (EarlyStopping(by="pages"), InputError, "EarlyStopping: by must be one of 'documents', 'words', got 'pages'."),
        (EarlyStopping(folds=1), InputError, "EarlyStopping: folds must be at least 2 with by='documents'."),
        (EarlyStopping(folds=151), UnsupportedError, "150 documents cannot be split into 151 folds"),
        (
            EarlyStopping(solver=HeldOutTempered()),
            UnsupportedError,
            "solver='held-out-tempered' already stops by held-out tokens: use it without early_stopping. Solvers that "
            "early_stopping can stop: auto, em, accelerated-em, scd, plsi, nmf, normalized-nmf, online, annealed, "
            "tempered.",
        ),
        (EarlyStopping(solver=EarlyStopping()), UnsupportedError, "early_stopping already stops by held-out tokens"),
        (EarlyStopping(solver=Tempered(0)), InputError, "beta must be a finite number above 0, got 0."),
        (EarlyStopping(solver="em"), InputError, "EarlyStopping: solver must be None or a solver object"),
    ],
)
def test_wrong_settings_raise_one_sentence(settings, error, sentence):
    with pytest.raises(error) as caught:
        PLSA(2, random_state=0, early_stopping=settings).fit(X)
    assert str(caught.value).startswith(sentence)


def test_too_few_tokens_to_hold_out():
    with pytest.raises(UnsupportedError, match="too few tokens to hold some out"):
        PLSA(1, random_state=0, early_stopping=EarlyStopping(folds=1, by="words")).fit([[1, 0]])
    with pytest.raises(UnsupportedError, match="do not occur in the rest"):
        PLSA(1, random_state=0, early_stopping=EarlyStopping(folds=2)).fit(2 * np.eye(2))


# grid search of scikit-learn


def texts():
    corpus = synthetic_corpus(240, n_topics=3, n_words=150, length=60, random_state=4)
    return [document.text for document in corpus]


def test_grid_search_over_topics_and_stopping_in_a_pipeline():
    pipeline = Pipeline([("count", CountVectorizer()), ("topics", PLSA(random_state=0, n_jobs=1))])
    grid = {"topics__n_components": [1, 3, 40], "topics__early_stopping": [None, EarlyStopping(patience=3)]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(texts())
    assert search.best_params_["topics__n_components"] == 3
    scores = {
        (setting["topics__n_components"], setting["topics__early_stopping"] is not None): score
        for setting, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True)
    }
    assert scores[40, True] > scores[40, False]
    assert search.best_estimator_.transform(texts()[:2]).shape == (2, 3)


def test_grid_search_over_priors():
    pipeline = Pipeline([("count", CountVectorizer()), ("topics", PLSA(20, random_state=0, n_jobs=1))])
    grid = {"topics__topic_word_prior": [None, 1.1, Dirichlet(30.0)]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(texts())
    assert search.best_params_["topics__topic_word_prior"] == 1.1


@pytest.mark.parametrize("row", range(4))
def test_folds_that_leave_no_tokens_are_refused(row):
    """All tokens are in one document, so a fold has no tokens to fit, or none to score."""
    X = np.zeros((4, 3))
    X[row] = [5, 3, 2]
    with pytest.raises(UnsupportedError, match=r"no tokens are left to fit|do not occur in the rest"):
        PLSA(2, random_state=0, early_stopping=EarlyStopping(folds=2)).fit(X)
