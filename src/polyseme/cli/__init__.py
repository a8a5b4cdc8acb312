"""The command line `polyseme`. Only this package prints and reads arguments."""

from __future__ import annotations

import sys

from polyseme.errors import MissingExtraError

_PACKAGES_OF_THE_EXTRA = ("typer", "rich")


def main() -> None:
    """Run the command ``polyseme``. If typer or rich is not installed, name the extra that installs them."""
    try:
        from polyseme.cli.app import app
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _PACKAGES_OF_THE_EXTRA:
            raise
        print(MissingExtraError("The command line", "cli"), file=sys.stderr)
        raise SystemExit(1) from None
    app(prog_name="polyseme")
