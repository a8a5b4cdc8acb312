"""Odd data and parameters for every estimator give finite, normalized results or an error of one line."""

import traceback
import warnings
from collections.abc import Callable, Sequence
from inspect import signature
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas
import scipy.sparse as sp
import sklearn.decomposition
import sklearn.linear_model

import polyseme
from fuzz.driver import Case, WrongResult
from polyseme.errors import InputError, MissingExtraError
from polyseme.losses import LOSSES
from polyseme.solvers import EarlyStopping
from polyseme.solvers.base import SOLVERS

IMPORTED_BEFORE_THE_FORK = (sklearn.decomposition, sklearn.linear_model)

SHAPES = [[6, 5], [20, 12], [3, 2], [2, 9], [1, 1], [1, 8], [8, 1], [0, 5], [5, 0], [0, 0]]
SCALES = (1e-310, 1e-200, 1e-45, 1e-30, 1e20, 1e37, 1e38, 1e39, 1e100, 1e150, 1e300)
CHANGES: dict[str, Callable[[Any, Random], Any]] = {
    "none": lambda X, random: X,
    "an empty row": lambda X, random: _set(X, 0, 0.0),
    "an empty column": lambda X, random: _set(X, (slice(None), 0), 0.0),
    "all empty": lambda X, random: X * 0,
    "one document": lambda X, random: X * (np.arange(len(X)) == 0)[:, np.newaxis],
    "one word": lambda X, random: X * (np.arange(X.shape[1]) == 0),
    "equal rows": lambda X, random: np.ones_like(X),
    "fractions": lambda X, random: X / 7,
    "scaled": lambda X, random: X * random.choice(SCALES),
    "wide": lambda X, random: X * 10.0 ** np.reshape([random.randint(-20, 20) for _ in range(X.size)], X.shape),
    "one large": lambda X, random: _set(X, _place(X, random), random.choice((1e15, 1e30, 1e100, 1e200, 1e305, 3e38))),
    "one small": lambda X, random: _set(X, _place(X, random), random.choice((5e-324, 1e-310, 1e-300, 1e-45, 1e-20))),
    "one bad": lambda X, random: _set(X, _place(X, random), random.choice((np.nan, np.inf, -np.inf, -1.0, -1e-300))),
}  # fmt: skip
DTYPES = [
    "float64",
    "float64",
    "float64",
    "float32",
    "float32",
    "float16",
    "int64",
    "int8",
    "uint8",
    "uint64",
    "bool",
    ">f8",
    "longdouble",
]
ODD_DTYPES = ["object", "complex128", "str", "datetime64[s]"]


def _set(X: Any, at: Any, value: float) -> Any:
    if X.size:
        X[at] = value
    return X


def _place(X: Any, random: Random) -> Any:
    return tuple(random.randrange(max(size, 1)) for size in X.shape)


