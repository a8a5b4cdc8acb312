"""Model files: safetensors with a format version, the parameters and a digest.

The tensors are the fitted arrays. The metadata has one JSON object (`polyseme`) with everything else, and the digest.
There is no pickle, and nothing in a file is executed. The fitted model (`FittedTopics`) and its training documents are
stored field by field: arrays as tensors with names such as "fitted_.topic_word", the rest in the JSON object.

Arrays with one row per training document can be larger than memory. With `documents_beside` each of them is a .npy file
beside the model file (doc_topic.npy, doc_weights.npy ...), whose name, shape, type and digest are in the header. The
files are written in blocks, and mapped when the model is loaded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from polyseme.core.dirichlet import DirichletPosterior
from polyseme.core.fitted import FittedTopics, LearnedPrior, TrainingDocuments, WordDocuments
from polyseme.core.fold_in import LeastLoss, MaximumLikelihood
from polyseme.core.logistic_normal import LogisticNormalPosterior
from polyseme.core.model import Background, JointBackground
from polyseme.core.tree import as_tree
from polyseme.errors import InputError, ModelFileError, UnsupportedError
from polyseme.io.arrays import (
    digest_of,
    map_npy,
    read_safetensors,
    row_blocks,
    write_npy,
    write_safetensors,
)
from polyseme.io.files import (
    COUNT,
    FLAG,
    NOT_A_NUMBER,
    NULL,
    OBJECT,
    TEXT,
    check_fields,
    digest_of_file,
    either,
    list_of,
    mapping_to,
    number,
    object_with,
    one_of,
    parse_json,
    whole_number,
)
from polyseme.kernels import Array
from polyseme.losses import Loss
from polyseme.priors import Prior

FORMAT_VERSION = 2
"""Version of the model files that this version of polyseme writes."""
_OLDEST_VERSION = 2
"""Oldest version of the model files that this version of polyseme reads. Version 1 was never released."""
_HEADER = {
    "class": TEXT,
    "parameters": OBJECT,
    "attributes": OBJECT,
    "history": list_of(TEXT, distinct=True),
    "nested": mapping_to(OBJECT),
}
"""Fields of an estimator in the header of a file, and of the estimators that it contains."""
_PARAMETERS = {
    "callback": NULL,
    "checkpoint": NULL,
    "n_components": either(COUNT, number(0, 1)),
    "max_iter": either(NULL, COUNT),
    "n_init": either(NULL, COUNT),
    "tol": either(NULL, number(0, np.inf)),
    "random_state": either(NULL, whole_number(0, 2**32 - 1)),
    "n_jobs": either(NULL, whole_number(-(2**31), 2**31)),
    "verbose": either(FLAG, COUNT),
    "dtype": either(NULL, one_of("float32", "float64")),
}
"""Parameters of all estimators. `save` omits callback and checkpoint, which could name any function or path."""
_KEY, _DIGEST, _BESIDE = "polyseme", "digest", "beside"
_HISTORY = "history_."
_FLOATS_AND_INTEGERS = one_of("float32", "float64", "int64")
_SHAPE = list_of(COUNT, most=2)
_FILE_FIELDS = {"file": TEXT, "shape": _SHAPE, "dtype": _FLOATS_AND_INTEGERS, "sha256": TEXT}
"""Fields of an array in a file beside the model file."""
_CONSTANT_FIELDS = {"value": number(0, 1)}
"""Field of the share of the background if it is the same in all documents, so that it needs no file."""
_DOC_WEIGHTS, _BACKGROUND_SHARES = "documents_.doc_weights", "documents_.background"

_FITTED, _DOCUMENTS = "fitted_", "documents_"
_FITTED_ARRAYS = ("topic_word", "topic_weights", "unigram", "active")
_DOCUMENT_ARRAYS = ("doc_weights", "doc_topic", "background")
_INFERENCES: dict[str, type[Any]] = {
    kind.kind: kind for kind in (MaximumLikelihood, DirichletPosterior, LogisticNormalPosterior, LeastLoss)
}


def save(model: Any, path: str | PathLike[str], *, documents_beside: bool = False) -> None:
    """Write a fitted estimator to a file, atomically: after a crash or on a full disk the old file is unchanged.

    With `documents_beside`, arrays with one row per training document are .npy files in the same folder. Each file is
    written atomically, the model file last. After a crash between two files, an older model file may not match the new
    arrays, and loading it raises an error: to replace a model, write to a new folder.
    """
    described, tensors = _to_header(model, "")
    header = {"format_version": FORMAT_VERSION, "library_version": version("polyseme"), **described}
    if documents_beside:
        moved = {name: tensors.pop(name) for name in _DOCUMENT_FILES if name in tensors}
        header[_BESIDE] = {name: _write_beside(name, array, Path(path).parent) for name, array in moved.items()}
    text = json.dumps(header)
    contiguous = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    write_safetensors(path, contiguous, {_KEY: text, _DIGEST: digest_of(text, contiguous)})


def _write_beside(name: str, array: Array, folder: Path) -> dict[str, Any]:
    """Write an array to its own file, and return its description. A constant share of the background needs no file."""
    if name == _BACKGROUND_SHARES and len(array) and (array == array[0]).all():
        return {"value": float(array[0])}
    file = _DOCUMENT_FILES[name]
    digest = write_npy(folder / file, array)
    return {"file": file, "shape": list(array.shape), "dtype": array.dtype.name, "sha256": digest}


def _read_beside(given: Any, folder: Path, *, check_digests: bool) -> dict[str, Array]:
    """Return the arrays beside a model file, mapped, by name. Raise ModelFileError if a file is missing or damaged."""
    OBJECT.require(_BESIDE, given)
    arrays: dict[str, Array] = {}
    for name, entry in given.items():
        one_of(*_DOCUMENT_FILES).require("the name of an array of the documents", name)
        if name == _BACKGROUND_SHARES and isinstance(entry, dict) and "value" in entry:
            continue  # added below
        check_fields(entry, _FILE_FIELDS, required=tuple(_FILE_FIELDS))
        one_of(_DOCUMENT_FILES[name]).require(f"the file of {name}", entry["file"])
        path = folder / _DOCUMENT_FILES[name]
        try:
            arrays[name] = map_npy(path)
            if list(arrays[name].shape) != entry["shape"] or arrays[name].dtype.name != entry["dtype"]:
                raise ValueError("its shape or type is not that of the model")
            if check_digests and digest_of_file(path) != entry["sha256"]:
                raise ValueError("its digest is not that of the model")
        except (OSError, ValueError) as error:
            raise ModelFileError(f"{path} is missing or damaged: {error}; restore a copy, or fit again.") from None
    if _BACKGROUND_SHARES in given.keys() - arrays.keys():
        constant = given[_BACKGROUND_SHARES]
        check_fields(constant, _CONSTANT_FIELDS, required=tuple(_CONSTANT_FIELDS))
        arrays[_BACKGROUND_SHARES] = np.broadcast_to(np.float64(constant["value"]), (len(arrays[_DOC_WEIGHTS]),))
    return arrays


class ModelContents(NamedTuple):
    """Class name, parameters and fitted attributes of an estimator; nested estimators are ModelContents, too."""

    class_name: str
    parameters: dict[str, Any]
    attributes: dict[str, Any]


def read(path: str | PathLike[str], *, check_documents: bool = True) -> ModelContents:
    """Return the contents of a model file, after a check of its digest.

    check_documents : whether to check the digests of arrays in files beside it, too.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no model file {path}.")
    try:
        metadata, tensors = read_safetensors(path)
        text, digest = metadata[_KEY], metadata[_DIGEST]
        header = parse_json(text, infinite=True)
        check_fields(header, {"format_version": COUNT}, required=("format_version",), others=True)
    except KeyError:
        raise ModelFileError(f"{path} is not a polyseme model.") from None
    except (OSError, ValueError, TypeError, AttributeError, OverflowError) as error:
        raise ModelFileError(f"{path} is damaged or is not a polyseme model ({error}).") from None
    if header["format_version"] > FORMAT_VERSION:
        raise ModelFileError(
            f"{path} was written by polyseme {header.get('library_version')} in a newer format: "
            "update polyseme to read it."
        )
    if header["format_version"] < _OLDEST_VERSION:
        raise ModelFileError(f"{path} was written by an early version of polyseme: fit the model again.")
    if digest != digest_of(text, tensors):
        raise ModelFileError(f"{path} is damaged: its digest does not match its content; restore a copy, or fit again.")
    try:
        beside = _read_beside(header.get(_BESIDE, {}), path.parent, check_digests=check_documents)
        if beside.keys() & tensors.keys():
            raise ValueError(f"{min(beside.keys() & tensors.keys())} is stored twice")
        return _from_header(header, tensors | beside, "")
    except (KeyError, ValueError) as error:
        raise ModelFileError(f"{path} is damaged: {error}; restore a copy, or fit again.") from None


