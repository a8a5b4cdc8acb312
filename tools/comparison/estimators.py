"""Cases: estimators x solvers x priors x backgrounds x dtypes.

The tables at the top hold functions, because polyseme is imported only when a case runs. A combination that a build
refuses is a case too: both builds must refuse it with the same type of error.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from comparison import data
from comparison.data import K
from comparison.names import call, look_further, polyseme, priors, solvers
from comparison.registry import add, case

DTYPES = ("float32", "float64")

PLSA_SOLVERS = {
    name: (lambda name=name: name)
    for name in (
        "auto",
        "scd",
        "em",
        "accelerated-em",
        "nmf",
        "normalized-nmf",
        "plsi",
        "tempered",
        "held-out-tempered",
        "annealed",
        "online",
    )
} | {"look-further": look_further}

# Solver objects, tried without priors and background.
SOLVER_SETTINGS = {
    "scd-plain": lambda: solvers.SCD(passes=1, extrapolate=False),
    "nmf-documents-first": lambda: solvers.MultiplicativeNMF(order="documents-first"),
    "normalized-nmf-documents-first": lambda: solvers.NormalizedNMF(order="documents-first"),
    "tempered-0.7": lambda: solvers.Tempered(0.7),
    "held-out-tempered": lambda: solvers.HeldOutTempered(held_out=0.2, shrink=0.8, patience=2, random_state=1),
    "look-further": lambda: look_further(held_out=0.2, patience=2),
    "annealed": lambda: solvers.Annealed(start=0.5, stages=3, steps=4, random_state=1),
    "online": lambda: solvers.StepwiseEM(batch_size=7, offset=2.0, decay=0.6, doc_steps=4, random_state=1),
}

# doc_topic_prior and topic_word_prior
PRIORS = {
    "none": lambda: {},
    "doc-number": lambda: {"doc_topic_prior": 1.2},
    "doc-vector": lambda: {"doc_topic_prior": priors.Dirichlet(np.linspace(1, 2, K))},
    "doc-sparse": lambda: {"doc_topic_prior": priors.Dirichlet(0.8)},
    "doc-smoothing": lambda: {"doc_topic_prior": priors.Smoothing(3, np.arange(1, K + 1) / 10)},
    "doc-sparsing": lambda: {"doc_topic_prior": priors.Sparsing(0.5)},
    "doc-entropic": lambda: {"doc_topic_prior": priors.Entropic(2.0)},
    "doc-flat": lambda: {"doc_topic_prior": priors.Entropic(-2.0)},
    "doc-selection": lambda: {"doc_topic_prior": priors.TopicSelection(0.1)},
    "word-dirichlet": lambda: {"topic_word_prior": priors.Dirichlet(1.1)},
    "word-entropic": lambda: {"topic_word_prior": priors.Entropic(1.0)},
    "word-seeds": lambda: {"topic_word_prior": priors.SeedWords({0: [1, 2], 2: [9]}, strength=20.0)},
    "word-decorrelation": lambda: {"topic_word_prior": priors.Decorrelation(0.5)},
    "both-lists": lambda: {
        "doc_topic_prior": [priors.Dirichlet(1.2), priors.TopicSelection(0.1)],
        "topic_word_prior": priors.PriorSum((priors.Smoothing(2.0), priors.Decorrelation(0.2))),
    },
}

BACKGROUNDS = {
    "none": lambda: {},
    "number": lambda: {"background": 0.3},
    "given": lambda: {"background": polyseme.Background(0.2, np.full(45, 1 / 45))},
    "joint": lambda: {"background": polyseme.JointBackground(0.3)},
}


def settings(**parameters: Any) -> dict[str, Any]:
    """Return the parameters of a short fit."""
    return {"n_components": K, "random_state": 0, "max_iter": 25, "tol": 0.0, "n_jobs": 1, **parameters}


def with_new_documents(model: Any) -> dict[str, Any]:
    """Return a fitted model, and its weights and scores of new documents."""
    return with_weights(model) | {
        "perplexity": model.perplexity_report(data.new_documents()),
        "unseen": model.perplexity(data.new_documents(), unseen=1e-4),
        "score": model.score(data.new_documents()),
    }


def with_weights(model: Any) -> dict[str, Any]:
    """Return a fitted model, its weights for new documents, and the score of half of their tokens."""
    Y = data.new_documents()
    return {"model": model, "transform": model.transform(Y), "completion": model.completion_report(Y)}


# PLSA


def plsa(_: Path, **parameters: Any) -> Any:
    return with_new_documents(polyseme.PLSA(**settings(**parameters)).fit(data.counts()))


def _product_case(solver: Any, prior: Any, background: Any, dtype: str, _: Path) -> Any:
    iterations = 2 if solver() == "online" else 12  # an iteration of "online" is many small ones
    parameters = settings(solver=solver(), dtype=dtype, max_iter=iterations, **prior(), **background())
    return with_weights(polyseme.PLSA(**parameters).fit(data.counts()))


for (solver, make), (prior, priors_of), (background, background_of), dtype in product(
    PLSA_SOLVERS.items(), PRIORS.items(), BACKGROUNDS.items(), DTYPES
):
    add(
        f"plsa/{solver}/prior={prior}/background={background}/{dtype}",
        partial(_product_case, make, priors_of, background_of, dtype),
    )

for (name, make), dtype in product(SOLVER_SETTINGS.items(), DTYPES):
    add(
        f"plsa/settings/{name}/{dtype}", lambda folder, make=make, dtype=dtype: plsa(folder, solver=make(), dtype=dtype)
    )

EARLY_STOPPING = {
    "default": lambda: solvers.EarlyStopping(),
    "words": lambda: solvers.EarlyStopping(held_out=0.2, folds=1, by="words", patience=2, random_state=1),
    "word-folds": lambda: solvers.EarlyStopping(folds=3, by="words", patience=2),
    "document-folds": lambda: solvers.EarlyStopping(by="documents", folds=3, patience=2),
    "em": lambda: solvers.EarlyStopping(patience=2, solver=solvers.EM()),
}
for (name, make), dtype in product(EARLY_STOPPING.items(), DTYPES):
    add(
        f"plsa/early-stopping/{name}/{dtype}",
        lambda folder, make=make, dtype=dtype: plsa(folder, early_stopping=make(), dtype=dtype),
    )

# More fits of PLSA: parameters, each with both dtypes.
PLSA_FITS: dict[str, dict[str, Any]] = {
    "to-the-end": {"max_iter": 500, "tol": 0.001},
    "em-to-the-end": {"solver": "em", "max_iter": 500, "tol": 0.01},
    "n_init": {"n_init": 3},
    "init=nndsvd": {"init": "nndsvd"},
    "init=lsa": {"init": "lsa"},
    **{f"n_components={n}": {"n_components": n} for n in (1, 2, 17, 33)},
}
for (name, parameters), dtype in product(PLSA_FITS.items(), DTYPES):
    add(f"plsa/fits/{name}/{dtype}", partial(plsa, dtype=dtype, **parameters))


def layouts(_: Path, layout: Any, dtype: Any) -> Any:
    model = polyseme.PLSA(**settings())
    return model.fit(layout(data.counts().astype(dtype))), model.transform(layout(data.new_documents().astype(dtype)))


for (name, layout), dtype in product(
    {"dense": lambda X: X.toarray(), "csc": sp.csc_array, "coo": sp.coo_array}.items(), ("int64", *DTYPES)
):
    add(f"plsa/layouts/{name}/{dtype}", partial(layouts, layout=layout, dtype=dtype))


def weighted(_: Path, solver: str, dtype: str) -> Any:
    model = polyseme.PLSA(**settings(solver=solver, dtype=dtype, doc_topic_prior=priors.TopicSelection(0.1)))
    plain = polyseme.PLSA(**settings(solver=solver, dtype=dtype))
    fits: dict[str, Any] = {"plain": plain.fit(data.counts(), sample_weight=data.sample_weights())}
    if solver in ("auto", "em"):
        fits["selection"] = model.fit(data.counts(), sample_weight=data.sample_weights())
    return fits


for solver, dtype in product(PLSA_SOLVERS, DTYPES):
    if solver != "look-further":
        add(f"plsa/sample-weights/{solver}/{dtype}", partial(weighted, solver=solver, dtype=dtype))


def threads(_: Path, make: Any, n_jobs: int) -> Any:
    model = make(n_jobs)
    return model.fit(data.more_counts()), model.transform(data.more_counts()[:50])


THREADED = {
    "plsa-scd": lambda n_jobs: polyseme.PLSA(**settings(n_components=9, max_iter=8, n_jobs=n_jobs)),
    "plsa-em": lambda n_jobs: polyseme.PLSA(**settings(n_components=9, max_iter=8, n_jobs=n_jobs, solver="em")),
    "plsa-float32": lambda n_jobs: polyseme.PLSA(
        **settings(n_components=9, max_iter=8, n_jobs=n_jobs, dtype="float32", background=0.2)
    ),
    "nmf": lambda n_jobs: polyseme.NMF(**settings(n_components=9, max_iter=8, n_jobs=n_jobs)),
    "lda": lambda n_jobs: polyseme.LDA(**settings(n_components=9, max_iter=5, n_jobs=n_jobs)),
    "lda-online": lambda n_jobs: polyseme.LDA(**settings(n_components=9, max_iter=2, n_jobs=n_jobs, solver="online")),
    "tree": lambda n_jobs: polyseme.HierarchicalPLSA(branching=3, random_state=0, max_iter=5, n_jobs=n_jobs),
    "correlated": lambda n_jobs: polyseme.CorrelatedTopicModel(5, random_state=0, max_iter=3, n_jobs=n_jobs),
}
for (name, make), n_jobs in product(THREADED.items(), (1, 2)):
    add(f"estimators/n_jobs/{name}/n_jobs={n_jobs}", partial(threads, make=make, n_jobs=n_jobs))


def streamed(_: Path, make: Any) -> Any:
    """Fit in parts, one of them with weights, and return the weights of new documents after each part."""
    X, model = data.counts(), make()
    found: dict[str, Any] = {}
    for number, start in enumerate(range(0, 60, 20)):
        weights = data.sample_weights()[start : start + 20] if number == 1 else None
        model.partial_fit(X[start : start + 20], sample_weight=weights)
        found[f"transform{number}"] = model.transform(data.new_documents())
    return found | with_new_documents(model)


STREAMS = {
    "plsa": lambda dtype: polyseme.PLSA(**settings(dtype=dtype)),
    "plsa-online": lambda dtype: polyseme.PLSA(**settings(dtype=dtype, solver=solvers.StepwiseEM(batch_size=7))),
    "plsa-background": lambda dtype: polyseme.PLSA(**settings(dtype=dtype, background=0.2)),
    "plsa-prior": lambda dtype: polyseme.PLSA(**settings(dtype=dtype, doc_topic_prior=1.2)),
    "plsa-word-prior": lambda dtype: polyseme.PLSA(**settings(dtype=dtype, topic_word_prior=1.2)),
    "lda": lambda dtype: polyseme.LDA(**settings(dtype=dtype, solver="online")),
    "lda-settings": lambda dtype: polyseme.LDA(
        **settings(dtype=dtype, solver=solvers.OnlineVariational(batch_size=7, total_documents=60))
    ),
}
for (name, make), dtype in product(STREAMS.items(), DTYPES):
    add(f"estimators/partial_fit/{name}/{dtype}", partial(streamed, make=lambda make=make, dtype=dtype: make(dtype)))


@case("plsa/conversions")
def conversions(_: Path) -> Any:
    model = polyseme.PLSA(**settings()).fit(data.counts(), feature_names=data.words())
    factors = model.to_nmf()
    return {
        "nmf": factors,
        "plsa": factors.to_plsa(),
        "with_topics": model.with_topics(model.components_[::-1], data.new_documents()),
        "from_factors": polyseme.PLSA(**settings(init=(model.doc_topic_, model.components_))).fit(data.counts()),
        "topics": list(model.topics()),
        "plain_topics": list(model.topics(n_words=4, relevance=1.0)),
    }


# NMF

NMF_FITS: dict[str, dict[str, Any]] = {
    "squared": {"loss": "squared"},
    "n_init": {"n_init": 2},
    "early-stopping": {"early_stopping": lambda: solvers.EarlyStopping()},
    "init=nndsvd": {"init": "nndsvd"},
}


def nmf(_: Path, **parameters: Any) -> Any:
    for name in ("solver", "early_stopping"):
        if callable(parameters.get(name)):
            parameters[name] = parameters[name]()
    model = polyseme.NMF(**settings(**parameters)).fit(data.counts())
    weights = model.transform(data.new_documents())
    return {"model": model, "transform": weights, "inverse": model.inverse_transform(weights)}


for dtype in DTYPES:
    for name, make in PLSA_SOLVERS.items():
        add(f"nmf/kullback-leibler/{name}/{dtype}", partial(nmf, solver=make, dtype=dtype))
    for name, parameters in NMF_FITS.items():
        add(f"nmf/fits/{name}/{dtype}", partial(nmf, dtype=dtype, **parameters))


@case("nmf/sample-weights")
def nmf_weighted(_: Path) -> Any:
    return polyseme.NMF(**settings()).fit(data.counts(), sample_weight=data.sample_weights())


# LDA

LDA_SOLVERS = {
    "variational": lambda: "variational",
    "online": lambda: "online",
    "map": lambda: "map",
    "variational-settings": lambda: solvers.Variational(doc_steps=2, refresh=3, extrapolate=False),
    "online-settings": lambda: solvers.OnlineVariational(batch_size=7, offset=2.0, doc_steps=9),
}
LDA_PRIORS: dict[str, dict[str, Any]] = {
    "default": {},
    "numbers": {"doc_topic_prior": 1.3, "topic_word_prior": 1.05},
    "small": {"doc_topic_prior": 0.2, "topic_word_prior": 0.02},
    "vector": {"doc_topic_prior": np.linspace(1.1, 1.5, K)},
    "learned": {"doc_topic_prior": "asymmetric-learned", "topic_word_prior": "symmetric-learned"},
}


def lda(_: Path, solver: Any = lambda: "variational", weights: Any = None, **parameters: Any) -> Any:
    model = polyseme.LDA(**settings(solver=solver(), **parameters))
    return with_new_documents(model.fit(data.counts(), sample_weight=weights))


for (solver, make), (name, parameters), dtype in product(LDA_SOLVERS.items(), LDA_PRIORS.items(), DTYPES):
    add(f"lda/{solver}/prior={name}/{dtype}", partial(lda, solver=make, dtype=dtype, **parameters))
for name in ("plsa", "random", "nndsvd", "lsa"):
    add(f"lda/fits/init={name}", partial(lda, init=name))
for solver in ("variational", "online", "map"):
    add(
        f"lda/sample-weights/{solver}",
        lambda folder, solver=solver: lda(folder, lambda: solver, weights=data.sample_weights()),
    )
add("lda/fits/n_init", partial(lda, n_init=2, init="random"))
add("lda/fits/to-the-end", partial(lda, max_iter=300, tol=None))

# topics in a tree

TREES: dict[str, dict[str, Any]] = {
    "regular": {"branching": 2},
    "uneven": {"tree": [-1, 0, 0, 1, 1]},
    "named": {"tree": {"all": {"one": ["a", "b"], "two": ["c", "d"]}}, "silent": ["one"]},
    "random": {"branching": (2, 3), "init": "random"},
    "grown": {"branching": 2, "growth": 6},
    "n_init": {"branching": 2, "n_init": 2},
}


def tree(_: Path, weights: Any = None, **parameters: Any) -> Any:
    if parameters.get("growth") == "settings":
        parameters["growth"] = solvers.TreeGrowth(5, held_out=0.2, steps=6, patience=1, random_state=1)
    model = polyseme.HierarchicalPLSA(random_state=0, max_iter=20, tol=0.0, n_jobs=1, **parameters)
    model.fit(data.counts(), sample_weight=weights, feature_names=data.words())
    found = with_new_documents(model) | {"predict": model.predict(data.new_documents())}
    return found | {"nodes": [str(node) for node in model.nodes()], "text": model.tree_text()}


for (name, parameters), solver, dtype in product(TREES.items(), ("em", "accelerated-em"), DTYPES):
    add(f"tree/{name}/{solver}/{dtype}", partial(tree, solver=solver, dtype=dtype, **parameters))
add("tree/growth-settings", partial(tree, branching=2, growth="settings"))
add("tree/sample-weights", lambda folder: tree(folder, weights=data.sample_weights(), branching=2))

# correlated topics


def correlated(_: Path, weights: Any = None, **parameters: Any) -> Any:
    model = polyseme.CorrelatedTopicModel(**settings(max_iter=8, **parameters))
    return with_new_documents(model.fit(data.counts(), sample_weight=weights))


for covariance, init, dtype in product(("full", "diagonal"), ("plsa", "random"), DTYPES):
    add(
        f"correlated/{covariance}/init={init}/{dtype}",
        partial(correlated, covariance=covariance, init=init, dtype=dtype),
    )
add("correlated/sample-weights", lambda folder: correlated(folder, weights=data.sample_weights()))

# tensors


def tensor(_: Path, counts: Any = data.tensor, **parameters: Any) -> Any:
    X = counts()
    model = polyseme.TensorPLSA(**settings(**parameters)).fit(X)
    modes = range(X.ndim)
    return {
        "model": model,
        "transform": [model.transform(X, mode) for mode in modes] if X.ndim > 2 else [model.transform(X)],
        "posterior": [model.posterior(mode) for mode in modes],
        "log_probability": model.log_probability(X),
        "top_items": [model.top_items(mode, n=5) for mode in modes],
    }


for solver, dtype in product(("em", "accelerated-em"), DTYPES):
    add(f"tensor/three-modes/{solver}/{dtype}", partial(tensor, solver=solver, dtype=dtype))
    add(f"tensor/two-modes/{solver}/{dtype}", partial(tensor, counts=data.counts, solver=solver, dtype=dtype))
add("tensor/n_init", partial(tensor, n_init=2))


@case("tensor/table")
def tensor_of_table(_: Path) -> Any:
    import pandas

    rng = np.random.default_rng(0)
    names = ("who", "what", "where")
    table = pandas.DataFrame({name: [f"{name}{i}" for i in rng.integers(0, 6, 200)] for name in names})
    table["times"] = rng.integers(1, 5, 200)
    table = table.drop_duplicates(list(names))
    model = polyseme.TensorPLSA(**settings(n_components=2, modes=list(names), counts="times")).fit(table)
    return model, model.transform(table), model.top_items(1)


# real data

REAL_MODELS = {
    "default": lambda: None,
    "plsa": lambda: polyseme.PLSA(3, random_state=0, n_jobs=1),
    "sparse": lambda: polyseme.PLSA(3, doc_topic_prior=priors.Entropic(5.0), random_state=0),
    "plsi": lambda: polyseme.PLSA(3, solver="plsi", random_state=0),
    "lda": lambda: polyseme.LDA(3, random_state=0),
    "nmf": lambda: polyseme.NMF(3, random_state=0),
}


def real(_: Path, make: Any, **parameters: Any) -> Any:
    X = data.real_data()
    model = polyseme.RealTopicModel(make(), **parameters).fit(X[:60])
    weights = model.transform(X[60:])
    return {
        "model": model,
        "transform": weights,
        "inverse": model.inverse_transform(weights),
        "error": model.reconstruction_error(X[60:]),
        "outside": call(model, "outside_hull", X[60:]),
        "outside_simplex": call(model, "outside_simplex", X[60:]),
    }


for (name, make), volume in product(REAL_MODELS.items(), ("minimum", "farthest", "data")):
    add(f"real/{name}/volume={volume}", partial(real, make=make, volume=volume))
add("real/total", partial(real, make=REAL_MODELS["plsa"], total=500.0, margin=0.2))
add("real/non_negative=False", partial(real, make=REAL_MODELS["plsa"], non_negative=False))

# LSA


def lsa(_: Path, n_components: float = 5, **parameters: Any) -> Any:
    model = polyseme.LSA(n_components, **parameters).fit(data.counts(), feature_names=data.words())
    vectors = model.transform(data.new_documents())
    return {
        "model": model,
        "transform": vectors,
        "inverse": model.inverse_transform(vectors),
        "angles": model.angles(data.new_documents()),
        "nearest": model.nearest(data.new_documents(), 3),
        "nearest_words": model.nearest_words([5, 6], 4),
    }


for weights, dtype in product(("counts", "tf-idf", "log-entropy"), DTYPES):
    add(f"lsa/{weights}/{dtype}", partial(lsa, weights=weights, dtype=dtype))
add("lsa/share-of-variance", partial(lsa, n_components=0.6))
add("lsa/large", lambda _: polyseme.LSA(20).fit(sp.csr_array(data.mixed_counts(7, 2100, 2000, 9, 30))))

# priors as functions


def prior_functions(_: Path, make: Any) -> Any:
    rng = np.random.default_rng(0)
    factor, counts = rng.dirichlet(np.ones(K), 6), rng.gamma(2.0, 10.0, (6, K))
    (prior,) = make().values()
    return {"maximum": call(prior, "maximize", counts, factor), "log_density": prior.log_density(factor)}


for name, make in PRIORS.items():
    if name not in ("none", "both-lists", "doc-number", "doc-selection", "word-seeds"):
        add(f"priors/{name}", partial(prior_functions, make=make))
