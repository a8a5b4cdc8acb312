"""Arrays with checksums of their blocks: only blocks that are used are checked, and every change is found."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme import ModelFileError
from polyseme.io.arrays import BLOCK, CHECKSUMS, checked_parts, map_checked
from polyseme.io.files import write_atomically

RNG = np.random.default_rng(0)
ARRAYS = {
    "large": RNG.random((5000, 100)),
    "wide": RNG.random((4, 70_000)).astype(np.float32),
    "bytes": RNG.integers(0, 256, 3 * BLOCK + 5).astype(np.uint8),
    "small": np.arange(7, dtype=np.int32),
    "empty": np.empty((0, 3), dtype=np.int64),
}


@pytest.fixture
def path(tmp_path):
    write_atomically(tmp_path / "file", checked_parts(ARRAYS, {"key": "value"}))
    return tmp_path / "file"


def test_arrays_and_metadata_are_those_that_were_written(path):
    metadata, arrays = map_checked(path)
    assert metadata == {"key": "value"}
    assert set(arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        found = arrays[name]
        assert (found.shape, found.dtype, found.nbytes, len(found)) == (
            array.shape, array.dtype, array.nbytes, len(array),
        )  # fmt: skip
        np.testing.assert_array_equal(found[:], array)


KEYS = [
    0, -1, 4999, np.int64(3), slice(2, 5), slice(4990, None), slice(5, 2), slice(None, None, 2), [7, 4000, 7], [],
    np.array([4999, -1]), (slice(3, 9), 4), (slice(None), slice(2, 4)), ([1, 3000], [2, 5]), ...,
    np.arange(5000) % 2 == 0,
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=lambda key: f"{type(key).__name__}-{str(key)[:20]}")
def test_parts_of_an_array_are_those_of_numpy(path, key):
    key = np.array(key, dtype=int) if isinstance(key, list) else key
    np.testing.assert_array_equal(map_checked(path)[1]["large"][key], ARRAYS["large"][key])


@pytest.mark.parametrize("key", [5000, -5001, np.array([3, 5000])])
def test_rows_outside_raise(path, key):
    with pytest.raises(IndexError):
        map_checked(path)[1]["large"][key]


def damage(path, name, place):
    """Flip a bit of a byte of an array."""
    content = bytearray(path.read_bytes())
    length = int.from_bytes(content[:8], "little")
    start = json.loads(content[8 : 8 + length])[name]["data_offsets"][0]
    content[8 + length + start + place] ^= 4
    path.write_bytes(content)


@given(row=st.integers(0, 4999), damaged=st.integers(0, ARRAYS["large"].nbytes - 1))
@settings(max_examples=60, deadline=None)
def test_only_the_blocks_of_the_used_rows_are_checked(tmp_path_factory, row, damaged):
    path = tmp_path_factory.getbasetemp() / "one_block"
    write_atomically(path, checked_parts(ARRAYS, {}), flush=False)
    damage(path, "large", damaged)
    arrays = map_checked(path)[1]
    first, last = row * 800 // BLOCK, (row * 800 + 799) // BLOCK
    for key in (row, slice(row, row + 1), np.array([row, row]), (slice(row, row + 1), 3)):
        found = map_checked(path)[1]["large"]
        if first <= damaged // BLOCK <= last:
            with pytest.raises(ModelFileError, match=r"one_block is damaged \(large: some of its bytes have changed\)"):
                found[key]
        else:
            np.testing.assert_array_equal(found[key], ARRAYS["large"][key])
    with pytest.raises(ModelFileError):
        arrays["large"][:]
    np.testing.assert_array_equal(arrays["wide"][:], ARRAYS["wide"])


def test_rows_of_many_blocks_are_checked(path):
    damage(path, "wide", 2 * 280_000 + 150_000)  # the middle of row 2
    found = map_checked(path)[1]["wide"]
    for key in (2, np.array([2]), slice(2, 3)):
        with pytest.raises(ModelFileError):
            found[key]


def test_numbers_that_are_not_finite_are_refused(path):
    values = np.ones(10)
    values[7] = np.nan
    write_atomically(path, checked_parts({"values": values}, {}))
    with pytest.raises(ModelFileError, match="not finite"):
        map_checked(path)[1]["values"][0]


def test_checksums_are_checked_when_a_file_is_opened(path):
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    first, last = json.loads(content[8 : 8 + length])[CHECKSUMS]["data_offsets"]
    for place in (*range(8 + length), *range(8 + length + first, 8 + length + last)):
        damaged = bytearray(content)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        with pytest.raises((ValueError, OSError)):
            map_checked(path)


def test_every_shorter_and_longer_file_is_refused(path):
    content = path.read_bytes()
    for size in (0, 7, 8, 100, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:size])
        with pytest.raises(ValueError, match=r"short|longer|place|JSON|Expecting|column|checksums|header|end"):
            map_checked(path)
    path.write_bytes(content + b"\0")
    with pytest.raises(ValueError, match="end"):
        map_checked(path)


def _overlapping(header):
    header["small"]["data_offsets"] = header["wide"]["data_offsets"]


def _outside(header):
    header["bytes"]["data_offsets"][1] += 10**9


def _negative(header):
    header["bytes"]["data_offsets"][0] = -5


def _larger_shape(header):
    header["large"]["shape"][0] += 1


def _huge_shape(header):
    header["large"]["shape"] = [2**62, 2**62]


def _unknown_type(header):
    header["large"]["dtype"] = "F16"


def _other_name(header):
    header["small"]["more"] = 1


def _no_entry(header):
    header["small"] = 3


def _no_checksums(header):
    header["other"] = header.pop(CHECKSUMS)


def _metadata_of_numbers(header):
    header["__metadata__"] = {"key": 3}


@pytest.mark.parametrize(
    "change",
    [
        _overlapping, _outside, _negative, _larger_shape, _huge_shape, _unknown_type, _other_name, _no_entry,
        _no_checksums, _metadata_of_numbers,
    ],
)  # fmt: skip
def test_a_header_that_does_not_fit_is_refused(path, change):
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    change(header)
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % 64)
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])
    with pytest.raises(ValueError, match=r"must be|size and position|known field|checksums"):
        map_checked(path)


def test_arrays_at_odd_places_are_refused(path):
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    path.write_bytes((length + 1).to_bytes(8, "little") + content[8 : 8 + length] + b" " + content[8 + length :])
    with pytest.raises(ValueError, match="is not aligned"):
        map_checked(path)
