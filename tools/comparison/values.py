"""Results as a flat mapping from names to arrays, strings and None, and its files."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from comparison.compare import Outcome
from comparison.names import VALUES

# Names of attributes, fields and keys that are not compared.
IGNORED = {
    "seconds",  # elapsed time
    "fitted_",  # the same arrays again, as one object
    "tree_",  # parents_, silent_ and node_names_ again
}
# Names of sentences, which are compared as messages.
SENTENCES = {"note", "reason", "selection_reason"}


class Message(str):
    """A text for people: a difference is listed and does not count."""


def flatten(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield pairs (name, array, string, Message or None), the names with dots."""
    if value is None or isinstance(value, str):
        yield name, value
    elif isinstance(value, bool | int | float | np.generic):
        yield name, np.asarray(value)
    elif isinstance(value, bytes):
        yield name, np.frombuffer(value, dtype=np.uint8)
    elif isinstance(value, np.ndarray):
        yield from [(name, value)] if value.dtype != object else flatten(value.tolist(), name)
    elif (pairs := _parts(value)) is not None:
        for key, part in pairs:
            if key not in IGNORED:
                key = VALUES.get(key, key)
                part = Message(part) if key in SENTENCES and isinstance(part, str) else part
                yield from flatten(part, f"{name}.{key}" if name else key)
    else:
        raise TypeError(f"{name}: a {type(value).__name__} cannot be compared; return its numbers and texts.")


def _parts(value: Any) -> Iterator[tuple[str, Any]] | list[tuple[str, Any]] | None:
    """Return the named parts of a value, or None if it has none."""
    if isinstance(value, BaseEstimator):
        return fitted_attributes(value)
    if sp.issparse(value):
        rows = value.tocsr()  # a matrix in this format is returned as it is, with the order of its entries
        return [("format", value.format), ("shape", np.array(value.shape))] + [
            (part, getattr(rows, part)) for part in ("data", "indices", "indptr")
        ]
    if isinstance(value, Mapping):
        return [(str(key), part) for key, part in value.items()]
    if dataclasses.is_dataclass(value):
        public = (field.name for field in dataclasses.fields(value) if not field.name.startswith("_"))
        return ((field, getattr(value, field)) for field in public)
    if hasattr(value, "_fields"):
        return list(zip(value._fields, value, strict=True))
    if isinstance(value, list | tuple):
        return _items(value)
    return None


def _items(value: list[Any] | tuple[Any, ...]) -> Iterator[tuple[str, Any]] | list[tuple[str, Any]]:
    """Return the items of a list by number; numbers and words together, so that a report stays short."""
    numbers = all(isinstance(item, bool | int | float | np.generic) for item in value)
    if value and numbers and len({type(item) for item in value}) == 1:
        return [("items", np.array(value))]
    if all(isinstance(item, str) for item in value):
        return [("items", json.dumps(value))]
    return chain([("length", len(value))], ((str(number), item) for number, item in enumerate(value)))


def fitted_attributes(estimator: Any) -> list[tuple[str, Any]]:
    """Return the public attributes and properties of a fitted estimator whose names end in an underscore."""
    properties = {name for name in dir(type(estimator)) if isinstance(getattr(type(estimator), name, None), property)}
    found = {*vars(estimator), *properties} - {"fitted_", "documents_"}  # their fields are properties
    names = sorted(name for name in found if name.endswith("_") and not name.startswith("_"))
    # A property raises AttributeError where this kind of fit does not set it. None and absent are the same.
    values = [(name, getattr(estimator, name, None)) for name in names]
    return [(name, value) for name, value in values if value is not None]


def outcome_of(value: Any) -> Outcome:
    """Return the outcome of a case that returned this value."""
    leaves = dict(flatten(value))
    messages = {name: str(leaf) for name, leaf in leaves.items() if isinstance(leaf, Message)}
    return Outcome({name: leaf for name, leaf in leaves.items() if name not in messages}, messages)


def write_outcomes(outcomes: Mapping[str, Outcome], path: Path) -> None:
    """Write outcomes by case to path.npz (arrays) and path.json (everything else)."""
    arrays: dict[str, Any] = {}
    table: dict[str, Any] = {}
    for case, outcome in outcomes.items():
        others: dict[str, Any] = {}
        places: dict[str, str] = {}
        for name, value in outcome.values.items():
            if isinstance(value, np.ndarray):
                places[name] = str(len(arrays))
                arrays[places[name]] = value
            else:
                others[name] = value
        table[case] = {**vars(outcome), "values": others, "arrays": places}
    np.savez(path.with_suffix(".npz"), **arrays)
    path.with_suffix(".json").write_text(json.dumps(table), encoding="utf-8")


def read_outcomes(path: Path) -> dict[str, Outcome]:
    """Return the outcomes that `write_outcomes` wrote."""
    table = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    outcomes = {}
    with np.load(path.with_suffix(".npz"), allow_pickle=False) as arrays:
        for case, fields in table.items():
            places = fields.pop("arrays")
            values = {**fields.pop("values"), **{name: arrays[place] for name, place in places.items()}}
            outcomes[case] = Outcome(values, **fields)
    return outcomes
