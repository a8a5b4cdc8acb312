"""Corpora in several languages: shares, stop words of all of them, and runs of one language."""

import re
from pathlib import Path

import pytest

import polyseme
from cli_runner import run as run_command
from polyseme.errors import InputError
from polyseme.runs import open_run

ENGLISH = "the farmer sold {} and {} in the market, but not all of them were from his own orchard"
ITALIAN = "il contadino ha venduto {} e {} al mercato, ma non tutte erano della sua campagna"
ENGLISH_WORDS = ("apples", "pears", "plums", "cherries", "carrots", "onions")
ITALIAN_WORDS = ("mele", "pere", "prugne", "ciliegie", "carote", "cipolle")


def texts(pattern: str, words: tuple[str, ...], number: int) -> list[str]:
    return [pattern.format(words[i % 6], words[(i + 1 + i // 6) % 6]) for i in range(number)]


TEXTS = [*texts(ENGLISH, ENGLISH_WORDS, 30), *texts(ITALIAN, ITALIAN_WORDS, 12)]
OPTIONS = {"max_df": 1.0, "min_df": 1, "max_iter": 5, "levels": "none"}


@pytest.fixture(scope="module")
def mixed() -> polyseme.runs.Run:
    return polyseme.fit(TEXTS, 2, **OPTIONS)


def test_the_stop_words_of_all_languages_are_left_out(mixed: polyseme.runs.Run) -> None:
    assert mixed.info.language == "english+italian"
    assert mixed.info.languages == {"english": pytest.approx(30 / 42), "italian": pytest.approx(12 / 42)}
    assert not {"the", "and", "from", "il", "della", "non", "ma"} & set(mixed.vocabulary)
    assert {"apples", "mele"} <= set(mixed.vocabulary)


def test_new_documents_are_counted_by_the_stored_rules(mixed: polyseme.runs.Run, tmp_path: Path) -> None:
    mixed.save(tmp_path / "run")
    stored = open_run(tmp_path / "run")
    new = ["il contadino e the farmer"]
    assert (stored.vectorizer.transform(new) != mixed.vectorizer.transform(new)).nnz == 0
    assert stored.transform(new)["tokens"].to_list() == [2]
    assert stored.update(new).info.language == "english+italian"
    hits = stored.search("mele", 3, method="bm25")
    assert len(hits) == 3
    assert all("mele" in hit.excerpt for hit in hits)


@pytest.mark.parametrize(("languages", "left_out", "word"), [("majority", 12, "apples"), ("it", 30, "mele")])
def test_a_run_can_have_the_documents_of_one_language(languages: str, left_out: int, word: str) -> None:
    run = polyseme.fit([*TEXTS, "42"], 2, languages=languages, **OPTIONS)
    unknown = languages != "majority"
    assert run.info.left_out == {"other languages": left_out + unknown}
    assert run.info.documents == len(TEXTS) + 1 - left_out - unknown
    assert run.info.language == ("english" if word == "apples" else "italian")
    assert word in run.vocabulary


def test_split_makes_a_run_for_each_language(tmp_path: Path) -> None:
    (tmp_path / "farm.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    options = ("-k", "2", "--max-df", "1", "--max-iter", "5", "--no-page")
    done = run_command("fit", "farm.txt", *options, "--languages", "split", cwd=tmp_path)
    assert done.exit_code == 0, done.output
    found = {folder.name: open_run(folder).info for folder in tmp_path.glob("farm-run*")}
    assert {name: info.documents for name, info in found.items()} == {"farm-run-en": 30, "farm-run-it": 12}
    assert {name: info.language for name, info in found.items()} == {"farm-run-en": "english", "farm-run-it": "italian"}


def test_the_shares_and_the_options_are_said(tmp_path: Path) -> None:
    (tmp_path / "farm.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    done = run_command("fit", "farm.txt", "-k", "2", "--max-df", "1", "--no-page", "--max-iter", "5", cwd=tmp_path)
    assert re.search(
        r"Languages: 71% English, 29% Italian\. .*--languages majority .*, --languages split ", done.stderr
    ), done.stderr


def test_split_and_unknown_languages_are_refused() -> None:
    with pytest.raises(InputError, match="languages=split makes several runs"):
        polyseme.fit(TEXTS, 2, languages="split")
    with pytest.raises(InputError, match="language must be"):
        polyseme.fit(TEXTS, 2, languages="klingon")
