"""``polyseme schema``: prints the JSON Schema of what a command prints with --json."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from polyseme.cli.console import print_data
from polyseme.errors import InputError


def schema(command: Annotated[str, typer.Argument(metavar="COMMAND", help="Such as topics.")]) -> None:
    """Print the JSON Schema of what a command prints with --json.

    The field schema of the output has the name and version of its schema, such as topics/1.

    Examples:

      polyseme schema topics
    """
    from polyseme.cli.schemas import COMMANDS, command_schema

    if command not in COMMANDS:
        raise InputError(f"There is no schema {command!r}: give one of {', '.join(COMMANDS)}.")
    print_data(json.dumps(command_schema(command), indent=2) + "\n")
