"""Sizes and digests of the files of a folder: damage, links and forged names are refused."""

import hashlib
import json
import os

import pytest

from polyseme import ModelFileError
from polyseme.io import files
from polyseme.io.files import FILES, FileEntry, FileManifest, write_with_digest

DIGEST = "0" * 64


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "run" / "texts").mkdir(parents=True)
    (tmp_path / "run" / "a.bin").write_bytes(b"abc")
    (tmp_path / "run" / "empty").write_bytes(b"")
    (tmp_path / "run" / "texts" / "0.parquet").write_bytes(b"x" * 1_000_000)
    (tmp_path / "run" / "run.json").write_text("{}", encoding="utf-8")
    return tmp_path / "run"


def listed(folder, *names):
    found = FileManifest(folder)
    for name in names:
        found.add(name)
    return found


def test_a_written_file_has_the_size_and_digest_of_its_content(tmp_path):
    parts = [b"one", memoryview(b"two"), b""]
    entry = write_with_digest(tmp_path / "file", parts)
    assert entry == FileEntry(6, hashlib.sha256(b"onetwo").hexdigest())
    assert (tmp_path / "file").read_bytes() == b"onetwo"
    assert listed(tmp_path, "file").entries == {"file": entry}


def test_an_added_file_is_flushed_to_disk(folder, monkeypatch):
    flushed = []
    monkeypatch.setattr(files, "flush_to_disk", flushed.append)
    listed(folder, "texts/0.parquet")
    assert flushed == [folder / "texts" / "0.parquet"]


def test_json_and_back(folder):
    found = listed(folder, "texts/0.parquet", "a.bin")
    value = json.loads(json.dumps(found.to_json()))
    assert list(value) == ["a.bin", "texts/0.parquet"]
    assert FILES.holds(value)
    again = FileManifest.from_json(folder, value)
    assert again.entries == found.entries
    again.check_sizes()
    assert again.path("texts/0.parquet") == folder / "texts" / "0.parquet"


WRONG = {
    "not an object": [],
    "absolute": {"/etc/passwd": {"size": 1, "sha256": DIGEST}},
    "parent": {"../x": {"size": 1, "sha256": DIGEST}},
    "parent inside": {"texts/../../x": {"size": 1, "sha256": DIGEST}},
    "dot": {"./x": {"size": 1, "sha256": DIGEST}},
    "empty": {"": {"size": 1, "sha256": DIGEST}},
    "empty part": {"texts//x": {"size": 1, "sha256": DIGEST}},
    "folder": {"texts/": {"size": 1, "sha256": DIGEST}},
    "backslash": {"texts\\x": {"size": 1, "sha256": DIGEST}},
    "drive": {"C:x": {"size": 1, "sha256": DIGEST}},
    "zero byte": {"x\0": {"size": 1, "sha256": DIGEST}},
    "entry is a list": {"x": [1, DIGEST]},
    "no size": {"x": {"sha256": DIGEST}},
    "no digest": {"x": {"size": 1}},
    "negative size": {"x": {"size": -1, "sha256": DIGEST}},
    "size is true": {"x": {"size": True, "sha256": DIGEST}},
    "size is a text": {"x": {"size": "1", "sha256": DIGEST}},
    "short digest": {"x": {"size": 1, "sha256": "00"}},
    "capital digest": {"x": {"size": 1, "sha256": "A" * 64}},
    "digest is a number": {"x": {"size": 1, "sha256": 0}},
    "another field": {"x": {"size": 1, "sha256": DIGEST, "evil": 1}},
}


@pytest.mark.parametrize("name", WRONG)
def test_every_field_is_checked(tmp_path, name):
    assert not FILES.holds(WRONG[name])
    with pytest.raises(ValueError, match=r"must be|missing|not a JSON object|known field") as refused:
        FileManifest.from_json(tmp_path, WRONG[name])
    assert "\n" not in str(refused.value)


