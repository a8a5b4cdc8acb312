"""``polyseme effects``: regresses the shares of topics on metadata."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from polyseme.cli.console import Console, as_rows, print_json
from polyseme.cli.options import JSON, QUIET, RunFolder, open_level, takes
from polyseme.options import LEVEL, METADATA, RANDOM_STATE, RESAMPLING

if TYPE_CHECKING:
    from polyseme.cli import schemas
    from polyseme.uncertainty.effects import Effects


@takes(METADATA, *RESAMPLING, LEVEL, RANDOM_STATE, QUIET, JSON)
def effects(
    run: RunFolder,
    formula: Annotated[str, typer.Argument(metavar="FORMULA", help='Such as "~ label + s(time)".')],
    data: Path | None,
    clusters: str | None,
    n_resamples: int,
    level: int | None,
    random_state: int,
    quiet: bool,
    as_json: bool,
) -> None:
    """Show how the shares of topics depend on metadata.

    A formula has columns (label, time, source, tokens, and those of --data), combined by + (and), * (and their
    product) and parentheses; s(x) is a smooth curve, log(x) a logarithm, C(x) makes groups of numbers. Texts are
    groups, compared with the first one. Errors come from fits to resampled documents.

    Examples:

      polyseme effects letters-run "~ label + s(time)"

      polyseme effects blogs-run "~ rating * s(day)" --data blogs.csv --clusters blog
    """
    from polyseme.runs.effects import read_metadata

    found = open_level(run, level).effects(
        formula,
        None if data is None else read_metadata(data),
        clusters=clusters,
        n_resamples=n_resamples,
        random_state=random_state,
        verbose=0 if quiet or as_json else 1,
    )
    if as_json:
        print_json("effects", _as_dict(found))
        return
    screen = Console()
    screen.print(_table(found))
    screen.print(
        "Change of a topic's share, with its 95% interval; p of a term with several coefficients. * false discovery "
        "rate below 5%."
    )
    for line in found.notes:
        screen.print(line)


def _as_dict(found: Effects) -> schemas.Effects:
    p_values, q_values = found.p_values.tolist(), found.q_values.tolist()
    terms: list[schemas.Term] = [
        {"term": term, "topic": k, "p_value": p_values[number][k], "q_value": q_values[number][k]}
        for number, term in enumerate(found.terms)
        for k in range(len(found.topic_names))
    ]
    rows = as_rows(found.to_dict())
    return {"formula": found.formula, "coefficients": rows, "terms": terms, "notes": list(found.notes)}


def _table(found: Effects) -> Table:
    table = Table(header_style="bold")
    table.add_column("topic", overflow="ellipsis", no_wrap=True, ratio=1)
    names = [found.names[part.start] if part.stop - part.start == 1 else term for term, part in found.parts.items()]
    for name in names:
        table.add_column(name, justify="right", overflow="fold")
    for k in found.order:
        table.add_row(f"{k} {found.topic_names[k]}", *(found.cell(term, k) for term in range(len(names))))
    return table