def _csr(X: Any, random: Random, wrong: str = "") -> Any:
    """Return X as a CSR array, whose indices may be wrong."""
    matrix = sp.csr_array(np.asarray(X))
    indices, indptr, data = matrix.indices.copy(), matrix.indptr.copy(), matrix.data.copy()
    if wrong == "unsorted":
        for start, stop in pairwise(indptr):
            indices[start:stop], data[start:stop] = indices[start:stop][::-1].copy(), data[start:stop][::-1].copy()
    elif wrong == "zeros" and len(data):
        data[random.randrange(len(data))] = 0
    elif wrong == "long indices":
        indices, indptr = indices.astype(np.int64), indptr.astype(np.int64)
    elif wrong == "twice":
        indices, data, indptr = np.repeat(indices, 2), np.repeat(data, 2), indptr * 2
    elif wrong == "index" and len(indices):
        indices[random.randrange(len(indices))] = random.choice((X.shape[1], -1, 10**6, 2**31 - 1, -(2**31)))
    elif wrong == "indptr":
        indptr[random.randrange(len(indptr))] = random.choice((-1, 10**6, 2**31 - 1, len(data) + 1, 0))
    elif wrong == "short":
        data = data[: len(data) // 2]
    changed = sp.csr_array(matrix.shape, dtype=data.dtype)
    changed.indices, changed.indptr, changed.data = indices, indptr, data
    changed.has_canonical_format = changed.has_sorted_indices = wrong in ("", "index", "indptr", "long indices")
    return changed


LAYOUTS: dict[str, Callable[[Any, Random], Any]] = {
    "dense": lambda X, random: X,
    "Fortran": lambda X, random: np.asfortranarray(X),
    "strided": lambda X, random: np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
    "backwards": lambda X, random: X[::-1, ::-1],
    "lists": lambda X, random: X.tolist(),
    "read-only": lambda X, random: _read_only(X),
    "masked": lambda X, random: np.ma.masked_equal(X, 1),
    "frame": lambda X, random: pandas.DataFrame(X),
    "csr": lambda X, random: _csr(X, random),
    "csr matrix": lambda X, random: sp.csr_matrix(X),
    "csc": lambda X, random: sp.csc_array(X),
    "coo": lambda X, random: sp.coo_array(X),
    "lil": lambda X, random: sp.lil_array(X),
    "dok": lambda X, random: sp.dok_array(X),
    "dia": lambda X, random: sp.dia_array(X),
    "bsr": lambda X, random: sp.bsr_array(X),
    **{
        f"csr, {wrong}": lambda X, random, wrong=wrong: _csr(X, random, wrong)
        for wrong in ("unsorted", "zeros", "long indices", "twice", "index", "index", "indptr", "short")
    },
    "flat": lambda X, random: X.ravel(),
    "three ways": lambda X, random: X[:, :, np.newaxis].repeat(2, axis=2),
    "no ways": lambda X, random: np.array(3.0),
    "ragged": lambda X, random: [[1, 2], [3]],
    "none": lambda X, random: None,
    "text": lambda X, random: ["one", "two"],
    "generator": lambda X, random: (row for row in X),
    "dict": lambda X, random: {"a": [1, 2], "b": [3, 4]},
    "memory": lambda X, random: memoryview(np.ascontiguousarray(X, dtype=np.float64)),
}  # fmt: skip


def _read_only(X: Any) -> Any:
    X = X.copy()
    X.flags.writeable = False
    return X


def data_of(description: Any) -> Any:
    """Return the data that a case describes."""
    random = Random(description["seed"])
    rng = np.random.default_rng(description["seed"])
    X = rng.poisson(1.5, size=description["shape"]).astype(np.float64)
    X = CHANGES[description["change"]](X, random)
    with np.errstate(all="ignore"):
        return LAYOUTS[description["layout"]](X.astype(description["dtype"]), random)


def _draw_data(random: Random) -> Any:
    odd = random.random()
    return {
        "seed": random.randrange(1000),
        "shape": random.choice(SHAPES[:4]) if odd < 0.7 else random.choice(SHAPES),
        "change": random.choice(sorted(CHANGES)),
        "dtype": random.choice(DTYPES) if odd < 0.95 else random.choice(ODD_DTYPES),
        "layout": random.choice(sorted(LAYOUTS))
        if odd < 0.6
        else random.choice(("dense", "csr", "csr, index", "csr, indptr")),
    }


# parameters: usual values, and odd ones

HUGE = 10**9
"""A number of topics that is allowed but needs a lot of memory."""
WHOLE = ((1, 2, 3, 5), (0, -1, 1.5, "x", None, True, HUGE, 2**63, float("nan"), [2]))
COMMON: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "n_components": ((1, 2, 3, 4, 7, 40), WHOLE[1]),
    "max_iter": ((1, 2, 5, 20), (0, -1, 1.5, "x", None, True, float("inf"))),
    "tol": ((0, 1e-2, 1e-8, 10.0), (-1, float("nan"), float("inf"), "x", None)),
    "n_init": ((1, 2), (0, -1, 1.5, "x", None)),
    "n_jobs": ((None, 1, 2, -1), (0, 1.5, "x", 10**6, -(10**6), True)),
    "dtype": ((None, "float64", "float32"), ("float16", "int64", "x", 5, "object")),
    "random_state": ((0, 1, None), (-1, "x", 2**40, 1.5, "generator", "RandomState")),
    "init": (("random",), ("x", None, 5, [[1.0]], "plsa", "auto", "corners")),
    "verbose": ((0, 0, 1), ()),
}
PRIORS = (
    (None, 1.1, 1.5, 2, 0.5),
    (0, -1, 1e300, 1e-300, float("nan"), float("inf"), "x", [1.1], [1.1, 1.1, 1.1], True, [float("nan")] * 3),
)
OTHERS: dict[str, dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]]] = {
    "PLSA": {
        "solver": ((*SOLVERS,), ("x", None, 5)),
        "doc_topic_prior": PRIORS,
        "topic_word_prior": PRIORS,
        "background": ((0.0, 0.1, 0.5), (1.0, -0.1, 2, float("nan"), "x", None, True)),
        "early_stopping": ((None, "two folds", False), ("x", 5, True)),
    },
    "NMF": {
        "loss": ((*LOSSES,), ("x", None)),
        "solver": ((*SOLVERS,), ("x", None)),
        "early_stopping": ((None, "two folds"), ("x", True)),
    },
    "LDA": {
        "solver": (("variational", "online", "map", "tempered"), ("x", None)),
        "doc_topic_prior": ((*PRIORS[0], "symmetric-learned", "asymmetric-learned"), PRIORS[1]),
        "topic_word_prior": ((*PRIORS[0], "symmetric-learned"), PRIORS[1]),
    },
    "LSA": {"weights": (("log-entropy", "none", "tf-idf"), ("x", None)), "n_components": ((1, 2, 3, 0.5), WHOLE[1])},
    "HierarchicalPLSA": {
        "depth": ((1, 2, 3), WHOLE[1]),
        "branching": ((2, 3, [2, 3]), (0, -1, "x", [], [0], 10**9, None)),
        "growth": ((None, 4, 6), (0, -1, "x", 10**9)),
        "solver": (("accelerated-em", "em"), ("x",)),
    },
    "MultinomialMixture": {"pseudo_counts": ((0.01, 1.0, 10), (0, -1, "x", None))},
    "CorrelatedTopicModel": {"covariance": (("full", "diagonal"), ("x", None))},
    "RealTopicModel": {
        "total": ((1e4, 10.0), (0, -1, float("nan"), float("inf"), 1e300, "x", None)),
        "volume": (("minimum", "farthest", "data"), ("x", None)),
        "margin": ((0.05, 0.0, 0.5), (-1, float("nan"), 1e300, "x")),
        "non_negative": (("auto", False), ("x", None, 2)),
    },
    "TensorPLSA": {
        "solver": (("accelerated-em", "em"), ("x",)),
        "modes": ((None,), (["a"], "x", 3)),
        "counts": ((None,), ("x",)),
    },
}  # fmt: skip
USES = (
    *("transform", "fit_transform", "score", "perplexity", "completion_perplexity", "partial_fit", "predict"),
    *(
        "inverse_transform",
        "log_probability",
        "reconstruction_error",
        "save",
        "nearest",
        "top_words",
        "topics",
        "posterior",
    ),
)
SUMS_TO_ONE = {"PLSA", "LDA", "HierarchicalPLSA", "CorrelatedTopicModel", "MultinomialMixture", "TensorPLSA"}
WEIGHTS: dict[str, Callable[[int], Any]] = {
    "none": lambda size: None,
    "ones": lambda size: np.ones(size),
    "zeros": lambda size: np.zeros(size),
    "negative": lambda size: -np.ones(size),
    "bad": lambda size: np.full(size, np.nan),
    "large": lambda size: np.full(size, 1e300),
    "small": lambda size: np.full(size, 1e-310),
    "short": lambda size: np.ones(max(size - 1, 0)),
    "text": lambda size: "x",
    "number": lambda size: 2.0,
}


