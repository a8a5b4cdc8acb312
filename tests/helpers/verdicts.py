"""Verdict tables of the reproductions."""


def verdicts(markdown):
    """Return {claim: verdict} of the lines of a verdict table."""
    rows = [line.strip("| ").split(" | ") for line in markdown.splitlines() if line.startswith("| ")]
    return {row[0]: row[-1] for row in rows if row[0] not in ("claim", "---")}
