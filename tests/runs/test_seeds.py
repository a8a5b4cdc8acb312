"""Seed words of named topics: supported, drifting, too rare and absent ones, in a planted corpus."""

import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import polyseme
from cli_runner import run
from polyseme.runs.seeds import MIN_CORRELATION, seed_documents

SUBJECTS = {
    "ship": ["harbor", "sailor", "anchor", "cargo", "deck", "voyage", "captain", "mast"],
    "tree": ["forest", "leaf", "branch", "root", "bark", "trunk", "acorn", "timber"],
    "song": ["guitar", "melody", "chorus", "drum", "concert", "singer", "piano", "violin"],
}
SEEDS = {
    "Sea": ["harbor", "sailor", "lighthouse"],  # a subject; the last word does not occur
    "Money": ["price", "bank"],  # words of all subjects
    "Health": ["doctor", "nurse"],  # words of two and three documents
}


def planted(n_documents: int = 300) -> list[str]:
    texts = []
    for number in range(n_documents):
        rng = np.random.default_rng(number)
        subject = list(SUBJECTS)[number % 3]
        words = [*rng.choice(SUBJECTS[subject], 12), subject]
        words += ["price"] * (number % 7 == 0) + ["bank"] * (number % 11 == 0)
        words += ["doctor"] * (number in (3, 70)) + ["nurse"] * (number in (4, 71, 100))
        texts.append(" ".join(rng.permutation(words)))
    return texts


TEXTS = planted()


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> tuple[polyseme.Run, list[str]]:
    """Return a run, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = polyseme.fit(TEXTS, 3, seeds=SEEDS, output=tmp_path_factory.mktemp("seeds") / "run", levels="none")
    assert {warning.category for warning in caught} == {polyseme.SeedWarning}
    return found, [str(warning.message) for warning in caught]


def test_only_a_topic_about_its_seed_words_gets_the_name(seeded: tuple[polyseme.Run, list[str]]) -> None:
    found, _ = seeded
    assert found.info.topic_names == {0: "Sea"}
    assert {"harbor", "sailor", "anchor"} <= set(found.topic_words()[0])
    assert found.topic_titles[1] not in SEEDS
    assert found.info.model.seeds is not None
    assert list(found.info.model.seeds) == list(SEEDS)


def test_problems_are_told_with_the_words(seeded: tuple[polyseme.Run, list[str]]) -> None:
    found, problems = seeded
    assert tuple(problems) == found.info.seed_problems == polyseme.open_run(found.path).info.seed_problems
    absent, drifted, rare = problems
    assert absent == (
        "seeds=: the documents do not have these words of 'Sea', or they are not counted (min_df=, max_df=, stop "
        "words): lighthouse."
    )
    assert drifted.startswith("seeds=: topic 1 (")
    assert "does not get the name 'Money': it has drifted from its seed words, which occur in 67 of 300" in drifted
    assert "documents (price 43, bank 28)" in drifted
    assert f"below {MIN_CORRELATION}: give other words, or a larger n_topics=." in drifted
    assert rare.startswith("seeds=: topic 2 (")
    assert rare.endswith(
        "does not get the name 'Health': its seed words occur in only 5 of 300 documents (doctor 2, nurse 3), too few "
        "for a topic: give more frequent words."
    )


def test_the_command_says_the_same(seeded: tuple[polyseme.Run, list[str]], tmp_path: Path) -> None:
    _, problems = seeded
    (tmp_path / "lines.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    lines = (f"{name}: {', '.join(words)}" for name, words in SEEDS.items())
    (tmp_path / "seeds.txt").write_text("\n".join(lines), encoding="utf-8")
    done = run("fit", "lines.txt", "-k", "3", "--seeds", "seeds.txt", "--levels", "none", "--no-page", cwd=tmp_path)
    assert done.exit_code == 0, done.output
    flags = {"seeds=": "--seeds", "min_df=": "--min-df", "max_df=": "--max-df", "n_topics=": "-k"}
    for problem in problems:
        for name, flag in flags.items():
            problem = problem.replace(name, flag)
        assert problem in " ".join(done.stderr.split())


@pytest.mark.parametrize("options", [{"model": "nmf"}, {"shards": True}])
def test_other_fits_give_the_same_name(options: dict[str, object]) -> None:
    with pytest.warns(polyseme.SeedWarning):
        found = polyseme.fit(TEXTS, 3, seeds=SEEDS, levels="none", **options)
    assert found.info.topic_names == {0: "Sea"}


def test_supported_seeds_have_no_problem() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = polyseme.fit(TEXTS, 3, seeds={"Sea": ["harbor"], "Music": ["guitar", "drum"]}, levels="none")
    assert found.info.topic_names == {0: "Sea", 1: "Music"}
    assert found.info.seed_problems == ()


def test_the_correlation_is_that_of_numpy(seeded: tuple[polyseme.Run, list[str]]) -> None:
    found, _ = seeded
    columns = {name: [found.vocabulary.index(word) for word in words if word in found.vocabulary]
               for name, words in SEEDS.items()}  # fmt: skip
    measured = seed_documents(columns, found.doc_topic, found.view.corpus)
    contains = pl.Series(TEXTS).str.split(" ")
    for topic, words in enumerate(SEEDS.values()):
        present = np.array([not set(words).isdisjoint(text) for text in contains.to_list()])
        expected = np.corrcoef(found.doc_topic[:, topic], present)[0, 1]
        np.testing.assert_allclose(measured.correlation[topic], expected, rtol=1e-9)
        assert measured.of_topic[topic] == present.sum()
