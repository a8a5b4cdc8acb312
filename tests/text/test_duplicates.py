"""Near-duplicates among texts, against a naive oracle and on planted copies."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from polyseme import InputError
from polyseme.text.duplicates import MIN_SIMILARITY, SHINGLE_WORDS, NearDuplicates


def found_in(texts, path=None):
    with NearDuplicates(path) as finder:
        return finder.add(texts)


def shingles(text):
    words = re.findall(r"[^\W_]+", text.lower())
    size = min(SHINGLE_WORDS, len(words))
    return {tuple(words[i : i + size]) for i in range(len(words) - size + 1)} if words else set()


def similarity(a, b):
    a, b = shingles(a), shingles(b)
    return len(a & b) / len(a | b) if a | b else 0.0


def naive(texts):
    """Compare each text with all texts before it that are not near-duplicates."""
    first, kept = [], []
    for number, text in enumerate(texts):
        best = max(kept, key=lambda other: (similarity(text, texts[other]), -other), default=None)
        if best is None or similarity(text, texts[best]) < MIN_SIMILARITY:
            first.append(None)
            kept.append(number)
        else:
            first.append(best)
    return first


def words(rng, n, vocabulary=5000):
    return [f"w{number}" for number in rng.integers(vocabulary, size=n)]


def edited(rng, text, share):
    changed = text.split()
    for place in rng.choice(len(changed), round(share * len(changed)), replace=False):
        changed[place] = f"new{rng.integers(10**6)}"
    return " ".join(changed)


class TestCases:
    text = "The first line of a letter, which is long enough. " + " ".join(f"word{i}" for i in range(150)) + "."

    @pytest.mark.parametrize(
        ("other", "duplicate"),
        [
            (text, True),
            (text.upper().replace(" ", "\n  ").replace(".", " -- "), True),
            (text.replace("word70", "Word 70"), True),
            (text + " A short remark at the end.", True),
            ("\n\n".join(reversed([text[:600], text[600:]])), True),  # paragraphs in another order
            ("> " + text.replace(". ", ".\n> ") + " ".join(f"reply{i}" for i in range(60)), False),  # quoted in a reply
            (" ".join(reversed(text.split())), False),  # the same words in another order
            (text[: len(text) // 2], False),
        ],
    )
    def test_pair(self, other, duplicate):
        assert (similarity(self.text, other) >= MIN_SIMILARITY) == duplicate
        assert found_in([self.text, other]) == [None, 0 if duplicate else None]

    def test_short_texts(self):
        texts = ["Yes", "no", "YES!", "Thank you", "thank you.", "you thank", "a b c d", "a b c e"]
        assert found_in(texts) == [None, None, 0, None, 3, None, None, None]

    def test_texts_without_words_are_not_duplicates(self):
        assert found_in(["", "", "...", "?!", " \n"]) == [None] * 5

    def test_characters_without_spaces_between_words(self):
        text = "彼は毎日図書館へ行って新しい本を読みそれから友達と公園で話をするのが好きだったが今は忙しくて行けない"
        assert found_in([text, text[:-1], text[: len(text) // 2]]) == [None, 0, None]

    def test_lone_surrogates_and_wide_characters(self):
        text = "\ud800 a text with \U0001f600 and é in it"
        assert found_in([text, text]) == [None, 0]


class TestAgainstOracle:
    @pytest.mark.parametrize("length", [8, 60, 400])
    def test_random_edits(self, length):
        rng = np.random.default_rng(length)
        originals = [" ".join(words(rng, length)) for _ in range(20)]
        texts = [edited(rng, originals[rng.integers(20)], share) for share in rng.uniform(0, 0.08, 80)]
        texts = originals + texts
        assert found_in(texts) == naive(texts)

    def test_long_texts_are_compared_by_a_sample(self):
        rng = np.random.default_rng(0)
        text = " ".join(words(rng, 20_000, 10**6))
        texts = [text, edited(rng, text, 0.01), edited(rng, text, 0.06)]
        assert [round(similarity(text, other), 2) for other in texts[1:]] == [0.94, 0.71]
        assert found_in(texts) == [None, 0, None]


class TestLinearTime:
    def test_equal_texts_are_compared_once(self):
        with NearDuplicates() as finder:
            assert finder.add(["one text that is repeated"] * 500) == [None] + [0] * 499
            assert finder.n_compared == 499

    def test_texts_that_share_a_long_beginning(self):
        """Each text is compared with a bounded number of others, whatever their number."""
        rng = np.random.default_rng(0)
        template = " ".join(words(rng, 120))
        compared = {}
        for n_texts in (200, 400):
            with NearDuplicates() as finder:
                finder.add([template + " " + " ".join(words(rng, 40)) for _ in range(n_texts)])
                compared[n_texts] = finder.n_compared
        assert 0 < compared[200] <= 200 * 6 * 8
        assert compared[400] <= 400 * 6 * 8
        assert compared[400] - compared[200] < 1.5 * 200 * 6 * 8


def test_temporary_file_is_removed_and_results_are_equal(tmp_path):
    rng = np.random.default_rng(1)
    texts = [" ".join(words(rng, 50, 40)) for _ in range(60)]
    texts += [edited(rng, text, 0.02) for text in texts]
    assert found_in(texts) == found_in(texts, tmp_path / "shingles")
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written(tmp_path):
    with pytest.raises(OSError, match="cannot be written"):
        NearDuplicates(tmp_path / "missing" / "shingles")


def test_batches_and_threads_do_not_change_the_result():
    rng = np.random.default_rng(2)
    texts = [" ".join(words(rng, 80)) for _ in range(400)]  # several pieces, which threads take
    texts += [edited(rng, text, 0.02) for text in texts]
    together = found_in(texts)
    assert sum(first is not None for first in together) >= 350
    with NearDuplicates() as finder:
        assert [first for text in texts for first in finder.add([text])] == together
    for n_jobs in (1, 3):
        with NearDuplicates(n_jobs=n_jobs) as finder:
            assert finder.add(texts) == together


def test_the_number_of_threads_is_that_of_n_jobs(monkeypatch):
    used = []
    with NearDuplicates(n_jobs=3) as finder:
        monkeypatch.setattr(finder, "_compiled", SimpleNamespace(add=lambda _, n: used.append(n) or [-1], close=int))
        finder.add(["text"])
    assert used == [3]
    with pytest.raises(InputError, match="n_jobs"):
        NearDuplicates(n_jobs=0)


def test_skipped_texts_keep_their_numbers():
    with NearDuplicates() as finder:
        finder.skip(7)
        assert finder.add(["a b c", "a b c"]) == [None, 7]


def test_other_types_are_refused():
    with NearDuplicates() as finder, pytest.raises(TypeError, match="a string was expected"):
        finder.add([b"text"])
