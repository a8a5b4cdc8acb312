"""Shards from Parquet files: the shards of the same documents, read by this process or by the workers of a cluster."""

import os
import pickle
import signal
import sys
import threading
import time
from dataclasses import asdict, replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import dask_cluster
from polyseme import InputError, MissingExtraError
from polyseme.data import shard_writer
from polyseme.data.shard_files import MANIFEST, read_manifest
from polyseme.datasets import synthetic_corpus
from polyseme.io import parquet
from polyseme.scale import ParquetFiles, open_shards, write_shards

pl = pytest.importorskip("polars", reason="needs polyseme[text]")
fsspec = pytest.importorskip("fsspec", reason="needs polyseme[dask]")
distributed = pytest.importorskip("distributed", reason="needs polyseme[dask]")
text = pytest.importorskip("polyseme.text")

pytestmark = [
    pytest.mark.filterwarnings("ignore:Port \\d+ is already in use"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

X = sp.csr_array(
    synthetic_corpus(300, n_words=60, n_topics=4, length=25, topic_word_prior=0.05, random_state=1).counts(),
    dtype=np.float64,
)
X.data[X.indptr[7] : X.indptr[8]] = 0
X.eliminate_zeros()  # the document 7 is empty
CUTS = [0, 120, 120, 250, 300]
"""Rows where the files start and end; the second file has no rows."""
TEXTS = [f"red green {'moon ' * (i % 3)}sun{i % 7}" if i % 5 else "" for i in range(200)]
COUNTED = {"indices": "indices", "values": "values"}


def lists(counts, values=np.float64):
    """Return counts as a frame of lists, like the output of Spark's CountVectorizer."""
    rows = [counts[[i]] for i in range(counts.shape[0])]
    return pl.DataFrame(
        {
            "indices": [row.indices.tolist() for row in rows],
            "values": [row.data.astype(values).tolist() for row in rows],
        },
        schema={"indices": pl.List(pl.Int32), "values": pl.List(pl.Float64 if values is np.float64 else pl.Int64)},
    )


def write_like_spark(folder, frames):
    """Write a folder with parts, hidden checksums, an empty file _SUCCESS, and the folder of a failed job."""
    (folder / "_temporary").mkdir(parents=True)
    (folder / "_temporary" / "part-9.parquet").write_bytes(b"incomplete")
    (folder / "_SUCCESS").touch()
    for number, frame in enumerate(frames):
        name = f"part-{number:05d}-c000.snappy.parquet"
        frame.write_parquet(folder / name, compression="snappy", row_group_size=50)
        (folder / f".{name}.crc").write_bytes(b"crc")
    return folder


@pytest.fixture
def counts_folder(tmp_path):
    frame = lists(X)
    return write_like_spark(tmp_path / "counts", [frame[a:b] for a, b in pairwise(CUTS)])


@pytest.fixture
def texts_folder(tmp_path):
    frame = pl.DataFrame({"id": range(200), "text": TEXTS}).with_columns(pl.col("text").replace("", None))
    return write_like_spark(tmp_path / "texts", [frame[:90], frame[90:]])


@pytest.fixture
def memory(counts_folder):
    """Yield the URL of a copy of the counts in fsspec's file system in memory."""
    system = fsspec.filesystem("memory")
    system.put(str(counts_folder), "/polyseme-counts", recursive=True)
    yield "memory://polyseme-counts"
    system.rm("/polyseme-counts", recursive=True)


@pytest.fixture(scope="module")
def client():
    with dask_cluster.two_workers() as client:
        yield client


def without_names(shards):
    """Return the manifest with shards that have no names: workers choose other names, for the same content."""
    return asdict(replace(shards.manifest, shards=tuple(replace(entry, name="") for entry in shards.manifest.shards)))


def all_counts(shards):
    return sp.vstack(list(shards)).toarray()


# one process


@pytest.mark.parametrize("rows", [1, 13, 1000])
def test_counts_give_the_shards_of_the_same_documents(counts_folder, tmp_path, monkeypatch, rows):
    monkeypatch.setattr(parquet, "_FIRST_ROWS", rows)
    monkeypatch.setattr(parquet, "_MAX_ROWS", 2 * rows)
    files = ParquetFiles(counts_folder, **COUNTED, n_words=60)
    direct = write_shards([X], tmp_path / "direct", shard_nonzeros=400)
    found = write_shards(files, tmp_path / "found", shard_nonzeros=400)
    assert len(direct.manifest.shards) > 4
    assert found.manifest == direct.manifest


def test_texts_give_the_shards_of_the_same_documents(texts_folder, tmp_path):
    """A missing text is an empty document."""
    direct = write_shards(TEXTS, tmp_path / "direct", vectorizer=text.Vectorizer(), shard_nonzeros=90)
    files = ParquetFiles(texts_folder, text="text")
    found = write_shards(files, tmp_path / "found", vectorizer=text.Vectorizer(), shard_nonzeros=90)
    assert found.manifest == direct.manifest
    assert found.vocabulary == direct.vocabulary
    assert list(files) == TEXTS


def test_the_vocabulary_gives_the_number_of_words(counts_folder, tmp_path):
    words = [f"w{i}" for i in range(60)]
    found = write_shards(ParquetFiles(counts_folder, **COUNTED), tmp_path / "s", vocabulary=iter(words))
    assert found.vocabulary == words
    assert found.shape == X.shape


def test_files_are_found_by_paths_patterns_and_urls(counts_folder, memory, monkeypatch):
    names = sorted(str(path) for path in counts_folder.glob("part-*"))
    assert len(names) == 4
    every = [counts_folder, f"{counts_folder}/", f"file://{counts_folder}", f"{counts_folder}/*", names]
    assert [ParquetFiles(paths, **COUNTED).names for paths in every] == [names] * len(every)
    assert ParquetFiles(f"{counts_folder.parent}/*/**/part*.parquet", **COUNTED).names == names
    assert ParquetFiles([names[3], f"{counts_folder}/part-00000*"], **COUNTED).names == [names[3], names[0]]
    assert ParquetFiles(memory, **COUNTED).names == [
        f"memory:///polyseme-counts/{name.rpartition('/')[2]}" for name in names
    ]
    monkeypatch.chdir(counts_folder.parent)
    assert ParquetFiles("counts", **COUNTED).names == names


def test_partitions_and_special_names(tmp_path):
    for name in ("lang=en/b.parquet", "lang=de/a.parquet", "_x=1/c.parquet", "d[1].parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        pl.DataFrame({"text": [name]}).write_parquet(tmp_path / name)
    expected = ["_x=1/c.parquet", "d[1].parquet", "lang=de/a.parquet", "lang=en/b.parquet"]
    assert list(ParquetFiles(tmp_path, text="text")) == expected
    assert list(ParquetFiles(tmp_path / "d[1].parquet", text="text")) == expected[1:2]
    assert list(ParquetFiles(tmp_path / "lang=*", text="text")) == expected[2:]


def test_remote_files_are_copied_and_removed(memory, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    found = write_shards(ParquetFiles(memory, **COUNTED, n_words=60), tmp_path / "found", shard_nonzeros=400)
    np.testing.assert_array_equal(all_counts(found), X.toarray())
    assert not list(tmp_path.glob("polyseme-*"))


def test_lists_of_other_types_and_without_order(tmp_path):
    frame = pl.DataFrame({"indices": [[2, 0, 2], [], None], "values": [[1, 2, 3], [], None]})
    frame.write_parquet(tmp_path / "a.parquet")
    pl.DataFrame({"indices": [[], []], "values": [None, []]}).write_parquet(tmp_path / "b.parquet")
    pl.DataFrame({"indices": [None], "values": [None]}).write_parquet(tmp_path / "c.parquet")
    found = write_shards(ParquetFiles(tmp_path, **COUNTED, n_words=3), tmp_path / "s")
    np.testing.assert_array_equal(all_counts(found), [[2, 0, 4], *[[0, 0, 0]] * 5])
    assert found.manifest.dtype == "float32"


@pytest.mark.parametrize("cut", [1, 3])
def test_an_interrupted_call_continues(counts_folder, tmp_path, monkeypatch, cut):
    files = ParquetFiles(counts_folder, **COUNTED, n_words=60)
    direct = write_shards([X], tmp_path / "direct", shard_nonzeros=400)
    write_shard = shard_writer.write_shard

    def full_disk(folder, number, counts):
        if number == cut:
            raise OSError("no space left")
        return write_shard(folder, number, counts)

    with monkeypatch.context() as patch:
        patch.setattr(shard_writer, "write_shard", full_disk)
        with pytest.raises(OSError, match="no space"):
            write_shards(files, tmp_path / "found", shard_nonzeros=400)
    assert len(read_manifest(tmp_path / "found").shards) == cut
    assert write_shards(files, tmp_path / "found").manifest == direct.manifest


# workers


def test_workers_write_the_shards_of_one_process(tmp_path, client):
    """A shard ends with its file. If it also does so in one process, both write the same bytes."""
    direct = write_shards([X], tmp_path / "direct", shard_nonzeros=400, vocabulary=map(str, range(60)))
    ends = np.cumsum([0] + [entry.documents for entry in direct.manifest.shards])
    frame = lists(X)
    folder = write_like_spark(tmp_path / "counts", [frame[a:b] for a, b in pairwise(ends)])
    files = ParquetFiles(folder, **COUNTED)
    found = write_shards(files, tmp_path / "found", shard_nonzeros=400, vocabulary=map(str, range(60)), cluster=client)
    assert without_names(found) == without_names(direct)
    assert found.vocabulary == direct.vocabulary


def test_shards_end_with_their_file(counts_folder, tmp_path, client):
    files = ParquetFiles(counts_folder, **COUNTED, n_words=60)
    found = write_shards(files, tmp_path / "found", shard_nonzeros=400, cluster=client)
    parts = [X[a:b] for a, b in pairwise(CUTS)]
    expected = []
    for number, part in enumerate(parts):
        if part.shape[0]:
            shards = write_shards([part], tmp_path / f"part-{number}", shard_nonzeros=400).manifest.shards
            expected += [replace(e, name=e.name.replace("-", f"-{number:06d}-")) for e in shards]
    assert list(found.manifest.shards) == expected
    np.testing.assert_array_equal(all_counts(found), X.toarray())
    totals = np.load(found.folder / "word_totals.npy")
    np.testing.assert_array_equal(totals, X.sum(axis=0))


def test_workers_count_texts(texts_folder, tmp_path, client):
    vectorizer = text.Vectorizer()
    files = ParquetFiles(texts_folder, text="text")
    with pytest.raises(InputError, match="With a cluster the vectorizer must be fitted: fit it on ParquetFiles"):
        write_shards(files, tmp_path / "found", vectorizer=vectorizer, cluster=client)
    vectorizer.fit(ParquetFiles(files.names[0], text="text"))
    found = write_shards(files, tmp_path / "found", vectorizer=vectorizer, shard_nonzeros=90, cluster=client)
    np.testing.assert_array_equal(all_counts(found), vectorizer.transform(TEXTS).toarray())
    assert found.vocabulary == list(vectorizer.get_feature_names_out())


def test_workers_read_memory_of_their_process(memory, tmp_path, client):
    found = write_shards(ParquetFiles(memory, **COUNTED, n_words=60), tmp_path / "found", cluster=client)
    np.testing.assert_array_equal(all_counts(found), X.toarray())
    assert len(found.manifest.shards) == 3


def test_few_arrays_of_totals_are_sent(counts_folder, tmp_path, client, monkeypatch):
    monkeypatch.setattr(shard_writer, "_MAX_TOTALS", 2)
    files = ParquetFiles(counts_folder, **COUNTED, n_words=60)
    found = write_shards(files, tmp_path / "found", shard_nonzeros=400, cluster=client)
    assert len(found.manifest.shards) > 4
    np.testing.assert_array_equal(np.load(found.folder / "word_totals.npy"), X.sum(axis=0))


def test_an_interrupted_cluster_call_continues_after_the_last_complete_file(counts_folder, tmp_path, client):
    files = ParquetFiles(counts_folder, **COUNTED, n_words=60)
    whole = write_shards(files, tmp_path / "whole", shard_nonzeros=400, cluster=client)
    damaged = counts_folder / "part-00003-c000.snappy.parquet"
    content = damaged.read_bytes()
    damaged.write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"part-00003.* cannot be read"):
        write_shards(files, tmp_path / "found", shard_nonzeros=400, cluster=client)
    damaged.write_bytes(content)
    first = counts_folder / "part-00000-c000.snappy.parquet"
    first.write_bytes(b"not read again")
    assert 0 < read_manifest(tmp_path / "found").documents == 250
    found = write_shards(files, tmp_path / "found", cluster=client)
    assert found.manifest == whole.manifest


def test_a_cluster_does_not_continue_the_shards_of_one_process(counts_folder, tmp_path, client):
    found = write_shards([X], tmp_path / "found", shard_nonzeros=400)
    replace(found.manifest, shards=found.manifest.shards[:2], complete=False).write(found.folder)
    with pytest.raises(InputError, match="The interrupted call had no cluster: leave cluster out to continue"):
        write_shards(ParquetFiles(counts_folder, **COUNTED, n_words=60), found.folder, cluster=client)


def test_local_workers_read_files(counts_folder, tmp_path):
    files = ParquetFiles(counts_folder, **COUNTED, n_words=60)
    found = write_shards(files, tmp_path / "found", cluster=1)
    np.testing.assert_array_equal(all_counts(open_shards(found.folder)), X.toarray())


@pytest.mark.slow
@pytest.mark.parametrize(("allowed", "delay"), [(3, 0.2), (3, 0.8), (0, 0.4), (0, 1.2)])
def test_a_killed_worker_does_not_change_a_shard(tmp_path, client, allowed, delay):
    import dask

    frame = lists(X)
    folder = write_like_spark(tmp_path / "counts", [frame[a : a + 10] for a in range(0, 300, 10)])
    files = ParquetFiles(folder, **COUNTED, n_words=60)
    whole = write_shards(files, tmp_path / "whole", shard_nonzeros=100, cluster=client)
    killed = []

    def kill(cluster):
        while not (tmp_path / "found" / MANIFEST).exists():
            time.sleep(0.01)
        time.sleep(delay)
        nanny = next(iter(cluster.workers.values()))
        killed.append(len(read_manifest(tmp_path / "found").shards))
        os.kill(nanny.pid, signal.SIGKILL)

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": allowed}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=0) as cluster,
        distributed.Client(cluster) as processes,
    ):
        thread = threading.Thread(target=kill, args=(cluster,))
        thread.start()
        found = write_shards(files, tmp_path / "found", shard_nonzeros=100, cluster=processes)
        thread.join()
    assert killed[0] < len(whole.manifest.shards)
    assert found.manifest == whole.manifest


# errors


GOOD = {"indices": [[0]], "values": [[1.0]], "text": ["x"]}
BAD = [
    ({"text": [1]}, {"text": "text"}, r"bad\.parquet: the column 'text' must have texts\."),
    ({"text": [[1]]}, {"text": "text"}, r"bad\.parquet: the column 'text' must have texts\."),
    ({"a": [1], "b": [2]}, {"text": "text"}, r"bad\.parquet cannot be read \(it has no column 'text', but 'a', 'b'\)"),
    ({"indices": [[0]]}, COUNTED, "it has no column 'values', but 'indices'"),
    ({"text": [{"a": 1}]}, {"text": "text"}, "the column 'text' is neither of texts nor of numbers"),
    ({"values": [[-1.0]]}, COUNTED, r"bad\.parquet: the column 'values' must have finite and non-negative numbers\."),
    ({"values": [[float("nan")]]}, COUNTED, "the column 'values' must have finite and non-negative numbers"),
    ({"values": [[float("inf")]]}, COUNTED, "the column 'values' must have finite and non-negative numbers"),
    ({"indices": [[-1]]}, COUNTED, r"the column 'indices' must have numbers from 0 to 3, got -1\."),
    ({"indices": [[4]]}, COUNTED, r"the column 'indices' must have numbers from 0 to 3, got 4\."),
    ({"indices": [[0.5]]}, COUNTED, "the column 'indices' must have lists of whole numbers"),
    ({"indices": [0]}, COUNTED, "the column 'indices' must have lists of numbers"),
    ({"values": ["1"]}, COUNTED, "the column 'values' must have lists of numbers"),
    ({"values": [["1"]]}, COUNTED, "the column 'values' is neither of texts nor of numbers"),
    ({"indices": [[0, 1]]}, COUNTED, "the lists of 'indices' and 'values' must have the same lengths"),
    ({"values": [None]}, COUNTED, "the lists of 'indices' and 'values' must have the same lengths"),
    ({"values": [[None]]}, COUNTED, "a list of the column 'values' has a missing number"),
]


@pytest.mark.parametrize(("columns", "names", "message"), BAD, ids=range(len(BAD)))
def test_invalid_columns_are_refused_with_the_file(tmp_path, columns, names, message):
    whole = columns if len(columns) != 1 or {*columns} & {"text"} or "no column" in message else {**GOOD, **columns}
    pl.DataFrame(whole).write_parquet(tmp_path / "bad.parquet")
    files = ParquetFiles(tmp_path / "bad.parquet", **names, n_words=None if "text" in names else 4)
    with pytest.raises(InputError, match=message) as raised:
        write_shards(files, tmp_path / "s", vectorizer=text.Vectorizer() if "text" in names else None)
    assert "\n" not in str(raised.value)


def test_decimals_are_refused(tmp_path):
    pl.DataFrame(GOOD).with_columns(pl.col("values").cast(pl.List(pl.Decimal(10, 2)))).write_parquet(
        tmp_path / "d.parquet"
    )
    with pytest.raises(InputError, match="the column 'values' must have lists of integers or floating-point numbers"):
        list(ParquetFiles(tmp_path / "d.parquet", **COUNTED, n_words=1))


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + b"\xff" * 200 + b"PAR1"], ids=range(3))
def test_a_damaged_file_is_named_here_and_by_workers(tmp_path, client, content):
    (tmp_path / "bad.parquet").write_bytes(content)
    files = ParquetFiles(tmp_path / "bad.parquet", **COUNTED, n_words=4)
    for cluster in (None, client):
        with pytest.raises(InputError, match=r"bad\.parquet cannot be read \(.*\): write it again, or leave it out"):
            write_shards(files, tmp_path / "s", cluster=cluster)


