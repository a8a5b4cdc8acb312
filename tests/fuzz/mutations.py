"""Random changes of files: of bytes, and of the content of JSON, arrays, Parquet and archives."""

import bz2
import copy
import gzip
import io
import json
import lzma
import struct
import zipfile
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any

import numpy as np

MOST_BYTES = 100_000
"""Maximum size of mutated files, so that slow cases are slow because of their content."""

TOKENS = [
    *(b"\0", b"\xff", b"\xfe\xff", b'"', b",", b"\n", b"\r"),
    *(b"\t", b"{", b"}", b"[" * 50, b"]]", b"|}", b"\\ud800", b"\\"),
    *(b"<page>", b"</page>", b"<text>", b"</mediawiki>", b"<!--", b"&lt;"),
    *(b"&#x0;", b"<ref>", b"{{", b"}}", b"[[", b"<"),
    *(b"<!DOCTYPE a [<!ENTITY b 'c'>]>", b"\x1f\x8b\x08\0", b"BZh9"),
    *(b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"9" * 30, b"-1"),
    *(b'<?xml version="1.0" encoding="shift_jis"?>', b"<meta charset=gb2312>"),
    *(b"\xef\xbb\xbf", b"<title>", b"<p>" * 300),
    *(b"endstream", b"endobj", b"1 0 R", b"<<", b">>", b"PAR1", b"\xc3", b"\xed\xa0\x80", "ö☃😀".encode("utf-16")),
    *(b"\xfd7zXZ\0", b"1e999", b"NaN", b"null", b"\x1b]52;c;", b"\xe2\x80\xae", b'encoding="utf-7"', b"{" * 600),
]  # fmt: skip

ODD_VALUES: Sequence[Any] = (
    *(None, True, False, 0, 1, -1, 2, 255),
    *(2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63, -(2**63), 10**30, 100_000, 10**9),
    *(0.0, -0.0, 0.5, 1.5, -1e-300, 1e308, 5e-324, float("nan"), float("inf"), float("-inf")),
    *("", " ", "0", "1", "-1", "²", "word", "a b", "\0"),
    *("\x1b[2J", "ö", "\ud800", "../x", "/", "C:\\x", "x" * 300, "(a+)+$", "["),
    *("filename", "file", "int64", "float32", "object", "U", "F64", "I64", "zip", "auto", "none", "english", "PLSA"),
    *([], {}, [[]], [None], [1, 2], [0, 0], ["a"], ["a", "a"], {"a": 1}, [1e9, -1], [[1, 2], [3]], [[[[[[]]]]]]),
)  # fmt: skip


def mutate_bytes(content: bytes, random: Random, places: range | None = None) -> bytes:
    """Return bytes with a few parts replaced, repeated, removed or swapped, or with a bit flipped."""
    for _ in range(random.choice((1, 1, 1, 2, 3, 6))):
        size = len(content)
        within = range(size + 1) if places is None else range(min(places.start, size), min(places.stop, size) + 1)
        at = random.choice(within) if within else size
        kind = random.choice(
            ("flip", "flip", "flip", "token", "token", "bytes", "repeat", "cut", "end", "swap", "number")
        )
        if kind == "flip" and at < size:
            content = content[:at] + bytes([content[at] ^ (1 << random.randrange(8))]) + content[at + 1 :]
        elif kind == "token":
            content = content[:at] + random.choice(TOKENS) + content[at + random.randint(0, 8) :]
        elif kind == "bytes":
            content = content[:at] + random.randbytes(random.randrange(1, 9)) + content[at + random.randint(0, 8) :]
        elif kind == "repeat":
            length = random.randint(1, 60)
            content = content[:at] + content[at : at + length] * random.randint(2, 300) + content[at + length :]
        elif kind == "cut":
            content = content[:at] + content[at + random.randint(1, 100) :]
        elif kind == "end":
            content = content[:at] if random.random() < 0.5 else content[at:]
        elif kind == "swap":
            length, other = random.randint(1, 8), random.randrange(size + 1)
            first, last = sorted((at, other))
            one, two = content[first : first + length], content[last : last + length]
            if first + length <= last:
                content = content[:first] + two + content[first + length : last] + one + content[last + length :]
        elif kind == "number":
            width, value = (
                random.choice((1, 2, 4, 8)),
                random.choice((0, 1, 2**7, 2**15, 2**31 - 1, 2**31, 2**63, 2**64 - 1)),
            )
            content = content[:at] + (value % 256**width).to_bytes(width, "little") + content[at + width :]
        content = content[:MOST_BYTES]
    return content


