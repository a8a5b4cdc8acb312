"""Model files: safetensors with a format version, the parameters and a digest.

The tensors are the fitted arrays. The metadata has one JSON object (`polyseme`) with everything else, and the digest.
There is no pickle, and nothing in a file is executed. The fitted model (`FittedTopics`) and its training documents are
stored field by field: arrays as tensors with names such as "fitted_.topic_word", the rest in the JSON object.

What a file may contain is declared by the classes: an estimator declares its fitted attributes (`_stored`) and the
kinds of inference of its fitted model (`_inferences`), and these declare their arrays.

Arrays with one row per training document can be larger than memory. With `documents_beside` each of them is a .npy file
beside the model file (doc_topic.npy, doc_weights.npy ...), whose name, shape, type and digest are in the header. The
files are written in blocks, and mapped when the model is loaded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from polyseme.core.dirichlet import DirichletPosterior
from polyseme.core.fitted import FittedTopics, LearnedPrior, StoredArray, TrainingDocuments, WordDocuments
from polyseme.core.fold_in import LeastLoss, MaximumLikelihood
from polyseme.core.logistic_normal import LogisticNormalPosterior
from polyseme.core.mixture import MixturePosterior
from polyseme.core.model import Background, JointBackground
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
    Check,
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
from polyseme.losses.base import Loss
from polyseme.priors.base import Prior

FORMAT_VERSION = 2
"""Version of the model files that this version of polyseme writes and reads. Version 1 was never released."""
_HEADER = {
    "class": TEXT,
    "parameters": OBJECT,
    "attributes": OBJECT,
    "history": list_of(TEXT, distinct=True),
    "nested": mapping_to(OBJECT),
}
"""Fields of an estimator in the header of a file, and of the estimators that it contains."""
_REQUIRED = ("class", "parameters", "attributes", "history")
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
_KEY, _DIGEST, _BESIDE, _PIPELINE = "polyseme", "digest", "beside", "pipeline"
_HISTORY = "history_."
_FLOATS_AND_INTEGERS = one_of("float32", "float64", "int64")
_SHAPE = list_of(COUNT, most=2)
_FILE_FIELDS = {"file": TEXT, "shape": _SHAPE, "dtype": _FLOATS_AND_INTEGERS, "sha256": TEXT}
"""Fields of an array in a file beside the model file."""
_CONSTANT_FIELDS = {"value": number(0, 1)}
"""Field of the share of the background if it is the same in all documents, so that it needs no file."""
_FITTED, _DOCUMENTS = "fitted_", "documents_"
_DOC_WEIGHTS, _BACKGROUND_SHARES = "documents_.doc_weights", "documents_.background"
NUMBER = number(-np.inf, np.inf)
_SETTING = either(NUMBER, object_with({"object": TEXT, "settings": OBJECT}, required=("object", "settings")))
_BACKGROUND = {"share": number(0, 1), "joint": FLAG}
_INFERENCE = {
    MaximumLikelihood: {
        "kind": TEXT, "temperature": NUMBER, "prior": either(NULL, _SETTING),
        "topic_share": either(NULL, number(0, 1)),
        "background": either(NULL, object_with(_BACKGROUND, required=tuple(_BACKGROUND))),
    },
    DirichletPosterior: {"kind": TEXT},
    LogisticNormalPosterior: {"kind": TEXT},
    MixturePosterior: {"kind": TEXT},
    LeastLoss: {"kind": TEXT, "loss": _SETTING, "free_scale": FLAG},
}  # fmt: skip
"""Fields of an inference that are not arrays."""
_FITTED_FIELDS = {
    "n_tokens": NUMBER, "n_documents": NUMBER, "vocabulary": either(NULL, list_of(TEXT)), "inference": OBJECT,
}  # fmt: skip


class StoredValue(NamedTuple):
    """Declaration of a fitted attribute that is not an array."""

    check: Check
    required: bool = False


Stored = StoredArray | StoredValue
StoredAttributes = Mapping[str, Stored]
INTEGERS = ("int64",)
"""Dtypes of indices."""
WORDS = StoredArray("W", ("object",), required=False)
"""Declaration of the names of words."""
NUMBER_OR_NAN = StoredValue(either(NUMBER, NOT_A_NUMBER))
NESTED = Check(lambda value: isinstance(value, BaseEstimator), "an estimator")


def save(
    model: Any,
    path: str | PathLike[str],
    *,
    documents_beside: bool = False,
    pipeline: Mapping[str, Any] | None = None,
) -> None:
    """Write a fitted estimator to a file, atomically: after a crash or on a full disk the old file is unchanged.

    `pipeline` is the description of the pipeline that ends with the model, as JSON values.

    With `documents_beside`, arrays with one row per training document are .npy files in the same folder. Each file is
    written atomically, the model file last. After a crash between two files, an older model file may not match the new
    arrays, and loading it raises an error: to replace a model, write to a new folder.
    """
    described, tensors = _to_header(model, "")
    header = {"format_version": FORMAT_VERSION, "library_version": version("polyseme"), **described}
    if pipeline is not None:
        header[_PIPELINE] = pipeline
    if documents_beside:
        files, folder = _document_files(type(model)), Path(path).parent
        moved = {name: tensors.pop(name) for name in files if name in tensors}
        header[_BESIDE] = {name: _write_beside(name, array, folder / files[name]) for name, array in moved.items()}
    text = json.dumps(header)
    contiguous = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    write_safetensors(path, contiguous, {_KEY: text, _DIGEST: digest_of(text, contiguous)})


def _write_beside(name: str, array: Array, path: Path) -> dict[str, Any]:
    """Write an array to its own file, and return its description. A constant share of the background needs no file."""
    if name == _BACKGROUND_SHARES and len(array) and (array == array[0]).all():
        return {"value": float(array[0])}
    digest = write_npy(path, array)
    return {"file": path.name, "shape": list(array.shape), "dtype": array.dtype.name, "sha256": digest}


def _document_files(model_class: Any) -> dict[str, str]:
    """Return the names of the arrays with one row per training document, and of their files."""
    arrays = {name: array for name, array in model_class._stored.items() if isinstance(array, StoredArray)}
    if model_class._inferences:
        arrays |= _prefixed(_DOCUMENTS, TrainingDocuments.stored)
    for kind in model_class._inferences:
        arrays |= _prefixed(f"{_DOCUMENTS}.parameters", kind.stored_by_document)
    names = (name for name, array in arrays.items() if array.axes.startswith("D"))
    return {name: f"{name.rpartition('.')[2].strip('_')}.npy" for name in names}


def _read_beside(given: Any, files: Mapping[str, str], folder: Path, *, check_digests: bool) -> dict[str, Array]:
    """Return the arrays beside a model file, mapped, by name. Raise ModelFileError if a file is missing or damaged."""
    OBJECT.require(_BESIDE, given)
    arrays: dict[str, Array] = {}
    for name, entry in given.items():
        one_of(*files).require("the name of an array of the documents", name)
        if name == _BACKGROUND_SHARES and isinstance(entry, dict) and "value" in entry:
            continue  # added below
        check_fields(entry, _FILE_FIELDS, required=tuple(_FILE_FIELDS))
        one_of(files[name]).require(f"the file of {name}", entry["file"])
        path = folder / files[name]
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


def restore(
    path: str | PathLike[str],
    classes: Mapping[str, type[Any]],
    objects: Mapping[str, Callable[..., Any]],
    *,
    pipeline: Callable[[Any, Any], Any],
    check_documents: bool = True,
) -> Any:
    """Return the estimator in a model file. Only `classes` (estimators) and `objects` (settings) are built.

    pipeline : returns the pipeline that ends with a model, from the model and a description, which it checks.
    check_documents : whether to check the digests of arrays in files beside the model file.
    """
    path = Path(path)
    header, tensors = _read(path)
    reader = _Reader(path, classes, {**objects, **classes})
    try:
        check_fields(header, _HEADER, required=_REQUIRED, others=True)
        files = _document_files(reader.class_of(header))
        beside = _read_beside(header.get(_BESIDE, {}), files, path.parent, check_digests=check_documents)
        if beside.keys() & tensors.keys():
            raise ValueError(f"{min(beside.keys() & tensors.keys())} is stored twice")
        model = reader.build(header, tensors | beside)
        return pipeline(model, header[_PIPELINE]) if _PIPELINE in header else model
    except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
        raise ModelFileError(f"{path} is damaged: {error}; restore a copy, or fit again.") from None


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the header and the tensors of a model file, after a check of its version and digest."""
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
    if header["format_version"] < FORMAT_VERSION:
        raise ModelFileError(f"{path} was written by an early version of polyseme: fit the model again.")
    if digest != digest_of(text, tensors):
        raise ModelFileError(f"{path} is damaged: its digest does not match its content; restore a copy, or fit again.")
    return header, tensors


