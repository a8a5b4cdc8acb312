"""``polyseme groups``: compares the topics of groups of documents."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from rich.table import Table

from polyseme.cli.console import Console, as_rows, print_json
from polyseme.cli.options import JSON, QUIET, RunFolder, open_level, takes
from polyseme.options import GROUPING, LEVEL, RANDOM_STATE, RESAMPLING

if TYPE_CHECKING:
    from polyseme.cli import schemas
    from polyseme.uncertainty.groups import GroupComparison

_MOST_WORDS = 4
"""Words of a topic and group that are shown."""
_LEAST_SHARE = 0.05
"""Share of a topic in a group from which its words are shown: below it, most tokens are those of other topics."""
_MOST_LINES = 12
"""Topics and groups whose words are shown."""


@takes(*GROUPING, *RESAMPLING, LEVEL, RANDOM_STATE, QUIET, JSON)
def groups(
    run: RunFolder,
    by: str,
    most: int,
    clusters: str | None,
    n_resamples: int,
    level: int | None,
    random_state: int,
    quiet: bool,
    as_json: bool,
) -> None:
    """Compare the topics of groups of documents.

    Each cell is the mean share of a topic in the documents of a group, with its 95% interval from fits to resampled
    documents. + and - mark groups that have more or less of the topic than all other documents, at a false discovery
    rate of 5%. Below are words that a group uses more than the others when it writes about a topic.

    Examples:

      polyseme groups letters-run

      polyseme groups letters-run --by source --json
    """
    opened = open_level(run, level)
    found = opened.compare_groups(
        by,
        most=most,
        clusters=clusters,
        n_resamples=n_resamples,
        random_state=random_state,
        verbose=0 if quiet or as_json else 1,
    )
    if as_json:
        print_json("groups", groups_as_dict(found))
        return
    screen = Console()
    for part in _groups_side_by_side(len(found.groups.names), screen.width):
        screen.print(_shares_table(found, part, screen.width))
    screen.print(
        "Below the names: documents. Ranges: 95% intervals. + more, - less than in all other documents (false "
        "discovery rate 5%)."
    )
    for line in _word_lines(found):
        screen.print(line, soft_wrap=False)
    lost = [f"{k} ({share:.0%})" for k, share in enumerate(found.returned.tolist()) if share < 0.9]
    if lost:
        screen.print(
            f"Topics that came back in few of the resamples, so that little is known of them: {', '.join(lost)}."
        )
    for note in found.notes:
        screen.print(note)
    if found.left_out:
        screen.print(f"{found.left_out:,} documents are in none of these groups; --most shows more groups.")


def groups_as_dict(found: GroupComparison) -> schemas.Groups:
    """Return the comparison as JSON values."""
    words: list[schemas.GroupWord] = [
        {
            "group": found.groups.names[word.group], "topic": word.topic, "word": found.vocabulary[word.word],
            "log_ratio": word.log_ratio, "error": word.error, "q_value": word.q_value,
        }
        for word in found.words
    ]  # fmt: skip
    return {
        "by": found.by,
        "shares": as_rows(found.to_dict()),
        "words": words,
        "left_out": found.left_out,
        "notes": found.notes,
    }


def _groups_side_by_side(n_groups: int, width: int) -> list[range]:
    """Return the groups of each table, so that no table is wider than the screen."""
    n_tables = -(-n_groups // max(1, (width - 17) // 12))
    bounds = [n_groups * i // n_tables for i in range(n_tables + 1)]
    return [range(first, last) for first, last in itertools.pairwise(bounds)]


def _shares_table(found: GroupComparison, groups: range, width: int) -> Table:
    table = Table(header_style="bold")
    column = max(12, min(20, (width - 34) // len(groups)))
    separator = " " if column == 20 else "\n"
    table.add_column("topic\n", overflow="ellipsis", no_wrap=True, max_width=max(16, width - column * len(groups) - 4))
    for g in groups:
        table.add_column(
            f"{found.groups.names[g]}\n{found.groups.documents[g]:,}",
            justify="right",
            overflow="ellipsis",
            no_wrap=True,
            min_width=9,
            max_width=column - 3,
        )
    for k in found.order:
        table.add_row(f"{k} {found.topic_names[k]}", *(found.cell(g, k, separator) for g in groups))
    return table


def _word_lines(found: GroupComparison) -> list[str]:
    """Return the words that groups use more, a line for each topic and group, the most certain ones first."""
    words: dict[tuple[int, int], list[str]] = {}
    for word in found.words:
        if word.log_ratio > 0 and found.groups.shares.estimate[word.group, word.topic] >= _LEAST_SHARE:
            words.setdefault((word.topic, word.group), []).append(found.vocabulary[word.word])
    lines = [
        f"{found.topic_names[topic].partition(',')[0]}, {found.groups.names[group]}: {', '.join(more[:_MOST_WORDS])}"
        for (topic, group), more in list(words.items())[:_MOST_LINES]
    ]
    return ["Words that a group uses more within a topic:", *lines] if lines else []