def mutate_in_place(content: bytes, random: Random) -> bytes:
    """Return bytes of the same number with a few digits, letters or bits changed, which often leaves a valid file."""
    changed = bytearray(content)
    for _ in range(random.choice((1, 1, 2, 4)) if content else 0):
        at = random.randrange(len(changed))
        old = changed[at]
        if 48 <= old <= 57:
            changed[at] = random.choice([digit for digit in b"0123456789" if digit != old])
        elif 97 <= old <= 122:
            changed[at] = random.choice([letter for letter in b"aeinorst" if letter != old])
        else:
            changed[at] ^= 1 << random.randrange(8)
    return bytes(changed)


# JSON


def mutate_json(content: bytes, random: Random) -> bytes:
    """Return JSON with values of other types and sizes, or with missing, repeated or renamed keys."""
    try:
        value = json.loads(content)
        for _ in range(random.choice((1, 1, 2, 4))):
            value = _changed(value, random)
        return json.dumps(value).encode()
    except (ValueError, RecursionError):  # not JSON, or nested too deeply to be changed here
        return mutate_bytes(content, random)


def _changed(value: Any, random: Random) -> Any:
    """Return `value` with one node of its tree changed."""
    places = list(_places(value))
    if not places:
        return _odd_value(random)
    holder, key = random.choice(places)
    kind = random.choice(("odd", "odd", "odd", "near", "near", "drop", "twice", "rename", "swap"))
    if kind == "odd":
        holder[key] = _odd_value(random)
    elif kind == "near":
        holder[key] = _near(holder[key], random)
    elif kind == "drop":
        del holder[key]
    elif kind == "twice" and isinstance(holder, list):
        holder.insert(key, holder[key])
    elif kind == "rename" and isinstance(holder, dict):
        holder[random.choice(("", "x", "class", "parameters", str(key) + "_", str(key).upper()))] = holder.pop(key)
    else:
        other, at = random.choice(places)
        holder[key], other[at] = other[at], holder[key]
        if _is_circular(value):
            return _odd_value(random)
    return value


def _odd_value(random: Random) -> Any:
    """Return a new copy: a list that is shared between cases would be changed by all of them."""
    return copy.deepcopy(random.choice(ODD_VALUES))


def _places(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, dict):
        items: Iterable[tuple[Any, Any]] = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    else:
        return
    for key, part in items:
        yield value, key
        yield from _places(part)


def _is_circular(value: Any) -> bool:
    try:
        json.dumps(value)
    except ValueError:
        return True
    return False


def _near(value: Any, random: Random) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return random.choice((value + 1, value - 1, -value, value * 1000, value / 2, str(value), [value]))
    if isinstance(value, str):
        at = random.randrange(len(value) + 1)
        return (
            value[:at]
            + random.choice(("", "x", " ", "\0", "é", "9", ",", '"', "\ud800"))
            + value[at + random.randint(0, 1) :]
        )
    if isinstance(value, list):
        return random.choice((value[:-1], value[::-1], [*value, *value], [*value, None], dict(enumerate(value))))
    if isinstance(value, dict):
        return random.choice((list(value.items()), list(value), {**value, "x": 1}))
    return _odd_value(random)


# arrays

_ELEMENTS = {
    **{"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1"},
    **{"U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?"},
}


def mutate_safetensors(content: bytes, random: Random) -> bytes:
    """Change the header (names, types, shapes, offsets, metadata) or entries of an array."""
    if len(content) < 8:
        return mutate_bytes(content, random)
    (length,) = struct.unpack("<Q", content[:8])
    header, data = content[8 : 8 + length], content[8 + length :]
    kind = random.choice(("bytes", "length", "header", "metadata", "entries", "entries", "entries"))
    if kind == "bytes":
        return mutate_bytes(content, random)
    if kind == "length":
        return struct.pack("<Q", random.choice((0, 1, length - 1, length + 1, 2**31, 2**63, 2**64 - 1))) + content[8:]
    if kind == "header":
        return _with_header(mutate_json(header, random), data)
    try:
        parsed = json.loads(header)
    except ValueError:
        return mutate_bytes(content, random)
    if not isinstance(parsed, dict):
        return mutate_bytes(content, random)
    metadata = parsed.get("__metadata__")
    if kind == "metadata" and metadata:
        name = random.choice(sorted(metadata))
        metadata[name] = mutate_json(metadata[name].encode(), random).decode("utf-8", "replace")
        return _with_header(json.dumps(parsed).encode(), data)
    entries = [entry for name, entry in sorted(parsed.items()) if name != "__metadata__" and isinstance(entry, dict)]
    arrays = [entry for entry in entries if entry.get("dtype") in _ELEMENTS]
    if not arrays:
        return mutate_bytes(content, random)
    entry = random.choice(arrays)
    start, stop = entry["data_offsets"]
    changed = _odd_entries(data[start:stop], np.dtype(_ELEMENTS[entry["dtype"]]), random)
    return content[: 8 + length] + data[:start] + changed + data[stop:]