def assert_refused(found, name, words):
    for check in (found.check_sizes, lambda: found.path(name)):
        with pytest.raises(ModelFileError) as refused:
            check()
        message = str(refused.value)
        assert message.startswith(str(found.folder / name))
        assert words in message
        assert message.endswith("restore it, or fit again.")


def test_missing_files_other_sizes_and_other_kinds_are_refused(folder, tmp_path):
    value = listed(folder, "a.bin").to_json()
    path = folder / "a.bin"
    path.write_bytes(b"abcd")
    assert_refused(FileManifest.from_json(folder, value), "a.bin", "it has 4 bytes where run.json says 3")
    path.rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").write_bytes(b"abc")
    assert_refused(FileManifest.from_json(folder, value), "a.bin", "is missing")
    path.symlink_to(tmp_path / "elsewhere")
    assert_refused(FileManifest.from_json(folder, value), "a.bin", "is not a regular file")
    path.unlink()
    path.mkdir()
    assert_refused(FileManifest.from_json(folder, value), "a.bin", "is not a regular file")


@pytest.mark.skipif(os.name != "posix", reason="needs named pipes")
def test_a_pipe_is_refused_and_does_not_block(folder):
    value = listed(folder, "a.bin").to_json()
    (folder / "a.bin").unlink()
    os.mkfifo(folder / "a.bin")
    assert_refused(FileManifest.from_json(folder, value), "a.bin", "is not a regular file")


def test_a_folder_that_is_a_link_is_refused(folder, tmp_path):
    value = listed(folder, "texts/0.parquet").to_json()
    (folder / "texts").rename(tmp_path / "texts")
    (folder / "texts").symlink_to(tmp_path / "texts")
    assert_refused(FileManifest.from_json(folder, value), "texts/0.parquet", "behind a link")
    with pytest.raises(ModelFileError, match="behind a link"):
        listed(folder, "texts/0.parquet")


def test_a_flipped_bit_is_found_when_the_file_is_used(folder):
    value = listed(folder, "a.bin", "texts/0.parquet").to_json()
    content = bytearray((folder / "texts" / "0.parquet").read_bytes())
    content[500_000] ^= 1
    (folder / "texts" / "0.parquet").write_bytes(content)
    found = FileManifest.from_json(folder, value)
    found.check_sizes()
    assert found.path("a.bin") == folder / "a.bin"
    for _ in range(2):
        with pytest.raises(ModelFileError) as refused:
            found.path("texts/0.parquet")
        assert str(refused.value) == (
            f"{folder / 'texts' / '0.parquet'} is damaged: its digest differs from run.json; restore it, or fit again."
        )


def test_a_digest_is_computed_once(folder, monkeypatch):
    found = FileManifest.from_json(folder, listed(folder, "a.bin").to_json())
    calls, digest = [], files.file_digest
    monkeypatch.setattr(files, "file_digest", lambda file: calls.append(file) or digest(file))
    for _ in range(3):
        found.path("a.bin")
    moved = found.with_folder(folder.rename(folder.with_name("moved")))
    assert moved.path("a.bin") == folder.with_name("moved") / "a.bin"
    assert len(calls) == 1


def test_files_that_are_not_listed_are_refused(folder):
    with pytest.raises(ModelFileError, match=r"run.json is not listed in run.json"):
        listed(folder, "a.bin").path("run.json")


def test_a_renamed_folder_has_the_same_entries(folder):
    found = listed(folder, "a.bin")
    moved = found.with_folder(folder / "other")
    assert (moved.folder, moved.entries) == (folder / "other", found.entries)
    moved.entries.clear()
    assert found.entries


def test_a_file_is_not_read_into_memory_at_once(folder):
    sizes = []

    class Counted(files.BufferedIOBase):
        def __init__(self, file):
            self._file = file

        def readable(self):
            return True

        def readinto(self, buffer):
            sizes.append(len(buffer))
            return self._file.readinto(buffer)

    with (folder / "texts" / "0.parquet").open("rb") as file:
        assert files.file_digest(Counted(file)) == hashlib.sha256(b"x" * 1_000_000).hexdigest()
    assert max(sizes) < 1_000_000
