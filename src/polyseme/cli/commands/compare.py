"""``polyseme compare``: compares the topics of two runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from polyseme.cli.console import Console, print_json
from polyseme.cli.options import JSON, RunFolder, open_level, takes
from polyseme.options import Option

if TYPE_CHECKING:
    from polyseme.runs.comparison import Comparison, Pair
    from polyseme.runs.view import TopicView


@takes(
    Option("words", "Top words of each topic to compare.", None, int, 10, ("--words", "-w"), least=1),
    JSON,
)
def compare(first: RunFolder, second: RunFolder, words: int, as_json: bool) -> None:
    """Compare the topics of two runs.

    Each topic of the first run is matched to at most one topic of the second, so that the total overlap is largest.
    The overlap of two topics is 1 minus their total variation distance over the words of both runs. Words with - are
    top words of the first topic only, words with + are top words of the second topic only.

    Examples:

      polyseme compare letters-run letters-run-40

      polyseme compare monday tuesday --json
    """
    from polyseme.runs.comparison import compare as compare_runs

    runs = [open_level(run, None) for run in (first, second)]
    result = compare_runs(*runs, n_words=words)
    if as_json:
        print_json("compare", result.to_dict())
        return
    screen = Console()
    screen.print(_comparison_table(result, *runs))
    screen.print(
        f"{result.shared_words:,} words in both runs (of {result.first_words:,} and {result.second_words:,}).",
    )
    if result.shared_documents:
        moved = f"{len(result.moved):,} ({len(result.moved) / result.shared_documents:.0%})"
        screen.print(
            f"{result.shared_documents:,} documents in both runs; {moved} have another main topic.",
        )


def _comparison_table(result: Comparison, first: TopicView, second: TopicView) -> Table:
    table = Table(header_style="bold", show_lines=True)
    for name in ("first", "second", "overlap", "weight"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("words", overflow="fold")
    for pair in result.pairs:
        weights = " → ".join(
            "-" if topic is None else f"{weight:.1%}"
            for topic, weight in ((pair.first, pair.first_weight), (pair.second, pair.second_weight))
        )
        overlap = "-" if None in (pair.first, pair.second) else f"{pair.overlap:.0%}"
        cells = [_topic_id(pair.first), _topic_id(pair.second), overlap, weights]
        table.add_row(*cells, _words(pair, first, second))
    return table


def _topic_id(topic: int | None) -> str:
    return "-" if topic is None else str(topic)


def _words(pair: Pair, first: TopicView, second: TopicView) -> Text:
    names = [
        run.topic_titles[topic] for run, topic in ((first, pair.first), (second, pair.second)) if topic is not None
    ]
    text = Text("".join(f"{name}\n" for name in dict.fromkeys(names)), style="bold underline")
    text.append(" ".join(pair.common), style="bold not underline")
    for words, sign, style in ((pair.only_first, "-", "red"), (pair.only_second, "+", "green")):
        for word in words:
            text.append(f" {sign}{word}", style=f"{style} not bold not underline")
    return text
