"""Tables of strings: any string is stored, found and decoded alone; wrong places are refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme import ModelFileError
from polyseme.io.arrays import StringMapping, StringTable, checked_parts, map_checked, string_arrays
from polyseme.io.files import write_atomically

ANY_TEXT = st.text(st.characters(), max_size=12)  # with surrogates


def stored(folder, arrays):
    write_atomically(folder / "table", checked_parts(arrays, {}), flush=False)
    return map_checked(folder / "table")[1]


@given(strings=st.lists(ANY_TEXT, max_size=40), others=st.lists(ANY_TEXT, max_size=5))
@settings(max_examples=150, deadline=None)
def test_a_table_is_the_list_of_its_strings(tmp_path_factory, strings, others):
    arrays = stored(tmp_path_factory.getbasetemp(), string_arrays("names", strings, find=True))
    table = StringTable(arrays, "names", find=True)
    assert len(table) == len(strings)
    assert list(table) == strings
    assert [table[number] for number in range(-len(strings), len(strings))] == strings * 2
    assert table[1:5:2] == strings[1:5:2]
    for text in (*strings, *others):
        assert table.get(text, -1) == (strings.index(text) if text in strings else -1)
    with pytest.raises(IndexError):
        table[len(strings)]


@given(mapping=st.dictionaries(ANY_TEXT, ANY_TEXT, max_size=30), others=st.lists(ANY_TEXT, max_size=5))
@settings(max_examples=100, deadline=None)
def test_a_mapping_is_the_dict_of_its_strings(tmp_path_factory, mapping, others):
    found = StringMapping(stored(tmp_path_factory.getbasetemp(), StringMapping.arrays("forms", mapping)), "forms")
    assert dict(found) == mapping
    assert len(found) == len(mapping)
    for key in (*mapping, *others):
        assert found.get(key) == mapping.get(key)
        assert (key in found) == (key in mapping)


def test_a_value_that_is_not_a_string_is_not_found(tmp_path):
    table = StringTable(stored(tmp_path, string_arrays("names", ["1", "None"], find=True)), "names", find=True)
    assert (table.get(1, -1), table.get(None, -1), table.get(b"1", -1)) == (-1, -1, -1)


def test_a_table_without_hashes_finds_nothing(tmp_path):
    arrays = stored(tmp_path, string_arrays("names", ["a"]))
    assert StringTable(arrays, "names").get("a", -1) == -1
    with pytest.raises(KeyError):
        StringTable(arrays, "names", find=True)


@pytest.mark.parametrize("starts", [[0, 5, 3, 6], [0, 3, 99, 100], [-4, 3, 5, 6], [2**62, 3, 5, 6]])
def test_places_that_overlap_or_are_outside_are_refused(tmp_path, starts):
    arrays = {"names.bytes": np.frombuffer(b"abcdef", dtype=np.uint8), "names.starts": np.array(starts)}
    table = StringTable(stored(tmp_path, arrays), "names")
    with pytest.raises(ModelFileError, match="is damaged"):
        list(table)
    with pytest.raises(ModelFileError, match="is damaged"):
        [table[number] for number in range(len(table))]


@pytest.mark.parametrize(
    "changes",
    [
        {"names.starts": np.empty(0, dtype=np.int64)},
        {"names.starts": np.zeros(3)},
        {"names.bytes": np.zeros(3)},
        {"names.starts": np.zeros((2, 2), dtype=np.int64)},
        {"names.hashes": np.zeros(7, dtype=np.int64)},
        {"names.order": np.zeros(2, dtype=np.int32)},
    ],
)
def test_arrays_of_other_types_and_sizes_are_refused(tmp_path, changes):
    arrays = string_arrays("names", ["a", "b"], find=True) | changes
    with pytest.raises(ValueError, match="the strings of names"):
        StringTable(stored(tmp_path, arrays), "names", find=True)


def test_bytes_that_are_not_text_are_refused(tmp_path):
    arrays = {"names.bytes": np.array([0xFF], dtype=np.uint8), "names.starts": np.array([0, 1])}
    with pytest.raises(ModelFileError, match="is damaged"):
        StringTable(stored(tmp_path, arrays), "names")[0]