@pytest.mark.parametrize(
    ("paths", "options", "message"),
    [
        ("nowhere", {}, "No Parquet file matches 'nowhere'"),
        ("nowhere/*.parquet", {}, "No Parquet file matches"),
        ("memory://nowhere", {}, "No Parquet file matches 'memory://nowhere'"),
        ([], {}, "give at least one path"),
        ("nosuch://x", {}, r"'nosuch://x' cannot be listed \(Protocol not known: nosuch"),
        (["a.parquet", "./*.parquet"], {}, r"a\.parquet occurs twice: give every file once"),
        ("a.parquet", {"text": None}, r"name a column of texts \(text\), or two columns of lists"),
        ("a.parquet", {"indices": "i", "values": "v"}, "name a column of texts"),
        ("a.parquet", {"text": None, "indices": "i"}, "name a column of texts"),
        ("a.parquet", {"n_words": 3}, "n_words must be at least 1 and needs the columns indices and values, got 3"),
        ("a.parquet", {"text": None, **COUNTED, "n_words": 0}, "n_words must be at least 1"),
    ],
)
def test_invalid_files_are_refused(tmp_path, monkeypatch, paths, options, message):
    monkeypatch.chdir(tmp_path)
    pl.DataFrame(GOOD).write_parquet("a.parquet")
    with pytest.raises(InputError, match=message):
        ParquetFiles(paths, **{"text": "text", **options})


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"text": "text"}, {}, "A vectorizer must count the texts of the column 'text': give vectorizer="),
        (COUNTED, {"vectorizer": text.Vectorizer()}, "A vectorizer counts texts: name a column of texts"),
        (COUNTED, {}, r"The number of words is not known: give ParquetFiles\(..., n_words=...\) or a vocabulary"),
        ({**COUNTED, "n_words": 4}, {"vocabulary": ["a"]}, "vocabulary has 1 words, but n_words is 4"),
    ],
)
def test_invalid_calls_are_refused(tmp_path, columns, options, message):
    pl.DataFrame(GOOD).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match=message):
        write_shards(ParquetFiles(tmp_path / "a.parquet", **columns), tmp_path / "s", **options)
    assert not (tmp_path / "s").exists()


