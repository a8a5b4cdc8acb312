"""Near-duplicates in runs: kept or dropped, shown once in every list, found again by an update."""

import json
import re
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import polyseme
from cli_runner import here
from polyseme.errors import InputError
from polyseme.explore.page_data import run_page_data
from polyseme.runs.info import Duplicates

SUBJECTS = {
    "sea": "captain sailed ships over stormy oceans with a loyal crew and a cargo of salt",
    "bread": "baker mixed flour water salt and yeast then baked loaves in a hot stone oven",
    "stars": "astronomer watched planets comets and distant galaxies through a large telescope",
}


def corpus() -> list[str]:
    """Return thirty texts: 3, 4, 15 and 29 are copies of others, and 20 quotes another one in a longer text."""
    rng = np.random.default_rng(0)
    texts = []
    for number in range(30):
        words = list(SUBJECTS.values())[number % 3].split()
        texts.append(" ".join(words + [f"{words[place]} n{number}" for place in rng.integers(len(words), size=20)]))
    texts[3] = texts[0]
    texts[4] = texts[1].upper().replace(" N13", " ")
    texts[15] = "\n".join(reversed(re.findall(".{1,120}(?: |$)", texts[0])))
    texts[20] = f"> {texts[2]}\n" + " ".join(f"telescope remark{number}" for number in range(15))
    texts[29] = texts[2] + " thanks"
    return texts


GROUPS = [*range(30)]
for copy, first in {3: 0, 4: 1, 15: 0, 29: 2}.items():
    GROUPS[copy] = first
SETTINGS = {"language": None, "max_df": 1.0, "random_state": 0, "page": False}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> polyseme.Run:
    return polyseme.fit(corpus(), 3, output=tmp_path_factory.mktemp("duplicates") / "run", **SETTINGS)


def test_documents_name_the_first_of_their_group(run: polyseme.Run) -> None:
    assert run.view.corpus.groups.tolist() == GROUPS
    assert run.info.duplicates == Duplicates("keep", 4, 30)
    frame = run.documents
    copies = frame.filter(pl.col("duplicate_row").is_not_null())
    assert copies["duplicate_row"].to_list() == [0, 1, 0, 2]
    assert copies["duplicate_of"].to_list() == [frame["id"][row] for row in (0, 1, 0, 2)]
    assert run.info.documents == 30
    assert polyseme.open_run(run.path).view.corpus.groups.tolist() == GROUPS


def test_shards_find_the_same(run: polyseme.Run) -> None:
    assert polyseme.fit(corpus(), 3, shards=True, **SETTINGS).view.corpus.groups.tolist() == GROUPS


def test_lists_show_one_of_a_group(run: polyseme.Run) -> None:
    for rows in run.view.topic_documents(30).documents:
        assert len(set(run.view.corpus.groups[rows])) == len(rows)
    assert sum(map(len, run.view.topic_documents(30).documents)) > 20
    hits = run.search("captain salt ships", 10)
    assert len({GROUPS[hit.row] for hit in hits}) == len(hits) == 10
    copies = {hit.row: hit.n_duplicates for hit in hits if hit.n_duplicates}
    assert {GROUPS[row]: n for row, n in copies.items()}.items() <= {0: 2, 1: 1, 2: 1}.items()
    assert 2 in copies.values()
    assert hits.to_dict()["hits"][0]["n_duplicates"] in (0, 1, 2)
    assert [hit.rank for hit in hits] == list(range(1, 11))
    shown = here("search", str(run.path), "captain", "salt", "ships").stdout
    assert shown.count("and 2 near-duplicates") == 1
    data = run_page_data(run)
    assert data.groups is not None
    assert data.groups.tolist() == GROUPS


def test_hits_are_as_many_as_asked_for_although_most_are_copies() -> None:
    texts = [f"red wine {'and cheese ' * (number % 5)}" for number in range(40)] + ["bread and wine", "wine of spain"]
    run = polyseme.fit(texts, 2, **SETTINGS)
    assert len(run.search("wine", 3)) == 3
    assert len(run.search("wine", 100)) == len(set(run.view.corpus.groups.tolist()))


def test_like_finds_the_copies_once(run: polyseme.Run) -> None:
    hits = run.search(run.view.corpus.ids[0], 5, like=True)
    assert hits[0].row in (3, 15)
    assert [GROUPS[hit.row] for hit in hits].count(0) == 1


def test_a_sample_has_groups_of_its_own_rows(run: polyseme.Run) -> None:
    sample = run.sample(12, random_state=3)
    kept = np.array(GROUPS)[sample.corpus.rows]
    assert [kept[row] for row in sample.corpus.groups] == kept.tolist()
    assert all(group <= row for row, group in enumerate(sample.corpus.groups))
    assert sample.title.endswith(f"(12 of {run.info.documents} documents)")
    assert f"({run.info.documents} of" in run.sample(10_000).title


