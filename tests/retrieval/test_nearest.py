"""The nearest words of a vocabulary."""

import numpy as np
import pytest

from polyseme.retrieval.nearest import edit_distance, nearest_words


@pytest.mark.parametrize(
    ("first", "second", "edits"),
    [("", "", 0), ("abc", "", 3), ("garden", "gardens", 1), ("no", "on", 1), ("ca", "abc", 3), ("éa", "ea", 1)],
)
def test_edits(first, second, edits):
    assert edit_distance(first, second) == edit_distance(second, first) == edits


def test_near_words_come_first_then_frequent_ones():
    vocabulary = ["form", "farm", "firm", "foam", "film", "new_york", "forum"]
    frequencies = np.array([1, 5, 9, 1, 9, 2, 3])
    assert nearest_words("ferm", vocabulary, frequencies) == ("firm", "farm", "form")
    assert nearest_words("york", vocabulary, frequencies) == ("new_york",)
    assert nearest_words("zebra", vocabulary, frequencies) == ()
    assert nearest_words("fi", ["fix"], np.ones(1)) == ()
