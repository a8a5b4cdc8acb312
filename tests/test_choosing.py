"""The number of topics of a fit that was asked for none, and the bar that is shown meanwhile."""

import io
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("typer", reason="the extra 'cli' is not installed")

from rich.console import Console

from explorer_corpora import themed_parts
from polyseme.cli import choosing
from polyseme.cli.bars import Rate
from polyseme.cli.choosing import chosen_number, forget_choice


def notes():
    return Console(file=io.StringIO(), width=1000)


def test_structure_is_found_once_and_kept_for_a_fit_that_goes_on(tmp_path, monkeypatch):
    counts, console = themed_parts().counts, notes()
    number, choice = chosen_number(counts, tmp_path, console, seed=0, resume=False, quiet=False)
    assert number == choice["chosen"] == choice["n_topics"] > 1
    assert choice["structured"]
    assert f"{choice['reason']} (-k says otherwise.)" in console.file.getvalue()
    monkeypatch.setattr(choosing, "choose_n_topics", lambda *_, **__: pytest.fail("chosen a second time"))
    assert chosen_number(counts, tmp_path, notes(), seed=0, resume=True, quiet=True) == (number, choice)
    forget_choice(tmp_path)
    assert not list(tmp_path.iterdir())


def test_few_documents_get_half_as_many_topics(tmp_path):
    counts = np.ones((7, 5))
    number, choice = chosen_number(counts, tmp_path, notes(), seed=0, resume=False, quiet=True)
    assert number == 3
    assert "fewer than 20 documents" in choice["reason"]


@pytest.mark.parametrize(
    ("unit", "speed", "shown"), [("MB", 2.5e6, "2.5 MB/s"), ("MB", None, ""), ("", 2.5e6, "")]
)  # fmt: skip
def test_a_rate_is_shown_where_it_is_known_and_has_a_unit(unit, speed, shown):
    assert str(Rate(unit, 1e6).render(SimpleNamespace(speed=speed))) == shown