def restore(
    path: str | PathLike[str],
    classes: Mapping[str, type[Any]],
    objects: Mapping[str, Callable[..., Any]],
    *,
    check_documents: bool = True,
) -> Any:
    """Return the estimator in a model file. Only `classes` (estimators) and `objects` (settings) are built.

    check_documents : whether to check the digests of arrays in files beside the model file.
    """
    contents = read(path, check_documents=check_documents)
    try:
        return _build(contents, classes, {**objects, **classes}, Path(path))
    except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
        raise ModelFileError(f"{path} is damaged: {error}; restore a copy, or fit again.") from None


def _build(
    contents: ModelContents,
    classes: Mapping[str, type[Any]],
    objects: Mapping[str, Callable[..., Any]],
    path: Path,
) -> Any:
    """Return the estimator with these contents, after checks of its parameters and attributes."""
    if contents.class_name not in classes:
        raise ModelFileError(
            f"{path} holds a {contents.class_name}, which this version of polyseme does not have: "
            "use the version that wrote it."
        )
    check_fields(contents.parameters, _PARAMETERS, others=True)
    model = classes[contents.class_name](
        **{name: _restored(value, objects, path) for name, value in contents.parameters.items()}
    )
    missing = [name for name in classes[contents.class_name].file_attributes if contents.attributes.get(name) is None]
    if missing:
        raise ValueError(f"{missing[0]} is missing")
    check_attributes(contents.attributes)
    for name, value in contents.attributes.items():
        if name.startswith((f"{_FITTED}.", f"{_DOCUMENTS}.")):
            continue  # fields of the fitted model and of its documents
        computed = getattr(type(model), name, None) is not None  # a method or a property
        if not name.endswith("_") or name.startswith("_") or computed:
            raise ValueError(f"{name!r} is not an attribute of a fitted {contents.class_name}")
        if name == _FITTED:
            model.fitted_ = _fitted_of(contents.attributes, objects, path)
            one_of(*type(model).inferences).require("kind", model.fitted_.inference.kind)
        elif name == _DOCUMENTS:
            model.documents_ = None if value is None else _documents_of(contents.attributes)
        elif isinstance(value, ModelContents):
            setattr(model, name, _build(value, classes, objects, path))
        else:
            setattr(model, name, value if name == "history_" else _restored(value, objects, path))
    return model