@dataclass(frozen=True)
class _Reader:
    """Builds the estimators of a model file from headers and tensors, after checks against their declarations."""

    path: Path
    classes: Mapping[str, type[Any]]
    objects: Mapping[str, Callable[..., Any]]
    """Classes of parameters."""

    def class_of(self, header: Mapping[str, Any]) -> Any:
        if header["class"] not in self.classes:
            raise ModelFileError(
                f"{self.path} holds a {header['class']}, which this version of polyseme does not have: "
                "use the version that wrote it."
            )
        return self.classes[header["class"]]

    def build(self, header: dict[str, Any], tensors: Mapping[str, Array]) -> Any:
        """Return the estimator that `_to_header` described."""
        model_class = self.class_of(header)
        check_fields(header["parameters"], _PARAMETERS, others=True)
        model = model_class(**{name: self.restored(value) for name, value in header["parameters"].items()})
        values = header["attributes"] | {name: array for name, array in tensors.items() if "." not in name}
        for name, inner in header.get("nested", {}).items():
            check_fields(inner, _HEADER, required=_REQUIRED)
            values[name] = self.build(inner, _part(tensors, name))
        missing = [name for name, field in model_class._stored.items() if field.required and values.get(name) is None]
        if missing:
            raise ValueError(f"{missing[0]} is missing")
        sizes: dict[str, int] = {}
        for name, value in values.items():
            # factor_*_ declares factor_0_, factor_1_ ...
            field = model_class._stored.get(name) or model_class._stored.get(re.sub("[0-9]+", "*", name))
            if field is None:
                raise ValueError(f"{name!r} is not an attribute of a fitted {header['class']}")
            if isinstance(field, StoredValue):
                field.check.require(name, value)
                if name not in (_FITTED, _DOCUMENTS):  # built below
                    setattr(model, name, value if field.check is NESTED else self.restored(value))
            elif value is None and not field.required:
                setattr(model, name, None)
            else:
                setattr(model, name, _checked_array(name, value, field, sizes))
        if _FITTED in values:
            model._fitted = self._fitted(values[_FITTED], _part(tensors, _FITTED), model_class, sizes)
            if _DOCUMENTS not in values:
                raise ValueError(f"{_DOCUMENTS} is missing")
            arrays, model._training = _part(tensors, _DOCUMENTS), None
            if values[_DOCUMENTS] is not None:
                model._training = _documents(arrays, type(model._fitted.inference), sizes)
            elif arrays:
                raise ValueError(f"{_DOCUMENTS} is null, but {min(arrays)} is given")
        if "W" in sizes and values.get("n_features_in_", sizes["W"]) != sizes["W"]:
            raise ValueError("n_features_in_ is not the number of words")
        if header["history"]:
            model.history_ = {name: tensors[_HISTORY + name] for name in header["history"]}
            for name, array in model.history_.items():
                if array.ndim != 1 or array.dtype.kind not in "fi":
                    raise ValueError(f"the history of {name} has a wrong type")
        model._check_stored()
        return model

    def _fitted(
        self, plain: dict[str, Any], arrays: dict[str, Any], model_class: Any, sizes: dict[str, int]
    ) -> FittedTopics:
        """Inverse of `_describe_fitted`."""
        check_fields(plain, _FITTED_FIELDS, required=tuple(_FITTED_FIELDS))
        given, kinds = plain["inference"], {kind.kind: kind for kind in model_class._inferences}
        one_of(*kinds).require("kind", given.get("kind"))
        kind = kinds[given["kind"]]
        check_fields(given, _INFERENCE[kind], required=tuple(_INFERENCE[kind]))
        declared = {**FittedTopics.stored, **_prefixed("inference", kind.stored)}
        if given.get("background") is not None:
            declared["inference.background"] = StoredArray("W")
        if sums := _part(arrays, "word_documents"):
            declared |= _prefixed("word_documents", FittedTopics.stored_words)
        prior = arrays.pop("document_prior", None)
        _check_arrays(_FITTED, arrays, declared, sizes)
        if prior is not None:
            _check_prior(prior, len(arrays["topic_word"]), given)
        vocabulary = plain["vocabulary"]
        if vocabulary is not None:
            vocabulary = _checked_array("vocabulary", vocabulary, WORDS, sizes)
        settings = {name: value for name, value in given.items() if name not in ("kind", "background")}
        inference: dict[str, Any] = {name: self.restored(value) for name, value in settings.items()}
        if not isinstance(inference.get("prior"), Prior | None):
            raise ValueError("prior is not a prior")
        if "loss" in inference and not isinstance(inference["loss"], Loss):
            raise ValueError("loss is not a loss")
        penalized = inference["loss"].penalized if "loss" in inference else None
        if penalized is not None and len(penalized.docs.scales) != len(arrays["topic_word"]):
            raise ValueError("loss must have a scale for each topic")
        inference |= _part(arrays, "inference")
        if given.get("background") is not None:
            background = JointBackground if given["background"]["joint"] else Background
            inference["background"] = background(given["background"]["share"], inference["background"])
        return FittedTopics(
            **{name: arrays[name] for name in FittedTopics.stored},
            n_tokens=plain["n_tokens"],
            n_documents=plain["n_documents"],
            inference=kind(**inference),
            vocabulary=vocabulary,
            word_documents=WordDocuments(**sums) if sums else None,
            learned_prior=None if prior is None else LearnedPrior(prior),
        )

    def restored(self, value: Any) -> Any:
        """Inverse of `_parameter`. Only classes in `objects` are built."""
        if isinstance(value, list):
            return [self.restored(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "mapping" in value:
            return {self.restored(key): self.restored(item) for key, item in value["mapping"]}
        if value.get("object") not in self.objects:
            raise ModelFileError(
                f"{self.path} uses {value.get('object')!r}, which this version of polyseme does not have: "
                "use the version that wrote it."
            )
        settings = {name: self.restored(setting) for name, setting in value["settings"].items()}
        return self.objects[value["object"]](**settings)


def _checked_array(name: str, value: Any, field: StoredArray, sizes: dict[str, int]) -> Array:
    """Return an array that has the declared dtype and axes; lists of strings become arrays.

    `sizes` are the sizes of the axes that are known from other arrays.
    """
    if isinstance(value, list) and not {"object", "str"}.isdisjoint(field.dtypes):
        list_of(TEXT).require(name, value)
        value = np.array(value, dtype=object)
        if "str" in field.dtypes:
            value = value.astype(str)
    elif not isinstance(value, np.ndarray) or value.dtype.name not in field.dtypes:
        raise ValueError(f"{name} has a wrong type or number of dimensions")
    axes = next((axes for axes in field.axes.split("|") if len(axes) == value.ndim), None)
    if axes is None:
        raise ValueError(f"{name} has a wrong type or number of dimensions")
    for axis, size in zip(axes, value.shape, strict=True):
        if axis != "*" and sizes.setdefault(axis, size) != size:
            raise ValueError(f"the arrays do not fit together: {name} has {size} where others have {sizes[axis]}")
    if value.dtype.kind == "f" and not all(np.isfinite(rows).all() for rows in row_blocks(value)):
        raise ValueError(f"{name} is not finite")
    return value


def _check_arrays(
    prefix: str, arrays: Mapping[str, Any], declared: Mapping[str, StoredArray], sizes: dict[str, int]
) -> None:
    """Raise ValueError unless there are all declared arrays and no others, and each is as declared."""
    required = {name for name, field in declared.items() if field.required}
    wrong = (arrays.keys() - declared.keys()) | (required - arrays.keys())
    if wrong:
        raise ValueError(f"{prefix}.{min(wrong)} is missing or unknown")
    for name, array in arrays.items():
        _checked_array(f"{prefix}.{name}", array, declared[name], sizes)


def _documents(arrays: dict[str, Any], kind: Any, sizes: dict[str, int]) -> TrainingDocuments:
    """Inverse of `_describe_documents`."""
    parameters = _part(arrays, "parameters")
    optional = {name: field._replace(required=False) for name, field in kind.stored_by_document.items()}
    _check_arrays(_DOCUMENTS, arrays, {**TrainingDocuments.stored, **_prefixed("parameters", optional)}, sizes)
    return TrainingDocuments(**{name: arrays[name] for name in TrainingDocuments.stored}, parameters=parameters)


def _check_prior(prior: Any, n_topics: int, inference: Mapping[str, Any]) -> None:
    """Raise ValueError unless the learned prior has a positive parameter for each topic and for the background."""
    if inference["kind"] != MaximumLikelihood.kind:
        raise ValueError("document_prior is given, but the inference has its own prior")
    size = n_topics + (inference["background"] is not None)
    if not isinstance(prior, np.ndarray) or prior.dtype != np.float64 or prior.shape != (size,):
        raise ValueError(f"document_prior must have {size} numbers")
    if not (np.isfinite(prior) & (prior > 0)).all():
        raise ValueError("document_prior is not positive and finite")


def _to_header(model: Any, prefix: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the header and the tensors of a fitted estimator; names of nested tensors have a prefix."""
    fitted = {name: value for name, value in vars(model).items() if name.endswith("_") and not name.startswith("_")}
    plain, parts = _describe_parts(model)
    tensors = {prefix + name: array for name, array in parts.items()}
    nested: dict[str, Any] = {}
    for name, value in fitted.items():
        if name == "history_":
            tensors.update({prefix + _HISTORY + column: array for column, array in value.items()})
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


def _describe_parts(model: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the fields of the fitted model and the training documents that an estimator holds, if it does."""
    if "_fitted" not in vars(model):
        return {}, {}
    plain, arrays = _describe_fitted(model._fitted)
    arrays = {f"{_FITTED}.{name}": array for name, array in arrays.items()}
    documents = model._training
    if documents is not None:
        arrays |= {f"{_DOCUMENTS}.{name}": getattr(documents, name) for name in TrainingDocuments.stored}
        arrays |= {f"{_DOCUMENTS}.parameters.{name}": array for name, array in documents.parameters.items()}
    return {_DOCUMENTS: None if documents is None else {}, _FITTED: plain}, arrays


def _describe_fitted(fitted: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the fields of a fitted model: those that are JSON values, and arrays by name."""
    inference, arrays = _describe_inference(fitted.inference)
    plain = {
        "n_tokens": fitted.n_tokens,
        "n_documents": fitted.n_documents,
        "vocabulary": None if fitted.vocabulary is None else [str(word) for word in fitted.vocabulary],
        "inference": inference,
    }
    arrays |= {name: getattr(fitted, name) for name in FittedTopics.stored}
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


def _part(arrays: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return the entries whose names start with the prefix and a dot, by the rest of their names."""
    start = f"{prefix}."
    return {name.removeprefix(start): value for name, value in arrays.items() if name.startswith(start)}


def _prefixed(prefix: str, arrays: Mapping[str, StoredArray]) -> dict[str, StoredArray]:
    """Inverse of `_part`, for declarations."""
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def settings_of(model: Any) -> dict[str, Any]:
    """Return the parameters of an estimator as JSON values."""
    return {name: _parameter(name, value) for name, value in model.get_params(deep=False).items()}


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
