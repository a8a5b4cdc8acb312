"""Check that an error message is one sentence."""

import re

from polyseme import estimators

PARAMETERS = {name for kind in estimators.__all__ for name in getattr(estimators, kind)().get_params()}
PARAMETERS |= {"y", "smoothing", "unseen", "vocabulary", "n_words", "sample_weight", "relevance", "feature_names"}


def sentence(error):
    """Return the message after checking that it is one line of moderate length."""
    message = str(error.value)
    assert "\n" not in message
    assert 20 < len(message) < 200
    assert message[0].isupper() or re.match(r"\w+", message).group() in PARAMETERS
    assert message.endswith(".")
    return message