def test_iterating_over_lists_needs_the_number_of_words(tmp_path):
    pl.DataFrame(GOOD).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match="The number of words is not known"):
        list(ParquetFiles(tmp_path / "a.parquet", **COUNTED))


def test_workers_read_nothing_but_parquet_files(tmp_path, client):
    with pytest.raises(InputError, match="workers read ParquetFiles only: leave cluster out, or use write_dask_shards"):
        write_shards([X], tmp_path / "s", cluster=client)


def test_files_without_documents_are_refused(tmp_path, client):
    lists(X)[:0].write_parquet(tmp_path / "a.parquet")
    for cluster in (None, client):
        with pytest.raises(InputError, match="There are no documents to write"):
            write_shards(ParquetFiles(tmp_path / "a.parquet", **COUNTED, n_words=60), tmp_path / "s", cluster=cluster)


def test_files_of_different_types_are_refused_by_a_cluster(tmp_path, client):
    lists(X, np.int64).write_parquet(tmp_path / "a.parquet")
    lists(X).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"b\.parquet has float64 counts where the files before have float32"):
        write_shards(ParquetFiles(tmp_path, **COUNTED, n_words=60), tmp_path / "s", cluster=client)


def test_a_remote_file_that_disappears_is_named(memory):
    files = ParquetFiles(memory, **COUNTED, n_words=60)
    fsspec.filesystem("memory").rm(files.names[1])
    with pytest.raises(InputError, match=r"memory:///polyseme-counts/part-00001.* cannot be copied"):
        list(files)


@pytest.mark.parametrize(("module", "extra"), [("fsspec", "dask"), ("polars", "text")])
def test_a_missing_extra_is_named(counts_folder, monkeypatch, module, extra):
    for name in [name for name in sys.modules if name.partition(".")[0] == module]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=f"needs the extra '{extra}'") as raised:
        list(ParquetFiles(counts_folder, **COUNTED, n_words=60))
    again = pickle.loads(pickle.dumps(raised.value))  # as a worker sends it
    assert str(again) == str(raised.value)
