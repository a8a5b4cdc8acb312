"""Formulas: what they may contain, and the numbers that they make."""

import numpy as np
import pytest

from polyseme.errors import InputError
from polyseme.uncertainty.formula import Design, column_of, parse

pytest.importorskip("formulaic")
N = 60
DATA = {
    "rating": ["left", "right", "center"] * 20,
    "day": np.arange(N, dtype=float),
    "count": [None, 1, 2, 3] * 15,
    "my age": np.linspace(1, 5, N).tolist(),
    "index": [3, 4] * 30,
}
ALL = np.ones(N, dtype=bool)


def design(formula, data=DATA, usable=ALL):
    return Design.of(formula, data, usable)


@pytest.mark.parametrize(
    "formula",
    [
        "~ __import__('os')", "day.real", "day[0]", "{day}", "day**2", "day * * rating", "(lambda: 1)()", "np.log(day)",
        "exp(day)", "s(s(day))", "s(day, df=100)", "s(day, df=day)", "s(day, df=3, _state=day)", "log(day, rating)",
        "I(day)", "Q('day')", "day + 7", "day; rating", "day\nimport os", "@day", "s(", "s(day", "C()", "", "~", "1",
        "day ~ rating", "day:", "(day", "a*b*c*d*e*f", "+".join("a" * 40), "day | rating", "day % rating", "day ^ 2",
        '"day"', "day if day else rating", "C(C)(day)", "s=day", "day == 1", "`day", "s (day)(day)",
    ],
)  # fmt: skip
def test_formulas_with_anything_else_are_refused(formula):
    with pytest.raises(InputError) as caught:
        design(formula)
    assert "\n" not in str(caught.value).replace(formula, "").replace(repr(formula), "")


def test_names_of_columns_are_not_evaluated():
    parsed = parse("~ __import__ + `os.system('x')`:np")
    assert parsed.columns == ["__import__", "os.system('x')", "np"]
    assert parsed.expression == "column_0_ + column_1_ : column_2_"
    assert design("`my age` + index").names == ["Intercept", "my age", "index"]
    with pytest.raises(InputError, match="no column '__builtins__'"):
        design("__builtins__")


def test_groups_are_compared_with_the_first_one():
    found = design("~ rating + day")
    assert found.names == ["Intercept", "rating[left]", "rating[right]", "day"]
    assert found.terms == {"rating": slice(1, 3), "day": slice(3, 4)}
    assert found.levels == {"rating": ["center", "left", "right"]}
    np.testing.assert_array_equal(found.matrix[:3], [[1, 1, 0, 0], [1, 0, 1, 1], [1, 0, 0, 2]])
    numbers = design("C(index)")
    assert numbers.names == ["Intercept", "C(index)[4]"]
    assert list(design("rating * day").terms) == ["rating", "day", "rating:day"]


def test_splines_are_smooth_linear_outside_and_keep_their_knots():
    found = design("s(day, df=5)")
    assert found.matrix.shape == (N, 6)
    rows = np.array([found.mean_row({"day": value}) for value in (20.0, 59.0, 60.0, 70.0, 80.0)])
    np.testing.assert_allclose(rows[0], found.matrix[20])
    np.testing.assert_allclose(rows[1], found.matrix[59])
    np.testing.assert_allclose(rows[4] - rows[3], rows[3] - rows[2], atol=1e-9)
    x = np.linspace(0, 59, 400)
    curve = np.sin(x / 10)
    basis = np.array([found.mean_row({"day": value}) for value in x.tolist()])
    fit = basis @ np.linalg.lstsq(basis, curve, rcond=None)[0]
    assert np.abs(fit - curve).max() < 0.1
    with pytest.raises(InputError, match="more than 4 different numbers"):
        design("s(index)")


def test_documents_with_missing_values_are_counted():
    usable = ALL.copy()
    usable[:2] = False
    found = design("count + rating", usable=usable)
    assert found.missing == {"count": 14}
    assert found.rows.size == N - 2 - 14
    assert found.names[1] == "count"


def test_tables_of_any_kind_give_the_same_columns():
    pl, pd = pytest.importorskip("polars"), pytest.importorskip("pandas")
    for table in (pl.DataFrame(DATA, strict=False), pd.DataFrame(DATA), pd.DataFrame(DATA).convert_dtypes()):
        for name in DATA:
            expected, found = column_of(DATA, name), column_of(table, name)
            assert expected.dtype == found.dtype
            np.testing.assert_array_equal(found, expected)
    with pytest.raises(InputError, match="no column 'color'"):
        column_of(DATA, "color")


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("day + day:rating + rating + `my age`", "determine each other"),
        ("log(day)", "numbers above zero"),
        ("C(day) + C(`my age`)", "determine each other"),
        ("unique", "has 1 different values"),
        ("empty", "no document has a value"),
    ],
)
def test_columns_that_do_not_serve_are_refused(formula, message):
    with pytest.raises(InputError, match=message):
        design(formula, {**DATA, "unique": ["a"] * N, "empty": [None] * N})


def test_values_that_do_not_occur_are_refused():
    found = design("rating + day")
    for values, message in (
        ({"rating": "top"}, "no group 'top'"),
        ({"day": "x"}, "has numbers"),
        ({"x": 1}, "no column"),
    ):
        with pytest.raises(InputError, match=message):
            found.mean_row(values)
