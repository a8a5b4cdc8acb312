"""Search in a run: filters, phrases, snippets, and odd queries."""

import json
import os
import subprocess
import sys
from datetime import date
from pathlib import Path

import numpy as np
import pytest

import polyseme
from cli_runner import here
from polyseme import InputError
from polyseme.errors import ModelFileError
from polyseme.runs.search_index import INDEX_FILE

HARD = "The hard drive of the server failed while copies were written"
OTHER = "To drive a truck on a hard road is work for a careful driver"
SHIP = "The captain sailed ships over stormy oceans with a loyal crew"
ROWS = [
    {
        "id": f"d{row}",
        "text": f"{(HARD, OTHER, SHIP)[row % 3]} {row} {'again' if row % 2 else 'harbor'}.",  # a number: no copies
        "label": ("computers; faults", "roads", "sea")[row % 3],
        "time": f"{1900 + row // 4}-{1 + row % 4:02d}-15T23:59:59+14:00" if row else None,
    }
    for row in range(48)
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> polyseme.Run:
    place = tmp_path_factory.mktemp("searching")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("polyseme.runs.documents.BLOCK", 500)
        return fitted(place)


def fitted(place: Path) -> polyseme.Run:
    (place / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    run = polyseme.fit(
        str(place / "in.jsonl"), n_topics=3, label="label", time="time", language="english", max_df=1.0,
        random_state=0, output=place / "run",
    )  # fmt: skip
    return run.edit(rename={0: "Zero"})


def ids(results: object) -> set[str]:
    return {hit.id for hit in results}  # type: ignore[attr-defined]


def those(condition) -> set[str]:  # type: ignore[no-untyped-def]
    return {row["id"] for number, row in enumerate(ROWS) if condition(number, row)}


def test_filters_are_applied_before_the_best_are_chosen(run: polyseme.Run) -> None:
    """As many hits come back as documents pass the filters and contain the word, up to k."""
    everything = run.search("drive", 48)
    hard = those(lambda number, row: number % 3 < 2)
    assert ids(everything) >= hard
    assert ids(run.search("drive", 16, label="roads")) == those(lambda number, row: number % 3 == 1)
    assert ids(run.search("drive", 20, label="faults")) == those(lambda number, row: number % 3 == 0)
    assert len(run.search("drive", 20, label=["faults", "roads"])) == 20
    assert len(run.search("drive", 5, label="roads")) == 5
    main = run.documents["topic"].to_list()
    for topic in range(3):
        expected = hard & {f"d{row}" for row in range(48) if main[row] == topic}
        assert ids(run.search("drive", 48, topic=topic, method="bm25")) == expected
        assert ids(run.search("drive", 48, topic=str(topic), method="bm25")) == expected
    named = run.search("drive", 48, topic="zero", method="bm25")
    assert ids(named) == ids(run.search("drive", 48, topic=[0], method="bm25"))
    both = {hit.id for hit in run.search("drive", 48, exclude=["copying", "harbor"], method="bm25")}
    assert both == those(lambda number, row: number % 3 == 1 and number % 2)
    assert ids(run.search("d1", 48, like=True, label="roads", method="bm25")) == those(
        lambda number, row: number % 3 == 1 and number != 1
    )


@pytest.mark.parametrize(
    ("since", "until", "first", "last"),
    [
        ("1903", "1904", "1903-01-01", "1904-12-31"),
        (1903, 1903, "1903-01-01", "1903-12-31"),
        ("1905-02", None, "1905-02-01", "9999"),
        (None, "1905/2", "0000", "1905-02-29"),
        ("1905-02-15", "1905-02-15T00:00:00Z", "1905-02-15", "1905-02-15"),
        (date(1905, 2, 16), np.datetime64("1905-03-15"), "1905-02-16", "1905-03-15"),
    ],
)
def test_documents_of_some_days(run: polyseme.Run, since: object, until: object, first: str, last: str) -> None:
    """Days are those as written: times of the day and time zones do not count, and until 1904 means its last day."""
    found = run.search("drive captain", 48, since=since, until=until, method="bm25")
    assert ids(found) == those(lambda number, row: row["time"] is not None and first <= row["time"][:10] <= last)


def test_quoted_phrases_are_matched_exactly(run: polyseme.Run) -> None:
    faults = those(lambda number, row: number % 3 == 0)
    hits = run.search('"hard drive"', 48)
    assert ids(hits) == faults
    assert [hit.rank for hit in hits] == list(range(1, 17))
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert [hit.snippet.text[slice(*hit.snippet.marks[0])] for hit in hits] == ["hard drive"] * 16
    assert len(run.search('"hard drive"', 3)) == 3
    assert ids(run.search('server "HARD  drive" “of the”', 48, exclude="harbor")) == faults & those(
        lambda number, row: number % 2
    )
    assert ids(run.search('drive "a truck on a"', 48)) == those(lambda number, row: number % 3 == 1)
    nothing = run.search('"drive hard"')
    assert (len(nothing), nothing.note) == (0, "No document contains the phrase and matches the query.")
    assert run.search('"of the"').note == "The query has no words that the index knows."


def test_snippets_mark_all_forms_of_a_word(run: polyseme.Run) -> None:
    snippet = run.search("driving careful", 1)[0].snippet
    assert [snippet.text[start:end] for start, end in snippet.marks] == ["drive", "careful", "driver"] or [
        snippet.text[start:end] for start, end in snippet.marks
    ] == ["drive", "careful"]
    assert run.search("oceans", 1)[0].to_dict()["snippet"]["text"].startswith("The captain sailed ships over stormy")
    like = run.search("d2", 1, like=True)[0].snippet
    assert "captain" in [like.text[start:end] for start, end in like.marks]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ({"label": "seas"}, ["--label", "seas"], "no document has the label 'seas'; the run has labels such as 'sea'"),
        ({"topic": 3}, ["--topic", "3"], "the run has the topics 0 to 2, got 3"),
        ({"topic": "One"}, ["--topic", "One"], "no topic has the name 'One'; there are 'Zero'"),
        ({"since": "June"}, ["--since", "June"], "must be a year or a date such as 1871, 1871-06 or 1871-06-30, got"),
        ({"until": "1900-02-30"}, ["--until", "1900-02-30"], "must be a year or a date such as 1871"),
        ({"since": 1903, "until": 1902}, ["--since", "1903", "--until", "1902"], "must not be after"),
        (
            {"exclude": "zebra"},
            ["--not", "zebra"],
            "the run does not count 'zebra': it is unknown, rare or a stop word",
        ),
        ({"exclude": "the"}, ["--not", "the"], "the run does not count 'the'"),
    ],
)
def test_filters_that_cannot_be_applied(
    run: polyseme.Run, arguments: dict[str, object], options: list[str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        run.search("drive", **arguments)
    ended = here("search", str(run.path), "drive", *options)
    assert ended.exit_code == 1
    assert message in " ".join(ended.stderr.split())
    assert ended.stderr.split()[1].rstrip(":") == options[0]


def test_wrong_types_of_filters(run: polyseme.Run) -> None:
    with pytest.raises(InputError, match=r"label= must be a label, or several of them in a list, got 5"):
        run.search("drive", label=5)
    with pytest.raises(InputError, match="topic= must be the number or the name of a topic"):
        run.search("drive", topic=[True])


LONG = " ".join(f"word{number} drive" for number in range(5000))
ODD = {
    "many words": (LONG, ""),
    "one stop word": ("the", "The query has no words that the index knows."),
    "unknown words": ("zebra giraffe", "The query has no words that the index knows."),
    "control characters": ("\x1b[31m drive\x00\x07 \u202e", ""),
    "only control characters": ("\x1b\x00\r\n", "The query has no words that the index knows."),
    "nothing": ("", "The query has no words that the index knows."),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_queries(run: polyseme.Run, name: str) -> None:
    query, note = ODD[name]
    found = run.search(query, 3)
    assert (len(found), found.note) == ((0, note) if note else (3, ""))
    assert run.search(query, 3, label="roads").note == note
    shown = here("search", str(run.path), query, "-n", "3")
    assert shown.exit_code == 0
    assert note in shown.stdout
    assert not {"\x1b", "\x00", "\x07", "\u202e"} & set(shown.output)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ('5" drive', "The query has a quotation mark without a partner"),
        ('drive ""', "The query has a phrase without words"),
    ],
)
def test_incomplete_phrases(run: polyseme.Run, query: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        run.search(query)
    ended = here("search", str(run.path), query)
    assert ended.exit_code == 1
    assert message in ended.stderr


def test_filters_without_words_or_documents(run: polyseme.Run) -> None:
    assert (
        run.search("drive", since=1900, until=1900, label="sea").note
        == "No document matches the query and the filters."
    )
    assert run.search("drive", since=2000).note == "No document passes the filters."
    ended = here("search", str(run.path), "--label", "sea")
    assert ended.exit_code == 2
    assert "Missing argument" in ended.stderr


def test_a_run_without_texts_labels_and_dates(tmp_path: Path) -> None:
    texts = [row["text"] for row in ROWS]
    run = polyseme.fit(texts, n_topics=2, random_state=0, keep_texts=False, max_df=1.0, output=tmp_path / "run")
    assert run.search("drive", 1)[0].snippet.marks  # in the excerpt
    with pytest.raises(InputError, match="The run does not store texts, which a search for a phrase needs: search"):
        run.search('"hard drive"')
    with pytest.raises(InputError, match="label=: the documents of this run have no labels"):
        run.search("drive", label="sea")
    ended = here("search", str(run.path), "drive", "--until", "1903")
    assert "--until: no document of this run has a date; a fit reads dates with --time COLUMN." in ended.stderr


def test_phrases_of_joined_words(tmp_path: Path) -> None:
    """With joined phrases the index counts new_york_city, so that neither new nor york has a column."""
    texts = [f"new york city {word}" for word in ("opera", "harbor", "museum", "bridge")] * 10 + [
        "york minster choir"
    ] * 10
    run = polyseme.fit(texts, n_topics=2, random_state=0, phrases=True, language="english", max_df=1.0)
    assert [hit.n_duplicates for hit in run.search('"new york"', 50)] == [9] * 4
    assert len(run.search('new york "york city"', 50)) == 4  # york is a part of new_york and of york_minster_choir
    assert len(run.search('new york "york minster"', 50)) == 0
    assert run.search("new york", 50, exclude="york").note == "No document passes the filters."


def test_a_search_reads_the_blocks_of_its_hits(run: polyseme.Run, tmp_path: Path) -> None:
    """Damage to another block does not matter; damage to the block of a hit is reported."""
    run = run.save(tmp_path / "run")
    expected = run.search("captain", 1)[0]
    blocks = run.store.documents.arrays["text.blocks"].tolist()
    row = run.store.documents.arrays["text.rows"].tolist()
    hit = next(number for number in range(len(blocks)) if row[number] <= expected.row < row[number + 1])
    content = (run.path / "documents.blocks").read_bytes()
    for number, (start, size, _) in enumerate(blocks):
        damaged = bytearray(content)
        damaged[start + size // 2] ^= 1
        (run.path / "documents.blocks").write_bytes(damaged)
        if number != hit:
            assert run.search("captain", 1)[0].snippet == expected.snippet
        else:
            with pytest.raises(ModelFileError, match=r"documents\.blocks is damaged .*: restore it, or fit again"):
                run.search("captain", 1)


def test_an_update_stores_what_a_new_index_has(run: polyseme.Run, tmp_path: Path) -> None:
    run = run.save(tmp_path / "run")
    run.search("drive", 1)
    for added in (["Ships are driven by the wind of the oceans"], [f"{HARD} {number}" for number in range(30)]):
        run = run.update(added)
        stored = (run.path / INDEX_FILE).read_bytes()
        (run.path / INDEX_FILE).unlink()
        assert run.search(f'"{added[-1]}"', 1)[0].snippet.text == added[-1]
        assert (run.path / INDEX_FILE).read_bytes() == stored


def test_another_process_builds_the_same_files(run: polyseme.Run, tmp_path: Path) -> None:
    """Also with another seed for the hashes of strings, and another number of threads."""
    copies = [run.save(tmp_path / name) for name in ("here", "there")]
    copies[0].search("drive", 1)
    program = "import sys, polyseme; polyseme.open_run(sys.argv[1]).search('drive', 1)"
    variables = {**os.environ, "PYTHONHASHSEED": "7", "OMP_NUM_THREADS": "3"}
    subprocess.run([sys.executable, "-c", program, str(copies[1].path)], check=True, env=variables)
    for name in (INDEX_FILE, "documents.index", "documents.blocks"):
        assert (copies[0].path / name).read_bytes() == (copies[1].path / name).read_bytes()


def test_beginnings_of_words_and_excluded_words(run: polyseme.Run) -> None:
    """The same documents as with all words that begin so, or with exclude=."""
    words = [word for word in run.vocabulary if word.startswith("car") or word.startswith("cap")]
    assert len(words) == 2
    found = run.search("ca*", 48, method="bm25")
    assert ids(found) == ids(run.search(" ".join(words), 48, method="bm25")) == those(lambda number, row: number % 3)
    without = ids(run.search("drive", 48, exclude="harbor", method="bm25"))
    for query in ("drive -harbor", "drive NOT harbor", "drive -harb*"):
        assert ids(run.search(query, 48, method="bm25")) == without
    assert ids(run.search('"hard drive" -harbor', 48)) == those(lambda number, row: number % 6 == 3)
    for arguments in (("drive", "-harbor"), ("-harbor", "drive"), ("drive", "NOT", "harbor"), ("drive -harbor",)):
        shown = here("search", str(run.path), *arguments, "-n48", "--method", "bm25", "--json")
        assert {hit["id"] for hit in json.loads(shown.stdout)["hits"]} == without
    with pytest.raises(InputError, match=r"-harbro: the run does not count 'harbro': .* \(nearest: harbor\)"):
        run.search("drive -harbro")


def test_unknown_words_have_the_nearest_known_ones(run: polyseme.Run) -> None:
    found = run.search("drive the capzain zebra sevrer zeb* driv*", 1)
    assert found.unknown == (("capzain", ("captain",)), ("zebra", ()), ("sevrer", ("server",)), ("zeb*", ()))
    assert found.to_dict()["unknown"][0] == {"word": "capzain", "nearest": ["captain"]}
    assert run.search("drive the captain").unknown == ()
    shown = here("search", str(run.path), "capzain", "zebra")
    assert "Not in the vocabulary: capzain (nearest: captain), zebra." in " ".join(shown.stdout.split())