def _with_header(header: bytes, data: bytes) -> bytes:
    return struct.pack("<Q", len(header)) + header + data


def mutate_npy(content: bytes, random: Random) -> bytes:
    """Change the header of a .npy file or entries of its array."""
    kind = random.choice(("bytes", "header", "header", "entries", "entries"))
    end = content.find(b"\n") + 1
    if kind == "bytes" or not content.startswith(b"\x93NUMPY") or not end:
        return mutate_bytes(content, random)
    if kind == "header":
        wrong = random.choice((b"'<f8'", b"'|O'", b"'<f4'", b"'|V0'", b"'<i8'", b"'U9999'", b"[('a', '<f8')]", b"None"))
        shape = random.choice(
            (b"()", b"(0,)", b"(-1,)", b"(1, 1)", b"(10000000000000,)", b"(True,)", b"('a',)", b"(1.5,)", b"3")
        )
        header = random.choice((
            b"{'descr': %s, 'fortran_order': False, 'shape': (3, 2)}" % wrong,
            b"{'descr': '<f8', 'fortran_order': True, 'shape': %s}" % shape,
            b"{'descr': '<f8'}", b"(" * 5000, b"", b"{}", b"[]",
            b"{'descr': '<f8', 'fortran_order': 7, 'shape': (3,), 'x': 1}",
            mutate_bytes(content[10:end], random),
        ))  # fmt: skip
        header = header.ljust(64) + b"\n"
        return content[:8] + struct.pack("<H", len(header) % 65536) + header + content[end:]
    data = content[end:]
    element = np.dtype("<i8") if b"i8" in content[:end] else np.dtype("<f8")
    return content[:end] + _odd_entries(data, element, random)


