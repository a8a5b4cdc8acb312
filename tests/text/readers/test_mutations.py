"""Files of every format, mutated by Hypothesis: documents, problems or InputError, and nothing else.

``make fuzz`` runs a million other mutations of the same files.
"""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz.mutations import TOKENS
from fuzz.readers import SEEDS, fuzzer, seeds

CASES = [(format, *file) for format in SEEDS for file in seeds(format)]

places = st.integers(0, 2**16)
mutation = st.one_of(
    st.tuples(st.just("replace"), places, st.integers(0, 8), st.sampled_from(TOKENS)),
    st.tuples(st.just("replace"), places, st.integers(0, 8), st.binary(max_size=8)),
    st.tuples(st.just("repeat"), places, st.integers(1, 60), st.integers(2, 300)),
    st.tuples(st.just("cut"), places, st.integers(0, 200), st.none()),
    st.tuples(st.just("flip"), places, st.integers(0, 7), st.none()),
)


def mutated(content, mutations):
    for kind, place, length, what in mutations:
        at = place % (len(content) + 1)
        before, piece, after = content[:at], content[at : at + length], content[at + length :]
        if kind == "replace":
            content = before + what + after
        elif kind == "repeat":
            content = before + piece * what + after
        elif kind == "cut":
            content = before + (after if length < 100 else b"")
        elif content[at:]:
            content = before + bytes([content[at] ^ (1 << length)]) + content[at + 1 :]
    return content[:50_000]


@pytest.fixture(scope="module", autouse=True)
def _folder(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("fuzz"))
        yield


def test_the_files_are_valid_before_they_are_mutated():
    fuzzer.check()


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(case=st.sampled_from(CASES), mutations=st.lists(mutation, min_size=1, max_size=6))
def test_mutated_files_raise_no_other_exception(case, mutations):
    format, suffix, content = case
    fuzzer.run({"name": "input" + suffix, "format": format, "content": mutated(content, mutations)})
