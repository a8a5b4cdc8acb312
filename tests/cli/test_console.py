"""Tables of topics on narrow and wide screens."""

import io
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from polyseme.cli.commands.groups import _groups_side_by_side
from polyseme.cli.console import TopicRow, print_topic_details, print_topics
from polyseme.runs.quotes import TypicalDocument
from polyseme.runs.view import FinerTopic

LONG = "Cities of the region; centers of municipalities"


@pytest.mark.parametrize("width", [50, 80, 120])
def test_long_names_and_labels_are_cut_to_one_line(width: int) -> None:
    names = [
        "administrative reform of municipalities, parish, border",
        "水" * 20,
        "lake",
    ]
    rows = [
        TopicRow(number, name, 0.3, 0.9, ["shore", "fish"], {LONG: 0.85, "Lakes": 0.15}, [])
        for number, name in enumerate(names)
    ]
    screen = Console(file=io.StringIO(), width=width)
    print_topics(rows, screen, Path("run"))
    lines = screen.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert len(lines) == 1 + len(rows)
    assert all(cell_len(line) <= width for line in lines)
    assert all(f"{LONG[:6]}" in line and "… 85%" in line and "Lakes" not in line for line in lines[1:])
    assert "lake: shore" in lines[3]


def test_a_topic_is_mostly_of_a_label_with_half_of_its_documents() -> None:
    rows = [
        TopicRow(0, "lake", 0.6, 0.9, ["shore"], {"Lakes": 0.5, "Rivers": 0.3}, []),
        TopicRow(1, "border", 0.4, 0.9, ["parish"], {"Rivers": 0.49, "Lakes": 0.3}, []),
    ]
    screen = Console(file=io.StringIO(), width=80)
    print_topics(rows, screen, Path("run"))
    shown = screen.file.getvalue()  # type: ignore[attr-defined]
    assert "Lakes 50%" in shown
    assert "Rivers" not in shown


def test_a_label_that_all_documents_have_is_not_shown_in_the_table() -> None:
    rows = [TopicRow(k, name, 0.5, 0.9, ["word"], {"Letters": 1.0}, []) for k, name in enumerate(["lake", "border"])]
    screen = Console(file=io.StringIO(), width=80)
    print_topics(rows, screen, Path("run"))
    shown = screen.file.getvalue()  # type: ignore[attr-defined]
    assert "mostly" not in shown
    assert "Letters" not in shown


@pytest.mark.parametrize(
    ("n_groups", "width", "sizes"), [(6, 80, [3, 3]), (6, 160, [6]), (1, 20, [1]), (7, 80, [3, 4])]
)
def test_groups_that_do_not_fit_side_by_side_get_a_table_of_their_own(
    n_groups: int, width: int, sizes: list[int]
) -> None:
    parts = _groups_side_by_side(n_groups, width)
    assert [len(part) for part in parts] == sizes
    assert [g for part in parts for g in part] == list(range(n_groups))


def test_a_topic_of_a_finer_level_is_shown_below_its_parent_and_above_its_children() -> None:
    child = FinerTopic(8, 5, "brook, mill", 0.04, 0.97, [], [])
    document = TypicalDocument(row=3, id="3", title="The Elbe", share=0.8, quote="The river carries water.")
    row = TopicRow(
        2, "river", 0.125, 0.9, ["water", "bank"], {}, [document], level=4, parent=1, parent_name="lake, shore",
        parent_share=0.95, children=[child],
    )  # fmt: skip
    screen = Console(file=io.StringIO(), width=60)
    print_topic_details([row], screen)
    assert [line.rstrip() for line in screen.file.getvalue().splitlines()] == [  # type: ignore[attr-defined]
        "topic  weight   fit  name",
        "    2   12.5%   90%  river",
        "       water bank",
        "       part of 1 lake, shore",
        "       The Elbe",
        "         The river carries water.",
        "       8/5 4.0% brook, mill",
    ]


def test_a_long_name_is_cut_between_words() -> None:
    row = TopicRow(0, "encryption algorithm, clipper chip, key", 1.0, 0.9, ["nsa"], {}, [])
    for width, name in (
        (45, "encryption algorithm…"),
        (56, "encryption algorithm, clipper chip…"),
        (32, "encryption…"),
    ):
        screen = Console(file=io.StringIO(), width=width)
        print_topics([row], screen, Path("run"))
        assert screen.file.getvalue().splitlines()[1].rstrip().endswith(f"90%  {name}")  # type: ignore[attr-defined]