def _odd_entries(data: bytes, element: np.dtype[Any], random: Random) -> bytes:
    array = np.frombuffer(data[: len(data) // element.itemsize * element.itemsize], element).copy()
    rest = data[array.nbytes :]
    if not len(array):
        return data
    if element.kind == "f":
        largest = float(np.finfo(element).max)
        odd: Sequence[Any] = (
            float("nan"),
            float("inf"),
            float("-inf"),
            -1.0,
            0.0,
            largest,
            float(np.finfo(element).tiny) / 8,
            1e6,
        )
    elif element.kind in "iu":
        info = np.iinfo(element)
        odd = (info.max, info.min, 0, 1, info.max // 2, min(info.max, len(array)), max(info.min, -1))
    else:
        odd = (True, False)
    kind = random.choice(("one", "one", "few", "all", "shuffle"))
    if kind == "all":
        array[:] = random.choice(odd)
    elif kind == "shuffle":
        array[:] = array[[random.randrange(len(array)) for _ in range(len(array))]]
    else:
        for _ in range(1 if kind == "one" else 5):
            at = random.randrange(len(array))
            near = element.kind in "iu" and random.random() < 0.5
            array[at] = (
                int(array[at]) + random.choice((1, -1))
                if near and info.min < array[at] < info.max
                else random.choice(odd)
            )
    return array.tobytes() + rest


# Parquet


def mutate_parquet(content: bytes, random: Random) -> bytes:
    """Change bytes, mostly of the footer, or write a table with missing columns, other types or other values."""
    kind = random.choice(("bytes", "footer", "footer", "table", "table"))
    if kind == "bytes" or len(content) < 12:
        return mutate_bytes(content, random)
    if kind == "footer":
        length = int.from_bytes(content[-8:-4], "little")
        return mutate_bytes(content, random, range(max(4, len(content) - 8 - length), len(content)))
    import polars as pl  # imported here, because its threads do not survive a fork: only forked children may use it

    try:
        table = pl.read_parquet(io.BytesIO(content))
    except Exception:  # mutated before
        return mutate_bytes(content, random)
    for _ in range(random.choice((1, 1, 2))):
        table = _other_table(table, random)
    written = io.BytesIO()
    table.write_parquet(written, compression=random.choice(("zstd", "snappy", "gzip", "uncompressed", "lz4")))
    return written.getvalue()


def _other_table(table: Any, random: Random) -> Any:
    import polars as pl

    name = random.choice(table.columns) if table.columns else "text"
    size = max(len(table), 1)
    kind = random.choice(("values", "values", "values", "drop", "rename", "rows", "none", "twice"))
    if kind == "drop" and table.columns:
        return table.drop(name)
    if kind == "rename" and table.columns:
        new = random.choice(("", "x", "text", "id", "topic_0", name.upper()))
        return table if new in table.columns else table.rename({name: new})
    if kind == "rows":
        return random.choice((table.head(1), table.clear(), table.reverse(), table.head(len(table) - 1)))
    if kind == "twice":
        return pl.concat([table, table])
    if kind == "none":
        return table.with_columns(pl.lit(None).alias(name))

    def drawn(*values: Any, dtype: Any = None) -> Any:
        return pl.Series(name, [random.choice(values) for _ in range(size)], dtype=dtype)

    dates, times = (0, 10**9, -(10**9), 2**31 - 1), (0, 2**62, -(2**62), 10**15)
    columns: Sequence[Callable[[], Any]] = (
        lambda: drawn(0, 1, -1, 2**63 - 1, -(2**63), dtype=pl.Int64),
        lambda: drawn(0, 1, 2**64 - 1, dtype=pl.UInt64),
        lambda: drawn(0.5, float("nan"), float("inf"), -1.0, 1e308, None, dtype=pl.Float64),
        lambda: drawn("", "ö", "\0", "a\x1b[2J", "x" * 2000, None, dtype=pl.String),
        lambda: drawn(b"", b"\xff\xfe", b"ab", None, dtype=pl.Binary),
        lambda: drawn([1], [], dtype=pl.List(pl.Int64)),
        lambda: drawn([[1.0, 2.0]]),
        lambda: drawn({"a": 1, "b": "x"}),
        lambda: drawn(*dates, dtype=pl.Int32).cast(pl.Date),
        lambda: drawn(*times, dtype=pl.Int64).cast(pl.Datetime(random.choice(("ms", "us", "ns")))),
        lambda: drawn(2**62, dtype=pl.Int64).cast(pl.Duration("us")),
        lambda: drawn(0, 86_399 * 10**9, dtype=pl.Int64).cast(pl.Time),
        lambda: drawn("1.5").cast(pl.Decimal(38, 2)),
        lambda: drawn("a", "b", dtype=pl.Categorical),
        lambda: drawn(True, None, dtype=pl.Boolean),
    )
    new = random.choice(columns)()
    return table.with_columns(new) if len(table) else pl.DataFrame([new])


# archives and compressed files


def mutate_zip(content: bytes, random: Random) -> bytes:
    """Change the bytes of an archive, or the content, name or compression of a member."""
    if random.random() < 0.35:
        return mutate_bytes(content, random)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except Exception:  # mutated before
        return mutate_bytes(content, random)
    if not members:
        return mutate_bytes(content, random)
    name = random.choice(sorted(members))
    if random.random() < 0.85:
        members[name] = mutate_bytes(members[name], random)
    else:
        members[random.choice(("word/document.xml", "content.xml", "../x", "mimetype", "ö", ""))] = members.pop(name)
    written = io.BytesIO()
    ways = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    with zipfile.ZipFile(written, "w", random.choice(ways)) as archive:
        for name, member in members.items():
            archive.writestr(name or "x", member)
    return written.getvalue() if random.random() < 0.8 else mutate_bytes(written.getvalue(), random)


def compress(content: bytes, how: str) -> bytes:
    """Return `content` as a .gz, .bz2, .xz or .zst file."""
    if how == "zst":
        from backports import zstd

        return zstd.compress(content)
    return {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}[how](content)


BY_SUFFIX: dict[str, Callable[[bytes, Random], bytes]] = {
    **{".json": mutate_json, ".safetensors": mutate_safetensors, ".npy": mutate_npy, ".parquet": mutate_parquet},
    **{".npz": mutate_zip, ".docx": mutate_zip, ".odt": mutate_zip, ".xlsx": mutate_zip, ".ods": mutate_zip},
}
"""Mutations by suffix; other files are changed by bytes."""


def mutate(content: bytes, suffix: str, random: Random) -> bytes:
    """Return a mutation of a file according to its format, or of its bytes."""
    return BY_SUFFIX.get(suffix, mutate_bytes)(content, random)[:MOST_BYTES]
