"""Model files: safetensors with a format version, the parameters and a digest. No pickle, nothing executed.

Tensors hold the fitted arrays; the metadata of the file is one JSON text (`polyseme`) with everything else.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_safetensors

from polyseme.errors import InputError, ModelFileError
from polyseme.kernels import Array

FORMAT_VERSION = 1
_KEY, _DIGEST = "polyseme", "digest"
_HISTORY = "history_."


def save(model: Any, path: str | PathLike[str]) -> None:
    """Writes a fitted estimator to `path`, atomically: a crash or a full disk leaves the old file as it was."""
    fitted = {name: value for name, value in vars(model).items() if name.endswith("_") and not name.startswith("_")}
    tensors: dict[str, Array] = {}
    plain: dict[str, Any] = {}
    for name, value in fitted.items():
        if name == "history_":
            tensors.update({_HISTORY + column: np.ascontiguousarray(array) for column, array in value.items()})
        elif isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
            tensors[name] = np.ascontiguousarray(value)
        elif isinstance(value, np.ndarray):
            plain[name] = [str(item) for item in value]
        else:
            plain[name] = _parameter(name, value)
    header = {
        "format_version": FORMAT_VERSION,
        "library_version": version("polyseme"),
        "class": type(model).__name__,
        "parameters": {name: _parameter(name, value) for name, value in model.get_params(deep=False).items()},
        "attributes": plain,
        "history": list(fitted.get("history_", ())),
    }
    text = json.dumps(header)
    write_atomically(path, to_safetensors(tensors, metadata={_KEY: text, _DIGEST: _digest(text, tensors)}))


def read(path: str | PathLike[str]) -> tuple[str, dict[str, Any], dict[str, Any]]:
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
    if found != _digest(text, tensors):
        raise ModelFileError(f"{path} is damaged: its digest does not match its content.")
    attributes = dict(header["attributes"])
    if "feature_names_in_" in attributes:
        attributes["feature_names_in_"] = np.array(attributes["feature_names_in_"], dtype=object)
    attributes.update({name: array for name, array in tensors.items() if not name.startswith(_HISTORY)})
    if header["history"]:
        attributes["history_"] = {name: tensors[_HISTORY + name] for name in header["history"]}
    return header["class"], header["parameters"], attributes


def restore(
    path: str | PathLike[str], classes: Mapping[str, Callable[..., Any]], objects: Mapping[str, Callable[..., Any]]
) -> Any:
    """The estimator in a model file; `classes` names the estimators, `objects` the settings, that may be built."""
    class_name, parameters, attributes = read(path)
    if class_name not in classes:
        raise ModelFileError(f"{path} holds a {class_name}, which this version of polyseme does not have.")
    known = {name: _restored(value, objects, Path(path)) for name, value in parameters.items()}
    model = classes[class_name](**known)
    for name, value in attributes.items():
        setattr(model, name, value if name == "history_" else _restored(value, objects, Path(path)))
    return model


def write_atomically(path: str | PathLike[str], content: bytes) -> None:
    """Writes a temporary file beside `path`, flushes it to disk, and renames it."""
    path = Path(path)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name + ".", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _digest(text: str, tensors: dict[str, Array]) -> str:
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
    raise InputError(f"{name} of type {type(value).__name__} cannot be saved.")


def _parameter(name: str, value: Any) -> Any:
    """A parameter as JSON.

    What only steers a fit and has no plain form (a callback, a generator, a start) is left out; an object with settings
    (a solver, a prior) is kept as its class and its settings.
    """
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
        raise ModelFileError(f"{path} uses {value.get('object')!r}, which this version of polyseme does not have.")
    settings = {name: _restored(setting, objects, path) for name, setting in value["settings"].items()}
    return objects[value["object"]](**settings)