class TestDrop:
    @pytest.mark.parametrize("shards", [False, True])
    def test_near_duplicates_are_left_out(self, shards: bool) -> None:
        dropped = polyseme.fit(corpus(), 3, duplicates="drop", shards=shards, **SETTINGS)
        kept = [text for text, (row, group) in zip(corpus(), enumerate(GROUPS), strict=True) if row == group]
        alone = polyseme.fit(kept, 3, shards=shards, **SETTINGS)
        assert dropped.texts == kept
        assert dropped.info.documents == dropped.info.documents == 26
        assert dropped.info.left_out == {"near-duplicates": 4}
        np.testing.assert_array_equal(dropped.model.components_, alone.model.components_)
        assert dropped.view.corpus.groups.tolist() == list(range(26))

    def test_update_drops_them_too(self) -> None:
        dropped = polyseme.fit(corpus(), 3, duplicates="drop", **SETTINGS)
        updated = dropped.update([corpus()[0] + " again", "a comet and a telescope of the astronomer"])
        assert updated.info.documents == 27
        assert updated.info.duplicates == Duplicates("drop", 5, 32)
        assert updated.update([corpus()[1] + " again"]).info.documents == 27

    def test_command(self, tmp_path: Path) -> None:
        (tmp_path / "in.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in corpus()))
        options = ["fit", str(tmp_path / "in.jsonl"), "-k", "3", "--max-df", "1", "--no-page", "-o"]
        kept = here(*options, str(tmp_path / "kept"))
        assert (
            "4 of 30 documents are near-duplicates of others: shown once in lists, kept in the fit (--duplicates drop "
            "leaves them out)." in " ".join(kept.stderr.split())
        )
        assert re.search(r"30 documents, .* seconds; 4 near-duplicates\.", kept.stdout)
        dropped = here(*options, str(tmp_path / "dropped"), "--duplicates", "drop")
        assert "left out (--duplicates keep counts them)" in " ".join(dropped.stderr.split())
        assert re.search(r"26 documents, .* seconds; 4 near-duplicates left out\.", dropped.stdout)


class TestUpdate:
    def test_new_documents_are_compared_with_old_ones(self, tmp_path: Path) -> None:
        found = polyseme.fit(corpus()[:20], 3, output=tmp_path / "run", **SETTINGS)
        updated = found.update(corpus()[20:])
        assert updated.view.corpus.groups.tolist() == GROUPS
        assert updated.info.duplicates == Duplicates("keep", 4, 30)
        assert updated.documents["duplicate_of"][29] == updated.documents["id"][2]
        assert updated.edit(delete=[0]).view.corpus.groups.tolist() == GROUPS

    def test_without_texts_only_new_documents_are_compared(self) -> None:
        found = polyseme.fit(corpus()[:20], 3, keep_texts=False, **SETTINGS)
        updated = found.update([corpus()[0] + " again", *corpus()[20:], corpus()[21]])
        assert updated.view.corpus.groups.tolist() == [*GROUPS[:20], 20, *range(21, 31), 22]


class TestBadInput:
    @pytest.mark.parametrize("n", [2, 4, 30])
    def test_all_documents_equal(self, n: int) -> None:
        texts = [SUBJECTS["sea"]] * n
        message = f"All {n} documents are near-duplicates of the first one"
        with pytest.raises(InputError, match=message):
            polyseme.fit(texts, duplicates="drop", random_state=0)
        if n < 20:
            with pytest.warns(UserWarning, match=message):
                run = polyseme.fit(texts, random_state=0)
            assert len(run.search("captain")) == 1
        else:  # every word is in more than half of the documents
            with pytest.raises(InputError, match=message):
                polyseme.fit(texts, random_state=0)

    def test_all_documents_nearly_equal(self) -> None:
        base = " ".join(f"word{number}" for number in range(200))
        with pytest.warns(UserWarning, match="All 30 documents are near-duplicates of the first one"):
            polyseme.fit([f"{base} end{number}" for number in range(30)], 2, min_df=1, max_df=1.0, random_state=0)

    def test_four_documents(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            run = polyseme.fit([*SUBJECTS.values(), SUBJECTS["sea"]], random_state=0)
        assert run.view.corpus.groups.tolist() == [0, 1, 2, 0]
        assert run.topics()

    def test_other_values(self) -> None:
        with pytest.raises(InputError, match="duplicates= must be keep or drop, got 'hide'"):
            polyseme.fit(corpus(), 3, duplicates="hide")