def _parameters(name: str) -> set[str]:
    """Return the parameters of an estimator; for RealTopicModel including those of its topic model."""
    known = set(getattr(polyseme, name)().get_params(deep=False))
    return known | _parameters("PLSA") if name == "RealTopicModel" else known


def _made(name: str, parameters: dict[str, Any]) -> Any:
    if name != "RealTopicModel":
        return getattr(polyseme, name)(**parameters)
    own = {key: parameters.pop(key) for key in ("total", "volume", "margin", "non_negative") if key in parameters}
    return polyseme.RealTopicModel(polyseme.PLSA(**parameters), **own)


def _value(value: Any) -> Any:
    """Return the value of a parameter; those that JSON cannot store have names."""
    if value == "generator":
        return np.random.default_rng(0)
    if value == "two folds":
        return EarlyStopping(folds=2)
    return np.random.RandomState(0) if value == "RandomState" else value


class Estimators:
    """Fuzzer that fits estimators to odd data."""

    name = "estimators"
    cases = 50_000
    seconds = 20.0
    memory = 3 * 2**30
    batch = 100
    folder: Path

    def prepare(self, cases: Sequence[Case] | None) -> None:
        """Do nothing."""

    def check(self) -> None:
        """Raise if ordinary data cannot be fitted."""
        data = {"seed": 0, "shape": [20, 5], "change": "none", "dtype": "float64", "layout": "dense"}
        for name in OTHERS:
            outcome = self.run(
                {"estimator": name, "parameters": {"n_components": 2}, "data": data, "uses": ["transform"]}
            )
            if not outcome.endswith("fitted"):
                raise WrongResult(f"{name} does not fit ordinary data: {outcome}")

    def draw(self, random: Random) -> Case:
        """Return an estimator with some parameters, few of them odd; data to fit; and how the model is used."""
        name = random.choice(sorted(OTHERS))
        known = COMMON | OTHERS[name]
        taken = sorted(set(known) & _parameters(name))
        parameters = {}
        for parameter in random.sample(taken, min(len(taken), random.choice((1, 2, 3, 5)))):
            usual, odd = known[parameter]
            parameters[parameter] = random.choice(odd) if odd and random.random() < 0.12 else random.choice(usual)
        parameters.setdefault("max_iter", 5)
        data = _draw_data(random)
        new = (
            {**_draw_data(random), "shape": [random.choice((1, 3, 6)), data["shape"][1]]}
            if random.random() < 0.5
            else data
        )
        weights = random.choice(sorted(WEIGHTS)) if random.random() < 0.15 else "none"
        uses = random.sample(USES, random.choice((1, 2, 3)))
        return {"estimator": name, "parameters": parameters, "data": data, "new": new, "weights": weights, "uses": uses}

    def run(self, case: Case) -> str:
        """Fit an estimator, use it, and check the results."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.filterwarnings("error", category=RuntimeWarning)
            return f"{case['estimator']}: {self._outcome(case)}"

    def _outcome(self, case: Case) -> str:
        known = _parameters(case["estimator"])
        parameters = {name: _value(value) for name, value in case["parameters"].items() if name in known}
        data = _built(case["data"])
        if data is Unbuilt:
            return "no such data"
        weights = WEIGHTS[case.get("weights", "none")](case["data"]["shape"][0])
        try:
            estimator = _made(case["estimator"], parameters)
            takes_weights = "sample_weight" in signature(estimator.fit).parameters
            estimator.fit(data, sample_weight=weights) if takes_weights else estimator.fit(data)
        except (ValueError, TypeError, MissingExtraError) as error:
            _check_error(error)
            return "refused"
        except MemoryError:
            if parameters.get("n_components") != HUGE:
                raise
            return "not enough memory"
        _check_fit(estimator, case["estimator"])
        new = _built(case.get("new", case["data"]))
        refused = False
        for use in case["uses"] if new is not Unbuilt else ():
            try:
                self._use(estimator, case["estimator"], use, new)
            except (ValueError, TypeError) as error:
                _check_error(error)
                refused = True
        return "fitted, then refused" if refused else "fitted"

    def _use(self, estimator: Any, name: str, use: str, new: Any) -> None:
        if use == "save":
            if hasattr(estimator, "save"):
                estimator.save("model.safetensors")
                polyseme.load("model.safetensors")
            return
        if not hasattr(estimator, use):
            return
        if use in ("posterior", "top_words", "topics"):
            getattr(estimator, use)()
            return
        given = (
            estimator.transform(new)
            if use in ("inverse_transform", "predict") and hasattr(estimator, "transform")
            else new
        )
        result = getattr(estimator, use)(given if use == "inverse_transform" else new)
        if use == "partial_fit":
            _check_fit(estimator, name)
        elif use in ("transform", "fit_transform"):
            _check_weights(
                result, f"{name}: {use}", sums=name in SUMS_TO_ONE, negative=name in ("LSA", "RealTopicModel")
            )
        elif use in ("score", "perplexity", "completion_perplexity", "log_probability") and np.isnan(result):
            if _known_tokens(estimator, new) < (20 if use in ("score", "completion_perplexity") else 1):
                return  # without words there is no perplexity, and half of a few words can be none
            raise WrongResult(f"{name}: {use} is not a number")


def _known_tokens(estimator: Any, new: Any) -> float:
    """Return the number of tokens of new data with words that the fit knows."""
    counts = new if sp.issparse(new) else np.asarray(new, dtype=np.float64)
    totals: Any = np.asarray(counts.sum(axis=0)).ravel()
    if hasattr(estimator, "unigram_"):  # a tensor has no words
        totals = totals[estimator.unigram_ > 0]
    return float(totals.sum())


class Unbuilt:
    """Raised for data that NumPy or SciPy refuse to make."""


def _built(description: Any) -> Any:
    try:
        return data_of(description)
    except (ValueError, TypeError, IndexError, OverflowError):
        return Unbuilt


def _check_error(error: Exception) -> None:
    """Raise if an error is not one of polyseme's own, or has more than one line."""
    frames = traceback.extract_tb(error.__traceback__)
    purposeful = (
        isinstance(error, InputError)
        or any("/sklearn/utils/" in frame.filename or "/sklearn/base" in frame.filename for frame in frames)
        or ("/polyseme/" in frames[-1].filename and (frames[-1].line or "").lstrip().startswith("raise"))
    )
    if not purposeful:
        raise error
    if isinstance(error, InputError) and ("\n" in str(error) or not 5 < len(str(error)) < 1000):
        raise WrongResult(f"a message of several lines, or none: {str(error)[:200]!r}") from error


def _check_weights(weights: Any, what: str, *, sums: bool, negative: bool = False) -> None:
    weights = np.asarray(weights, dtype=np.float64)
    if not np.isfinite(weights).all():
        raise WrongResult(f"{what} is not finite")
    if not negative and (weights < 0).any():
        raise WrongResult(f"{what} is negative")
    if sums and weights.size and not np.allclose(weights.sum(axis=-1), 1, atol=1e-4):
        raise WrongResult(f"{what} does not sum to one")


def _check_fit(estimator: Any, name: str) -> None:
    """Raise if an array of a fit is not finite, or probabilities do not sum to one."""
    for attribute in (
        "components_",
        "doc_topic_",
        "topic_weights_",
        "doc_weights_",
        "unigram_",
        "node_word_",
        "covariance_",
    ):
        values = getattr(estimator, attribute, None)
        if values is None:
            continue
        sums = name in SUMS_TO_ONE and attribute in ("components_", "doc_topic_", "unigram_", "node_word_")
        _check_weights(
            values,
            f"{name}: {attribute}",
            sums=sums,
            negative=name in ("LSA", "RealTopicModel") or attribute == "covariance_",
        )


fuzzer = Estimators()
