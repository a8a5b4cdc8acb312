"""Fields of the JSON files of a run, with the check of each value. Fields not listed here are read by no code."""

from __future__ import annotations

from typing import Any

from polyseme.io.checks import (
    COUNT,
    FLAG,
    NULL,
    OBJECT,
    TEXT,
    Check,
    either,
    list_of,
    mapping_to,
    number,
    object_with,
    one_of,
    whole_number,
)

_NUMBER = number(-1e300, 1e300)
_PLAIN = either(NULL, FLAG, TEXT, _NUMBER)
_TOPICS = whole_number(1, 2**31 - 1)


def _is_topic(name: Any) -> bool:
    return isinstance(name, str) and name.isdecimal() and len(name) < 10


_ROW = mapping_to(_PLAIN)
RUN = {
    "format_version": whole_number(0, 2**31 - 1),
    "written": TEXT,
    "versions": mapping_to(TEXT),
    "command": list_of(TEXT),
    "inputs": list_of(TEXT),
    "reading": OBJECT,
    "counting": object_with({"language": either(NULL, TEXT)}),
    "documents": COUNT,
    "words": COUNT,
    "tokens": COUNT,
    "shards": COUNT,
    "left_out": mapping_to(COUNT),
    "problems": mapping_to(COUNT),
    "seconds": mapping_to(_NUMBER),
    "title": either(NULL, TEXT),
    "page_text": one_of("excerpt", "full", "none"),
    "model": object_with({"class": TEXT, "n_components": either(NULL, _TOPICS), "seed": either(NULL, COUNT)}),
    "selection": object_with({"rows": list_of(_ROW), "reason": TEXT, "n_topics": _TOPICS}),
    "iterations": COUNT,
    "converged": FLAG,
    "interrupted": FLAG,
    "topic_names": Check(
        lambda value: mapping_to(TEXT).holds(value) and all(map(_is_topic, value)), "an object from topics to names"
    ),
    "stability": list_of(_NUMBER),
    "edits": list_of(OBJECT),
    "updates": list_of(OBJECT),
}
"""Fields of run.json."""
COUNTED = {
    "settings": object_with(
        {"reading": OBJECT, "counting": OBJECT, "fitting": OBJECT}, required=("reading", "counting", "fitting")
    ),
    "facts": object_with(RUN),
}
"""Fields of counted.json, of a fit that is not finished."""
FACTS = ("inputs", "reading", "counting", "documents", "words", "seconds")
"""Fields that counted.json must have about the documents."""
CHOICE = {"n_topics": _TOPICS, "reason": TEXT, "rows": list_of(_ROW)}
"""Fields of choice.json: the number of topics that was chosen."""
FITTED = {"interrupted": FLAG, "seconds": number(0, 1e12)}
"""Fields of fitted.json."""