def _to_header(model: Any, prefix: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the header and the tensors of a fitted estimator; names of nested tensors have a prefix."""
    fitted = {name: value for name, value in vars(model).items() if name.endswith("_") and not name.startswith("_")}
    tensors: dict[str, Array] = {}
    plain: dict[str, Any] = {}
    nested: dict[str, Any] = {}
    for name, value in fitted.items():
        if name == "history_":
            tensors.update({prefix + _HISTORY + column: array for column, array in value.items()})
        elif isinstance(value, FittedTopics | TrainingDocuments):
            plain[name], arrays = _describe_fitted(value) if name == _FITTED else _describe_documents(value)
            tensors.update({f"{prefix}{name}.{key}": array for key, array in arrays.items()})
        elif isinstance(value, BaseEstimator):
            _check_own_class(value)
            nested[name], more = _to_header(value, f"{prefix}{name}.")
            tensors.update(more)
        elif isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
            tensors[prefix + name] = value
        elif isinstance(value, np.ndarray):
            plain[name] = [str(item) for item in value]
        else:
            plain[name] = _parameter(name, value)
    header = {
        "class": type(model).__name__,
        "parameters": settings_of(model),
        "attributes": plain,
        "history": list(fitted.get("history_", ())),
    }
    return header | ({"nested": nested} if nested else {}), tensors


def _describe_fitted(fitted: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the fields of a fitted model: those that are JSON values, and arrays by name."""
    inference, arrays = _describe_inference(fitted.inference)
    plain = {
        "n_tokens": fitted.n_tokens,
        "n_documents": fitted.n_documents,
        "vocabulary": None if fitted.vocabulary is None else [str(word) for word in fitted.vocabulary],
        "inference": inference,
    }
    arrays |= {name: getattr(fitted, name) for name in _FITTED_ARRAYS}
    if fitted.document_prior is not None:
        arrays["document_prior"] = fitted.document_prior
    if fitted.word_documents is not None:
        arrays |= {f"word_documents.{name}": array for name, array in fitted.word_documents._asdict().items()}
    return plain, arrays


def _describe_inference(inference: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the fields of an inference: those that are JSON values, and arrays by name."""
    plain: dict[str, Any] = {"kind": inference.kind}
    arrays: dict[str, Array] = {}
    for field in fields(inference):
        value = getattr(inference, field.name)
        if isinstance(value, Background):
            arrays["inference.background"] = value.word_probabilities
            plain[field.name] = {"share": value.share, "joint": value.joint}
        elif isinstance(value, np.ndarray):
            arrays[f"inference.{field.name}"] = value
        else:
            plain[field.name] = _parameter(field.name, value)
    return plain, arrays


def _describe_documents(documents: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the fields of training documents: arrays by name only."""
    arrays = {name: getattr(documents, name) for name in _DOCUMENT_ARRAYS}
    return {}, arrays | {f"parameters.{name}": array for name, array in documents.parameters.items()}


def _fitted_of(attributes: Mapping[str, Any], objects: Mapping[str, Callable[..., Any]], path: Path) -> FittedTopics:
    """Inverse of `_describe_fitted`, from the attributes of an estimator."""
    plain, arrays = attributes[_FITTED], _part(attributes, _FITTED)
    given = plain["inference"]
    settings = {name: value for name, value in given.items() if name not in ("kind", "background")}
    inference: dict[str, Any] = {name: _restored(value, objects, path) for name, value in settings.items()}
    if not isinstance(inference.get("prior"), Prior | None):
        raise ValueError("prior is not a prior")
    if "loss" in inference and not isinstance(inference["loss"], Loss):
        raise ValueError("loss is not a loss")
    inference |= _part(arrays, "inference")
    if given.get("background") is not None:
        kind = JointBackground if given["background"]["joint"] else Background
        inference["background"] = kind(given["background"]["share"], inference["background"])
    sums, prior = _part(arrays, "word_documents"), arrays.get("document_prior")
    return FittedTopics(
        **{name: arrays[name] for name in _FITTED_ARRAYS},
        n_tokens=plain["n_tokens"],
        n_documents=plain["n_documents"],
        inference=_INFERENCES[given["kind"]](**inference),
        vocabulary=None if plain["vocabulary"] is None else _names("vocabulary", plain["vocabulary"]),
        word_documents=WordDocuments(**sums) if sums else None,
        learned_prior=None if prior is None else LearnedPrior(prior),
    )


def _documents_of(attributes: Mapping[str, Any]) -> TrainingDocuments:
    """Inverse of `_describe_documents`, from the attributes of an estimator."""
    arrays = _part(attributes, _DOCUMENTS)
    required = {name: arrays[name] for name in _DOCUMENT_ARRAYS}
    return TrainingDocuments(**required, parameters=_part(arrays, "parameters"))


def _part(arrays: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return the entries whose names start with the prefix and a dot, by the rest of their names."""
    start = f"{prefix}."
    return {name.removeprefix(start): value for name, value in arrays.items() if name.startswith(start)}


def _names(name: str, words: Any) -> Array:
    """Return the names of words as an array."""
    list_of(TEXT).require(name, words)
    return np.array(words, dtype=object)


def settings_of(model: Any) -> dict[str, Any]:
    """Return the parameters of an estimator as JSON values."""
    return {name: _parameter(name, value) for name, value in model.get_params(deep=False).items()}


def _from_header(header: dict[str, Any], tensors: dict[str, Array], prefix: str) -> ModelContents:
    """Inverse of `_to_header`: return the parameters and attributes of an estimator."""
    check_fields(header, _HEADER, required=("class", "parameters", "attributes", "history"), others=not prefix)
    attributes = dict(header["attributes"])
    for name in ("feature_names_in_", "vocabulary_"):
        if attributes.get(name) is not None:
            attributes[name] = _names(name, attributes[name])
    if isinstance(attributes.get("classes_"), list):  # names of classes; classes that are numbers are a tensor
        attributes["classes_"] = _names("classes_", attributes["classes_"]).astype(str)
    arrays = {name.removeprefix(prefix): array for name, array in tensors.items() if name.startswith(prefix)}
    parts = f"{_FITTED}.", f"{_DOCUMENTS}."
    attributes.update({name: array for name, array in arrays.items() if "." not in name or name.startswith(parts)})
    if header["history"]:
        attributes["history_"] = {name: arrays[_HISTORY + name] for name in header["history"]}
    for name, inner in header.get("nested", {}).items():
        attributes[name] = _from_header(inner, tensors, f"{prefix}{name}.")
    return ModelContents(header["class"], header["parameters"], attributes)


def _check_own_class(model: Any) -> None:
    if type(model).__module__.partition(".")[0] != "polyseme":
        raise UnsupportedError(
            f"A {type(model).__name__} of another library cannot be saved: only models of polyseme can."
        )


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise InputError(
        f"{name} of type {type(value).__name__} cannot be saved: set it to a number, a string or None before saving."
    )


def _parameter(name: str, value: Any) -> Any:
    """Return a parameter as a JSON value.

    Parameters of the fit without a JSON form (callback, random generator, start, checkpoint) are omitted. An object
    with settings (a solver, a prior) becomes its class name and its settings.
    """
    if name == "checkpoint":
        return None
    if name in ("callback", "random_state") and not isinstance(value, int | np.integer | None):
        return None
    if name == "init" and not isinstance(value, str):
        return "random"
    if name == "dtype" and value is not None:
        return np.dtype(value).name
    if is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value) if field.compare]
        settings = {name: _parameter(name, getattr(value, name)) for name in names}
        return {"object": type(value).__name__, "settings": settings}
    if isinstance(value, BaseEstimator):
        _check_own_class(value)
        return {"object": type(value).__name__, "settings": settings_of(value)}
    if isinstance(value, Mapping):
        return {"mapping": [[_parameter(name, key), _parameter(name, item)] for key, item in value.items()]}
    if isinstance(value, list | tuple):
        return [_parameter(name, item) for item in value]
    if isinstance(value, np.ndarray):
        return value.tolist()
    return _plain(name, value)


def _restored(value: Any, objects: Mapping[str, Callable[..., Any]], path: Path) -> Any:
    """Inverse of `_parameter`. Only classes in `objects` are built."""
    if isinstance(value, list):
        return [_restored(item, objects, path) for item in value]
    if not isinstance(value, dict):
        return value
    if "mapping" in value:
        return {_restored(key, objects, path): _restored(item, objects, path) for key, item in value["mapping"]}
    if value.get("object") not in objects:
        raise ModelFileError(
            f"{path} uses {value.get('object')!r}, which this version of polyseme does not have: "
            "use the version that wrote it."
        )
    settings = {name: _restored(setting, objects, path) for name, setting in value["settings"].items()}
    return objects[value["object"]](**settings)


# checks of fitted attributes

_SHAPES = {
    "fitted_.topic_word": "KW", "fitted_.topic_weights": "K", "fitted_.unigram": "W", "fitted_.active": "K",
    "fitted_.word_documents.amounts": "KW", "fitted_.word_documents.topics": "K", "fitted_.word_documents.words": "W",
    "fitted_.inference.background": "W", "fitted_.inference.topic_word": "KW", "fitted_.inference.alpha": "K",
    "fitted_.inference.eta": "W", "fitted_.inference.mean": "K", "fitted_.inference.covariance": "KK",
    "documents_.doc_weights": "D", "documents_.doc_topic": "DK", "documents_.background": "D",
    "documents_.parameters.factor": "DK",
    "documents_.parameters.gamma": "DK", "documents_.parameters.mean": "DK", "documents_.parameters.variance": "DK",
    "components_": "KW", "doc_topic_": "DK", "topic_weights_": "K", "word_background_": "W", "doc_totals_": "D",
    "doc_vectors_": "DK", "word_weights_": "W", "singular_values_": "K",
    "explained_variance_ratio_": "K", "doc_topic_prior_": "K", "topic_word_prior_": "W", "parents_": "N",
    "leaves_": "K", "node_word_": "NW", "leaf_node_": "KN", "node_weights_": "N", "node_word_documents_": "NW",
    "labels_": "D", "silent_": "S", "topic_classes_": "K",
}  # fmt: skip
"""Axes of fitted arrays: documents D, topics (or leaves) K, words W, nodes N and silent nodes S."""
_DOCUMENT_FILES = {
    name: f"{name.rpartition('.')[2].strip('_')}.npy" for name, axes in _SHAPES.items() if axes.startswith("D")
}
"""Files of the arrays with one row per training document."""
_DTYPES = dict.fromkeys(("parents_", "leaves_", "silent_", "labels_", "topic_classes_"), ("int64",)) | {
    "fitted_.active": ("bool",)
}
"""Types of fitted arrays; all others are float32 or float64."""
_NUMBER = number(-np.inf, np.inf)
_SETTING = either(_NUMBER, object_with({"object": TEXT, "settings": OBJECT}, required=("object", "settings")))
_BACKGROUND = {"share": number(0, 1), "joint": FLAG}
_INFERENCE = {
    "likelihood": {
        "kind": TEXT, "temperature": _NUMBER, "prior": either(NULL, _SETTING),
        "topic_share": either(NULL, number(0, 1)),
        "background": either(NULL, object_with(_BACKGROUND, required=tuple(_BACKGROUND))),
    },
    "dirichlet": {"kind": TEXT},
    "logistic-normal": {"kind": TEXT},
    "loss": {"kind": TEXT, "loss": _SETTING, "free_scale": FLAG},
}  # fmt: skip
"""Fields of an inference that are not arrays, by its kind."""
_INFERENCE_ARRAYS = {
    "likelihood": (),
    "dirichlet": ("topic_word", "alpha", "eta"),
    "logistic-normal": ("mean", "covariance"),
    "loss": (),
}
"""Arrays that an inference must have, by its kind."""
_FITTED_FIELDS = {
    "n_tokens": _NUMBER, "n_documents": _NUMBER, "vocabulary": either(NULL, list_of(TEXT)), "inference": OBJECT,
}  # fmt: skip
_PLAIN_FIELDS = {
    "n_features_in_": COUNT, "n_components_": COUNT, "n_iter_": COUNT, "converged_": FLAG, "n_tokens_": _NUMBER,
    "loss_": TEXT, "weights_": one_of("counts", "tf-idf", "log-entropy"), "total_": number(1e-30, 1e30),
    "solver_": TEXT, "log_likelihood_": either(_NUMBER, NOT_A_NUMBER),
    "bound_": either(_NUMBER, NOT_A_NUMBER), "reconstruction_err_": either(_NUMBER, NOT_A_NUMBER),
    _FITTED: OBJECT, _DOCUMENTS: either(NULL, OBJECT), "multilabel_": FLAG,
    "threshold_": either(number(0, 1), NOT_A_NUMBER),
}  # fmt: skip


def _has_wrong_type(name: str, array: Array) -> bool:
    return array.dtype.name not in _DTYPES.get(name, ("float32", "float64"))


def _check_fitted(attributes: Mapping[str, Any]) -> None:
    """Raise ValueError unless the fitted model and its training documents have all their fields, and no others."""
    given = {name for name in attributes if name.startswith((f"{_FITTED}.", f"{_DOCUMENTS}."))}
    required: set[str] = set()
    if attributes.get(_FITTED) is not None:
        check_fields(attributes[_FITTED], _FITTED_FIELDS, required=tuple(_FITTED_FIELDS))
        if _DOCUMENTS not in attributes:
            raise ValueError(f"{_DOCUMENTS} is missing")
        inference = attributes[_FITTED]["inference"]
        kind = inference.get("kind")
        one_of(*_INFERENCE).require("kind", kind)
        check_fields(inference, _INFERENCE[kind], required=tuple(_INFERENCE[kind]))
        required |= {f"{_FITTED}.{name}" for name in _FITTED_ARRAYS}
        required |= {f"{_FITTED}.inference.{name}" for name in _INFERENCE_ARRAYS[kind]}
        if inference.get("background") is not None:
            required.add(f"{_FITTED}.inference.background")
        sums = {f"{_FITTED}.word_documents.{name}" for name in WordDocuments._fields}
        required |= sums if sums & given else set()
        prior = f"{_FITTED}.document_prior"
        if prior in given:
            required.add(prior)
            _check_prior(attributes[prior], attributes[f"{_FITTED}.topic_word"], inference)
    if attributes.get(_DOCUMENTS) is not None:
        required |= {f"{_DOCUMENTS}.{name}" for name in _DOCUMENT_ARRAYS}
        given -= {name for name in _SHAPES if name.startswith(f"{_DOCUMENTS}.parameters.")}
    if given != required:
        raise ValueError(f"{sorted(given ^ required)[0]} is missing or unknown")


def _check_prior(prior: Any, topic_word: Any, inference: Mapping[str, Any]) -> None:
    """Raise ValueError unless the learned prior has a positive parameter for each topic and for the background."""
    if inference["kind"] != MaximumLikelihood.kind:
        raise ValueError("document_prior is given, but the inference has its own prior")
    size = len(topic_word) + (inference["background"] is not None)
    if not isinstance(prior, np.ndarray) or prior.dtype != np.float64 or prior.shape != (size,):
        raise ValueError(f"document_prior must have {size} numbers")
    if not (np.isfinite(prior) & (prior > 0)).all():
        raise ValueError("document_prior is not positive and finite")


def check_attributes(attributes: Mapping[str, Any]) -> None:
    """Raise ValueError if fitted attributes have wrong types, or shapes that do not fit together."""
    sizes: dict[str, int] = {}
    check_fields(dict(attributes), _PLAIN_FIELDS, others=True)
    for name, axes in _SHAPES.items():
        array = attributes.get(name)
        if array is None:
            continue
        if not isinstance(array, np.ndarray) or array.ndim != len(axes) or _has_wrong_type(name, array):
            raise ValueError(f"{name} has a wrong type or number of dimensions")
        for axis, size in zip(axes, array.shape, strict=True):
            if sizes.setdefault(axis, size) != size:
                raise ValueError(f"the arrays do not fit together: {name} has {size} where others have {sizes[axis]}")
        if not all(np.isfinite(rows).all() for rows in row_blocks(array)):
            raise ValueError(f"{name} is not finite")
    _check_fitted(attributes)
    if "W" in sizes and attributes.get("n_features_in_", sizes["W"]) != sizes["W"]:
        raise ValueError("n_features_in_ is not the number of words")
    words = {name: attributes.get(name) for name in ("vocabulary_", "feature_names_in_")}
    words["vocabulary"] = attributes.get(_FITTED, {}).get("vocabulary")
    for name, names in words.items():
        if names is not None and len(names) != sizes.get("W", len(names)):
            raise ValueError(f"{name} does not have one name for each word")
    if "topic_classes_" in attributes:
        classes, tied = attributes.get("classes_"), attributes["topic_classes_"]
        if not isinstance(classes, np.ndarray) or classes.ndim != 1 or not len(classes):
            raise ValueError("classes_ is missing or has a wrong type")
        if tied.min() < -2 or tied.max() >= len(classes):
            raise ValueError("topic_classes_ has an index that is not one of a class")
    if "parents_" in attributes:
        tree = as_tree(attributes["parents_"], 0, 0, [int(node) for node in attributes.get("silent_", ())])
        if attributes.get("leaves_", np.empty(0)).tolist() != list(tree.leaves):
            raise ValueError("leaves_ are not the leaves of the tree")
        either(NULL, list_of(TEXT)).require("node_names_", attributes.get("node_names_"))
        if len(attributes.get("node_names_") or tree.parents) != len(tree.parents):
            raise ValueError("node_names_ does not have one name for each node")
    for name, array in attributes.get("history_", {}).items():
        if array.ndim != 1 or array.dtype.kind not in "fi":
            raise ValueError(f"the history of {name} has a wrong type")
