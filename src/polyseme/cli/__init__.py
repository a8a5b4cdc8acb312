"""The command line. Everything that prints or reads arguments lives here."""

from __future__ import annotations

import sys

from polyseme.errors import MissingExtraError

_PARTS_OF_THE_EXTRA = ("typer", "rich")


def main() -> None:
    """Run the command ``polyseme``; without its optional packages, say which extra brings them."""
    try:
        from polyseme.cli.app import app
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _PARTS_OF_THE_EXTRA:
            raise
        print(MissingExtraError("The command line", "cli"), file=sys.stderr)
        raise SystemExit(1) from None
    app(prog_name="polyseme")
