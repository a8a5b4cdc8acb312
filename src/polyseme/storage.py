"""Model files: safetensors with a format version, the parameters and a digest. No pickle, nothing executed.

Tensors hold the fitted arrays; the metadata of the file is one JSON text (`polyseme`) with everything else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_safetensors
from sklearn.base import BaseEstimator

from polyseme.errors import InputError, ModelFileError, UnsupportedError
from polyseme.files import write_atomically
from polyseme.kernels import Array

FORMAT_VERSION = 1
_KEY, _DIGEST = "polyseme", "digest"
_HISTORY = "history_."


def save(model: Any, path: str | PathLike[str]) -> None:
    """Writes a fitted estimator to `path`, atomically: a crash or a full disk leaves the old file as it was."""
    described, tensors = _taken_apart(model, "")
    header = {"format_version": FORMAT_VERSION, "library_version": version("polyseme"), **described}
    text = json.dumps(header)
    write_atomically(path, to_safetensors(tensors, metadata={_KEY: text, _DIGEST: digest_of(text, tensors)}))


class Parts(NamedTuple):
    """An estimator taken apart; attributes that are estimators are Parts again."""

    class_name: str
    parameters: dict[str, Any]
    attributes: dict[str, Any]


def read(path: str | PathLike[str]) -> Parts:
    """Class name, parameters and fitted attributes of a model file, checked against its digest."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no model file {path}.")
    try:
        with safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        text, found = metadata[_KEY], metadata[_DIGEST]
        header = json.loads(text)
        format_version = int(header["format_version"])
    except KeyError:
        raise ModelFileError(f"{path} is not a polyseme model.") from None
    except (SafetensorError, ValueError, TypeError, AttributeError, OverflowError) as error:
        raise ModelFileError(f"{path} is damaged or is not a polyseme model ({error}).") from None
    if format_version > FORMAT_VERSION:
        raise ModelFileError(
            f"{path} was written by polyseme {header.get('library_version')} in a newer format: "
            "update polyseme to read it."
        )
    if found != digest_of(text, tensors):
        raise ModelFileError(f"{path} is damaged: its digest does not match its content; restore a copy, or fit again.")
    return _put_together(header, tensors, "")


def restore(
    path: str | PathLike[str], classes: Mapping[str, Callable[..., Any]], objects: Mapping[str, Callable[..., Any]]
) -> Any:
    """The estimator in a model file; `classes` names the estimators, `objects` the settings, that may be built."""
    return _built(read(path), classes, {**objects, **classes}, Path(path))


def _built(
    parts: Parts, classes: Mapping[str, Callable[..., Any]], objects: Mapping[str, Callable[..., Any]], path: Path
) -> Any:
    if parts.class_name not in classes:
        raise ModelFileError(
            f"{path} holds a {parts.class_name}, which this version of polyseme does not have: "
            "use the one that wrote it."
        )
    model = classes[parts.class_name](
        **{name: _restored(value, objects, path) for name, value in parts.parameters.items()}
    )
    for name, value in parts.attributes.items():
        if isinstance(value, Parts):
            setattr(model, name, _built(value, classes, objects, path))
        else:
            setattr(model, name, value if name == "history_" else _restored(value, objects, path))
    return model


def _taken_apart(model: Any, prefix: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header of a fitted estimator and its tensors; those of an estimator within it carry its name as a prefix."""
    fitted = {name: value for name, value in vars(model).items() if name.endswith("_") and not name.startswith("_")}
    tensors: dict[str, Array] = {}
    plain: dict[str, Any] = {}
    nested: dict[str, Any] = {}
    for name, value in fitted.items():
        if name == "history_":
            tensors.update({prefix + _HISTORY + column: np.ascontiguousarray(array) for column, array in value.items()})
        elif isinstance(value, BaseEstimator):
            _refuse_foreign(value)
            nested[name], more = _taken_apart(value, f"{prefix}{name}.")
            tensors.update(more)
        elif isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
            tensors[prefix + name] = np.ascontiguousarray(value)
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


def settings_of(model: Any) -> dict[str, Any]:
    """The parameters of an estimator as JSON."""
    return {name: _parameter(name, value) for name, value in model.get_params(deep=False).items()}


def _put_together(header: dict[str, Any], tensors: dict[str, Array], prefix: str) -> Parts:
    """Inverse of `_taken_apart`: the parts of an estimator from its header and tensors."""
    attributes = dict(header["attributes"])
    for name in ("feature_names_in_", "vocabulary_"):
        if attributes.get(name) is not None:
            attributes[name] = np.array(attributes[name], dtype=object)
    own = {name.removeprefix(prefix): array for name, array in tensors.items() if name.startswith(prefix)}
    attributes.update({name: array for name, array in own.items() if "." not in name})
    if header["history"]:
        attributes["history_"] = {name: own[_HISTORY + name] for name in header["history"]}
    for name, inner in header.get("nested", {}).items():
        attributes[name] = _put_together(inner, tensors, f"{prefix}{name}.")
    return Parts(header["class"], header["parameters"], attributes)


def _refuse_foreign(model: Any) -> None:
    if type(model).__module__.partition(".")[0] != "polyseme":
        raise UnsupportedError(
            f"A {type(model).__name__} of another library cannot be saved: only polyseme's own models can."
        )


def digest_of(text: str, tensors: dict[str, Array]) -> str:
    """SHA-256 of a text and of arrays with their names, types and shapes."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise InputError(f"{name} of type {type(value).__name__} cannot be saved: give a plain value before saving.")


def _parameter(name: str, value: Any) -> Any:
    """A parameter as JSON.

    What only steers a fit and has no plain form (a callback, a generator, a start, a checkpoint) is left out; an object
    with settings (a solver, a prior) is kept as its class and its settings.
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
        kept = [field.name for field in fields(value) if field.compare]
        settings = {name: _parameter(name, getattr(value, name)) for name in kept}
        return {"object": type(value).__name__, "settings": settings}
    if isinstance(value, BaseEstimator):
        _refuse_foreign(value)
        return {"object": type(value).__name__, "settings": settings_of(value)}
    if isinstance(value, Mapping):
        return {"mapping": [[_parameter(name, key), _parameter(name, item)] for key, item in value.items()]}
    if isinstance(value, list | tuple):
        return [_parameter(name, item) for item in value]
    if isinstance(value, np.ndarray):
        return value.tolist()
    return _plain(name, value)


def _restored(value: Any, objects: Mapping[str, Callable[..., Any]], path: Path) -> Any:
    """The other way; `objects` names the classes that may be built."""
    if isinstance(value, list):
        return [_restored(item, objects, path) for item in value]
    if not isinstance(value, dict):
        return value
    if "mapping" in value:
        return {_restored(key, objects, path): _restored(item, objects, path) for key, item in value["mapping"]}
    if value.get("object") not in objects:
        raise ModelFileError(
            f"{path} uses {value.get('object')!r}, which this version of polyseme does not have: "
            "use the one that wrote it."
        )
    settings = {name: _restored(setting, objects, path) for name, setting in value["settings"].items()}
    return objects[value["object"]](**settings)
