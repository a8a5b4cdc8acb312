"""Arrays in safetensors and NumPy files: other libraries read the files, and maps are not copies."""

import numpy as np
import pytest
from safetensors.numpy import load, save

from polyseme.io.arrays import (
    arrays_in,
    bytes_of,
    digest_of,
    map_npy,
    npy_header,
    read_safetensors,
    safetensors_parts,
    write_safetensors,
)

ARRAYS = {
    "totals": np.arange(3.0),
    "values": np.arange(6, dtype=np.float32).reshape(2, 3),
    "indices": np.array([4, 2], dtype=np.int32),
    "places": np.array([[1], [2]], dtype=np.int64),
    "empty": np.zeros((0, 2), dtype=np.float32),
}


def assert_equal(found, arrays):
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype


def test_safetensors_reads_files_that_are_written_in_parts():
    assert_equal(load(b"".join(safetensors_parts(ARRAYS))), ARRAYS)


def test_arrays_are_found_in_bytes_without_a_copy():
    content = np.frombuffer(b"".join(safetensors_parts(ARRAYS)), dtype=np.uint8)
    found = arrays_in(content)
    assert_equal(found, ARRAYS)
    assert all(np.shares_memory(array, content) for array in found.values() if array.size)


def test_metadata_and_arrays_are_read(tmp_path):
    arrays = {**ARRAYS, "transposed": np.asfortranarray(np.arange(6.0).reshape(2, 3))}
    write_safetensors(tmp_path / "x", arrays, {"key": "text"})
    metadata, found = read_safetensors(tmp_path / "x")
    assert metadata == {"key": "text"}
    assert_equal(found, arrays)
    assert found["values"].flags.writeable


def test_a_damaged_file_raises_value_error(tmp_path):
    content = b"".join(safetensors_parts(ARRAYS))
    for damaged in (b"", content[:20], content[:-1], b"\xff" * 8 + content[8:]):
        (tmp_path / "x").write_bytes(damaged)
        with pytest.raises(ValueError, match=r"."):
            read_safetensors(tmp_path / "x")


def test_an_unknown_type_is_refused():
    content = np.frombuffer(save({"half": np.ones(2, dtype=np.float16)}), dtype=np.uint8)
    with pytest.raises(ValueError, match="half is of the type F16"):
        arrays_in(content)


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS.keys())
def test_numpy_reads_files_that_are_written_in_parts(tmp_path, array):
    path = tmp_path / "x.npy"
    path.write_bytes(npy_header(array) + bytes(bytes_of(array)))
    np.testing.assert_array_equal(np.load(path, allow_pickle=False), array)
    np.testing.assert_array_equal(map_npy(path), array)


def test_a_digest_depends_on_text_names_types_shapes_and_values():
    base = digest_of("text", {"a": np.arange(4.0)})
    others = [
        digest_of("other", {"a": np.arange(4.0)}),
        digest_of("text", {"b": np.arange(4.0)}),
        digest_of("text", {"a": np.arange(4.0).view(np.int64)}),
        digest_of("text", {"a": np.arange(4.0).reshape(2, 2)}),
        digest_of("text", {"a": np.array([0.0, 1.0, 2.0, 4.0])}),
    ]
    assert len({base, *others}) == 6
    assert digest_of("text", {"a": np.arange(8.0)[::2] / 2}) == base
