"""Write RESULTS.md and its bar chart from the output of the benchmarks (common.py describes the lines)."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from common import DATA, ROOT, SKIPPED, THREADS, installed_version, machine

PACKAGES = ("polyseme", "numpy", "scipy", "scikit-learn", "polars", "dask", "distributed")
PICTURES = {
    "sweep.png": "One EM iteration by non-zeros and by topics",
    "convergence.png": "Nats per token below the best likelihood, by seconds",
    "overfitting.png": "Held-out perplexity, by iterations",
}
READING = (
    "A ratio says how many times better polyseme is: less time, less memory, or more per second. Below 1x the other "
    f"package is better. Both used {THREADS} threads, unless a line says otherwise, and alternated in one process. `>` "
    "means that the other package did not reach the target within its time limit. The docstrings of the scripts list "
    "the settings of the other packages."
)


@dataclass(frozen=True)
class Outcome:
    """Output and exit code of a benchmark."""

    name: str
    title: str
    command: str
    """As typed in the folder of the repository."""
    output: str
    seconds: float
    code: int = 0
    message: str = ""
    """Last line of standard error, if the exit code is not 0."""

    @property
    def skipped(self) -> bool:
        """Whether it needs something that this machine does not have."""
        return self.code == SKIPPED

    @property
    def failed(self) -> bool:
        return bool(self.code) and not self.skipped

    def lines(self, kind: str) -> list[str]:
        """Return the lines that start with `kind: `, without this prefix."""
        start = f"{kind}: "
        return [line.removeprefix(start) for line in self.output.splitlines() if line.startswith(start)]


class Ratio(NamedTuple):
    """A comparison with a peer, as printed."""

    benchmark: str
    what: str
    peer: str
    ours: str
    theirs: str
    label: str
    """`12.3x` or `>12.3x`."""

    @property
    def value(self) -> float:
        return float(self.label.strip(">x"))


class Figure(NamedTuple):
    """A figure without a peer, and the value that it must reach."""

    benchmark: str
    what: str
    value: str
    required: str


def ratios(outcomes: Sequence[Outcome]) -> list[Ratio]:
    return [Ratio(one.name, *line.split(" | ")) for one in outcomes for line in one.lines("ratio")]


def figures(outcomes: Sequence[Outcome]) -> list[Figure]:
    return [Figure(one.name, *line.split(" | ")) for one in outcomes for line in one.lines("figure")]


def missing(outcomes: Sequence[Outcome]) -> list[str]:
    """Return one sentence for everything that was skipped, failed or was left out."""
    ends = [f"{one.name} {'was skipped' if one.skipped else 'failed'}: {one.message}" for one in outcomes if one.code]
    parts = [f"{one.name} left out {line}" for one in outcomes for line in one.lines("left out")]
    return [without_paths(line) for line in ends + parts]


def report(
    outcomes: Sequence[Outcome], full: bool, peers: Sequence[str], pictures: Sequence[str], date: str = ""
) -> str:
    """Return RESULTS.md: machine and versions, ratios, figures, what is missing, and the complete output.

    pictures: names of the files in the folder pictures/ beside it.
    """
    command = "`make bench BENCH_OPTIONS=--full` (the full form)" if full else "`make bench` (the small form)"
    minutes = sum(one.seconds for one in outcomes) / 60
    parts = [
        "# Benchmark results",
        f"Written by {command} on {date or time.strftime('%Y-%m-%d')}, in {minutes:.1f} minutes. {READING}",
        _table(("machine", ""), [*machine().items(), ("versions", _versions(peers))]),
    ]
    if found := ratios(outcomes):
        parts += ["## Comparison with other packages"]
        parts += [_picture(name, "All ratios") for name in pictures if name == "ratios.png"]
        parts += [_table(("benchmark", "what", "compared with", "polyseme", "other", "ratio"), found)]
    if rows := figures(outcomes):
        parts += ["## Other figures", _table(("benchmark", "what", "figure", "required"), rows)]
    parts += ["## Left out", "\n".join(f"- {line}" for line in missing(outcomes)) or "Nothing."]
    parts += [_picture(name, PICTURES[name]) for name in pictures if name in PICTURES]
    return "\n\n".join([*parts, "## Output", *map(section, outcomes)]) + "\n"


def section(outcome: Outcome) -> str:
    """Return the output of a benchmark without the lines about the machine, which are listed once."""
    head = f"### {outcome.title}\n`python {outcome.command}`, {outcome.seconds:.0f} seconds."
    lines = [line for line in outcome.output.splitlines() if not re.match(r"(machine|versions|picture): ", line)]
    printed = without_paths("\n".join(lines).strip())
    return head + (f"\n\n```text\n{printed}\n```" if printed else "")


def without_paths(text: str) -> str:
    """Return the text without folders of this machine."""
    for folder, name in ((DATA, "$POLYSEME_DATA"), (DATA.resolve(), "$POLYSEME_DATA"), (ROOT, "."), (Path.home(), "~")):
        text = text.replace(str(folder), name)
    return text


def draw_ratios(found: Sequence[Ratio], path: Path) -> None:
    """Draw a bar for each ratio on a logarithmic axis, with one color per benchmark."""
    from matplotlib import colormaps
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(10, 0.9 + 0.23 * len(found)), layout="constrained")
    axes = canvas.subplots()
    names = list(dict.fromkeys(ratio.benchmark for ratio in found))
    colors = [colormaps["tab10"](names.index(ratio.benchmark) % 10) for ratio in found]
    positions = range(len(found))
    values = [ratio.value for ratio in found]
    axes.barh(positions, [value - 1 for value in values], left=1, color=colors, height=0.75)
    for position, ratio in zip(positions, found, strict=True):
        axes.text(max(ratio.value, 1) * 1.05, position, ratio.label, va="center", fontsize=7)
    labels = [f"{ratio.benchmark}: {ratio.what}, {ratio.peer}" for ratio in found]
    axes.set_yticks(positions, labels, fontsize=7)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}x")
    axes.set_xlim(min([*values, 1]) / 1.5, max([*values, 1]) * 2)
    axes.set_ylim(len(found) - 0.4, -0.6)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.grid(True, axis="x", alpha=0.3)
    axes.set_xlabel("times better than the other package (logarithmic)")
    path.parent.mkdir(parents=True, exist_ok=True)
    canvas.savefig(path, dpi=90)


def _versions(peers: Sequence[str]) -> str:
    return ", ".join(f"{name} {installed_version(name)}" for name in (*PACKAGES, *peers))


def _picture(name: str, title: str) -> str:
    return f"![{title}](pictures/{name})"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
