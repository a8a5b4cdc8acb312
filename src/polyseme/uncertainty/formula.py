"""Formulas such as ``~ rating + s(day)``, and the table of numbers that a regression needs.

formulaic expands a formula and codes groups. It evaluates what is between the operators as Python code, so a formula is
checked first: it may contain names of columns, 0, 1, ``+ - : *``, parentheses, and the functions below. formulaic then
gets other names for the columns, and no names but those.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np

from polyseme.errors import InputError, MissingExtraError
from polyseme.kernels import Array, Floats

FUNCTIONS = {"s": "a natural cubic spline", "log": "the natural logarithm", "C": "groups instead of numbers"}
"""Functions of a column that a formula may use."""
_DEGREES = 4
"""Columns of a spline without df."""
_MOST_LEVELS, _MOST_COLUMNS, _MOST_MENTIONS, _MOST_PRODUCTS = 100, 200, 30, 4
_AVERAGED = 2000
"""Documents over which predictions are averaged."""
_TOKEN = re.compile(r"\s*(?:(?P<quoted>`[^`]+`)|(?P<name>[^\W\d]\w*)|(?P<number>\d+)|(?P<sign>[-+:*(),=~]))")


class _Token(NamedTuple):
    kind: str
    text: str


def _tokens(formula: str) -> list[_Token]:
    tokens, place = [], 0
    formula = formula.rstrip()
    while place < len(formula):
        found = _TOKEN.match(formula, place)
        if found is None:
            raise _refusal(formula, f"{formula[place:].strip()[:20]!r} is not allowed")
        place, kind = found.end(), str(found.lastgroup)
        text = found[kind]
        tokens.append(_Token("name", text[1:-1]) if kind == "quoted" else _Token(kind, text))
    return tokens


def _refusal(formula: str, why: str) -> InputError:
    return InputError(
        f"Formula {formula!r}: {why}. Write names of columns (in backticks if they are no words), 0, 1, + - : * ( ), "
        f"and s(x), s(x, df=5), log(x), C(x): ~ rating + s(day)."
    )


class _Parsed(NamedTuple):
    expression: str
    """The formula with other names of the columns."""
    columns: list[str]
    """Columns in the order of their new names, column_0_, column_1_ ..."""
    groups: frozenset[str]
    """Columns in C()."""


def parse(formula: str) -> _Parsed:
    """Check a formula, and give its columns other names.

    Parameters
    ----------
    formula : str
        The formula; a tilde at its beginning may be left out.

    Returns
    -------
    _Parsed
        The formula for formulaic.
    """
    tokens = _tokens(formula)
    if tokens and tokens[0].text == "~":
        tokens = tokens[1:]
    columns: dict[str, str] = {}
    groups: set[str] = set()
    parts, place = [], 0

    def column(token: _Token) -> str:
        if token.kind != "name":
            raise _refusal(formula, f"{token.text!r} is no name of a column")
        return columns.setdefault(token.text, f"column_{len(columns)}_")

    while place < len(tokens):
        kind, text = tokens[place]
        following = [token.text for token in tokens[place + 1 : place + 8]]
        if kind == "name" and following[:1] == ["("]:
            if text not in FUNCTIONS:
                raise _refusal(formula, f"the function {text!r} is not allowed")
            of_column = column(tokens[place + 2]) if len(tokens) > place + 2 else ""
            if following[2:3] == [")"]:
                parts.append(f"{text}({of_column})")
                place += 4
            elif text == "s" and following[2:5] == [",", "df", "="] and following[6:7] == [")"]:
                parts.append(f"s({of_column}, df={_checked_degrees(formula, following[5])})")
                place += 8
            else:
                raise _refusal(formula, f"{text}() takes the name of one column")
            if text == "C":
                groups.add(tokens[place - 2].text)
            continue
        if text in (",", "=", "~") or (kind == "number" and text not in ("0", "1")):
            raise _refusal(formula, f"{text!r} is not allowed here")
        parts.append(column(tokens[place]) if kind == "name" else text)
        place += 1
    names = sum(part.startswith(("column_", "s(", "log(", "C(")) for part in parts)
    if names > _MOST_MENTIONS or parts.count("*") + parts.count(":") > _MOST_PRODUCTS:
        raise _refusal(formula, f"it has more than {_MOST_MENTIONS} terms or {_MOST_PRODUCTS} products")
    if not columns:
        raise _refusal(formula, "it names no column")
    if "* *" in " ".join(parts):
        raise _refusal(formula, "'**' is not allowed")
    return _Parsed(" ".join(parts), list(columns), frozenset(groups))


def _checked_degrees(formula: str, text: str) -> int:
    if not text.isdecimal() or len(text) > 2 or not 2 <= int(text) <= 20:
        raise _refusal(formula, "df must be from 2 to 20")
    return int(text)


class _Spline(NamedTuple):
    """A natural cubic spline without a constant, linear beyond its outer knots."""

    knots: Floats

    @classmethod
    def of(cls, x: Floats, df: int) -> Self:
        values = np.unique(x)
        if values.size <= df:
            raise InputError(f"s(x, df={df}) needs a column with more than {df} different numbers: use a smaller df.")
        knots = np.quantile(x, np.linspace(0, 1, df + 1))
        return cls(knots if np.unique(knots).size == knots.size else np.quantile(values, np.linspace(0, 1, df + 1)))

    def columns(self, x: Floats) -> Floats:
        low, high = self.knots[0], self.knots[-1]
        u, t = (x - low) / (high - low), (self.knots - low) / (high - low)

        def part(k: int) -> Floats:
            return np.asarray((np.maximum(u - t[k], 0) ** 3 - np.maximum(u - t[-1], 0) ** 3) / (t[-1] - t[k]))

        last = part(len(t) - 2)
        return np.column_stack([u, *(part(k) - last for k in range(len(t) - 2))])


def _is_missing(values: Array) -> Array:
    if values.dtype.kind in "iub":
        return np.zeros(values.shape, dtype=bool)
    if values.dtype.kind == "f":
        return ~np.isfinite(values)
    return np.array([value is None or value == "" or value != value for value in values.tolist()], dtype=bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def column_of(data: Any, name: str) -> Array:
    """Return a column of a table.

    Parameters
    ----------
    data : polars or pandas data frame, or mapping of str to sequence
        The table.
    name : str
        Name of the column.

    Returns
    -------
    array
        The values: numbers, or objects.
    """
    names = [str(each) for each in (data.columns if hasattr(data, "columns") else data)]
    if name not in names:
        raise InputError(f"The table has no column {name!r}: it has {', '.join(names[:20])}.")
    column = data[name]
    if hasattr(column, "notna"):  # pandas, whose NA cannot be compared
        column = column.astype(object).where(column.notna(), None)
    values = column.tolist() if hasattr(column, "tolist") else list(column)
    known = [value for value in values if not (value is None or value == "" or value != value)]
    if known and all(map(_is_number, known)):
        return np.array([value if _is_number(value) else np.nan for value in values], dtype=np.float64)
    return np.array(values, dtype=object)


@dataclass(frozen=True, eq=False)
class Design:
    """The numbers that a formula makes of metadata.

    Attributes
    ----------
    formula : str
        The formula.
    names : list of str
        Names of the columns of numbers.
    terms : dict of str to slice
        Columns of each term, without the constant.
    rows : array of int of shape (n_used,)
        Documents without missing values.
    matrix : array of shape (n_used, n_columns)
        The numbers.
    missing : dict of str to int
        Number of documents without a value, by column of the metadata.
    levels : dict of str to list
        Groups of the columns that are no numbers.
    columns : list of str
        Columns of the metadata.
    """

    formula: str
    names: list[str]
    terms: dict[str, slice]
    rows: Array
    matrix: Floats
    missing: dict[str, int]
    levels: dict[str, list[Any]]
    columns: list[str]
    _spec: Any = field(repr=False)
    _table: Any = field(repr=False)
    _functions: dict[str, Any] = field(repr=False)

    def of_documents(self, rows: Array) -> Design:
        """Return the numbers of some of the documents, in increasing order."""
        own = np.isin(self.rows, rows)
        return replace(self, rows=np.searchsorted(rows, self.rows[own]), matrix=self.matrix[own])

    @classmethod
    def of(cls, formula: str, data: Any, usable: Array) -> Design:
        """Return the numbers for the documents that are `usable` (True or False) and have no missing value."""
        try:
            import formulaic
            import pandas as pd
            from formulaic.errors import FormulaicError
        except ModuleNotFoundError:
            raise MissingExtraError("Effects of metadata", "effects") from None
        parsed = parse(formula)
        columns = {name: column_of(data, name) for name in parsed.columns}
        for name, values in columns.items():
            if len(values) != usable.size:
                raise InputError(f"Column {name!r} must have a value for each of the {usable.size} documents.")
        absent = {name: _is_missing(values) for name, values in columns.items()}
        rows = np.flatnonzero(usable & ~np.any(list(absent.values()), axis=0))
        if not rows.size:
            raise InputError(f"Formula {formula!r}: no document has a value in all of its columns.")
        table, levels = {}, {}
        for number, (name, values) in enumerate(columns.items()):
            own = values[rows]
            if own.dtype == object or name in parsed.groups:
                levels[name] = sorted({str(value) if own.dtype == object else f"{value:g}" for value in own.tolist()})
                if not 2 <= len(levels[name]) <= _MOST_LEVELS:
                    raise InputError(
                        f"Column {name!r} has {len(levels[name])} different values: groups must be 2 to "
                        f"{_MOST_LEVELS}; numbers must be stored as numbers."
                    )
                texts = [str(value) if own.dtype == object else f"{value:g}" for value in own.tolist()]
                table[f"column_{number}_"] = pd.Categorical(texts, categories=levels[name])
            else:
                table[f"column_{number}_"] = own
        frame = pd.DataFrame(table)
        functions = _functions()
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                matrix = formulaic.model_matrix(f"~ {parsed.expression}", frame, context=functions, na_action="ignore")
        except FormulaicError as error:
            cause = error.__cause__
            if isinstance(cause, InputError):
                raise cause from None
            raise _refusal(formula, "it cannot be read") from None
        spec = matrix.model_spec
        numbers = np.asarray(matrix, dtype=np.float64)
        if not np.isfinite(numbers).all():
            raise InputError(f"Formula {formula!r}: log() needs numbers above zero.")
        if numbers.shape[1] > _MOST_COLUMNS:
            raise InputError(f"Formula {formula!r} makes {numbers.shape[1]} columns: at most {_MOST_COLUMNS}.")
        scaled = numbers / np.maximum(np.abs(numbers).max(axis=0), 1e-300)
        if np.linalg.matrix_rank(scaled) < numbers.shape[1]:
            raise InputError(
                f"Formula {formula!r}: its terms determine each other, or there are too few documents: leave one out."
            )

        def shown(text: str) -> str:
            return re.sub(r"column_(\d+)_", lambda found: parsed.columns[int(found[1])], text).replace("[T.", "[")

        return cls(
            formula,
            [shown(str(name)) for name in matrix.columns],
            {shown(str(term)): part for term, part in spec.term_slices.items() if str(term) != "1"},
            rows,
            numbers,
            {name: int((missing & usable).sum()) for name, missing in absent.items() if (missing & usable).any()},
            levels,
            parsed.columns,
            spec,
            frame,
            functions,
        )

    def values(self, name: str) -> Array:
        """Return the values of a column in the documents that are used."""
        return np.asarray(self._table[f"column_{self._number(name)}_"])

    def _number(self, name: str) -> int:
        if name not in self.columns:
            raise InputError(f"The formula has no column {name!r}: it has {', '.join(self.columns)}.")
        return self.columns.index(name)

    def terms_with(self, name: str) -> list[int]:
        """Return the numbers of the terms with a column."""
        own = f"column_{self._number(name)}_"
        terms = [term for term in self._spec.term_slices if str(term) != "1"]
        return [number for number, term in enumerate(terms) if own in str(term)]

    def mean_row(self, values: Mapping[str, Any]) -> Floats:
        """Return the mean of the rows if some columns had given values in all documents.

        The mean is over at most 2,000 documents, evenly spaced.
        """
        import pandas as pd

        table = self._table.iloc[:: -(-len(self._table) // _AVERAGED)].copy()
        for name, value in values.items():
            number = self._number(name)
            if name not in self.levels:
                if not _is_number(value):
                    raise InputError(f"{name!r} has numbers, got {value!r}.")
                table[f"column_{number}_"] = float(value)
                continue
            text = value if isinstance(value, str) else f"{value:g}" if _is_number(value) else str(value)
            if text not in self.levels[name]:
                raise InputError(f"{name!r} has no group {value!r}: it has {', '.join(self.levels[name][:20])}.")
            table[f"column_{number}_"] = pd.Categorical([text] * len(table), categories=self.levels[name])
        matrix = self._spec.get_model_matrix(table, context=self._functions)
        row = np.asarray(matrix, dtype=np.float64).mean(axis=0)
        if not np.isfinite(row).all():
            raise InputError("log() needs numbers above zero.")
        return row


def _functions() -> dict[str, Any]:
    """Return the functions of a formula; splines keep their knots for later calls."""
    from formulaic.transforms import stateful_transform

    def s(data: Any, df: int = _DEGREES, _state: Any = None) -> Any:
        x = np.asarray(data, dtype=np.float64)
        if "spline" not in _state:
            _state["spline"] = _Spline.of(x, df)
        columns = _state["spline"].columns(x)
        return {str(number + 1): column for number, column in enumerate(columns.T)}

    return {"s": stateful_transform(s), "log": np.log}
