"""The typer application: registers all commands, prints errors as one line and sets the exit code."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any

from polyseme.errors import InputError, MissingExtraError, ModelFileError, ShardError

try:
    import rich  # noqa: F401
    import typer
    from typer.core import TyperCommand, TyperGroup
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] not in ("typer", "rich"):
        raise
    sys.exit(str(MissingExtraError("The command line", "cli")))  # a line on standard error, and exit code 1

from polyseme.cli.commands.compare import compare
from polyseme.cli.commands.demo import demo
from polyseme.cli.commands.edit import edit
from polyseme.cli.commands.effects import effects
from polyseme.cli.commands.evaluate import evaluate
from polyseme.cli.commands.explore import explore
from polyseme.cli.commands.export import export
from polyseme.cli.commands.fit import fit
from polyseme.cli.commands.groups import groups
from polyseme.cli.commands.mcp import mcp
from polyseme.cli.commands.merge import merge
from polyseme.cli.commands.report import report
from polyseme.cli.commands.schema import schema
from polyseme.cli.commands.search import EXCLUDED_WORD, search
from polyseme.cli.commands.select import select
from polyseme.cli.commands.time import time
from polyseme.cli.commands.topics import topics
from polyseme.cli.commands.transform import transform
from polyseme.cli.commands.update import update
from polyseme.cli.console import FAILED, INTERRUPTED, print_error
from polyseme.options import GROUPS, OUTPUT, naming_flags

COMMANDS: dict[str, tuple[Callable[..., None], ...]] = {
    "Start": (demo, fit, select),
    "Look": (topics, explore, search, report),
    "Measure": (evaluate, compare, groups, effects, time),
    "Use and change": (transform, update, edit, merge, export),
    "For programs": (mcp, schema),
}
"""Commands in the groups of the help text."""


class GroupedCommand(TyperCommand):
    """Command that prints its options in groups."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, the options without a group, and the options of each group."""
        sections: dict[str, list[tuple[str, str]]] = {name: [] for name in ("Arguments", "Options", *GROUPS)}
        parameters: list[Any] = self.get_params(ctx)
        for parameter in parameters:
            argument = parameter.param_type_name == "argument"
            group = "Arguments" if argument else OUTPUT if parameter.name == "help" else parameter.rich_help_panel
            if record := parameter.get_help_record(ctx):
                sections[group or "Options"].append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


class SearchCommand(GroupedCommand):
    """Command that takes -word as an argument, although it looks like an option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments. A space before the dash makes an excluded word an argument."""
        return super().parse_args(ctx, [f" {arg}" if EXCLUDED_WORD.fullmatch(arg) else arg for arg in args])


class CommandGroup(TyperGroup):
    """Group of commands that prints help in sections, and an error as one line without the usage text."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands of each section with the first sentence of their help."""
        for heading, group in COMMANDS.items():
            with formatter.section(heading):
                formatter.write_dl([(command.__name__, _first_line(command)) for command in group])

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command; in standalone mode, turn errors into one line on standard error and an exit code."""
        run = naming_flags()(partial(super().main, args, prog_name, complete_var, False, windows_expand_args, **extra))
        if not standalone_mode:
            return run()
        try:
            code = run()
        except typer.Abort:
            sys.exit(INTERRUPTED)
        except (InputError, ModelFileError, ShardError, MissingExtraError, OSError) as error:
            print_error(str(error))
            sys.exit(FAILED)
        except MemoryError as error:
            reason = f" ({error})" if str(error) else ""
            print_error(f"Out of memory{reason}: use a smaller -k, --sample, or polyseme fit --shards.")
            sys.exit(FAILED)
        except Exception as error:
            # Releases of typer define usage errors in different modules; all of them have format_message.
            if not hasattr(error, "format_message"):
                raise
            print_error(error.format_message())
            sys.exit(getattr(error, "exit_code", 2))
        sys.exit(code if isinstance(code, int) else 0)


app = typer.Typer(
    cls=CommandGroup,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for group in COMMANDS.values():
    for command in group:
        app.command(cls=SearchCommand if command is search else GroupedCommand)(command)


def _first_line(command: Callable[..., None]) -> str:
    return (command.__doc__ or "").partition("\n")[0]


def _print_version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version  # slow, and no other command needs it

        typer.echo(f"polyseme {version('polyseme')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def polyseme(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Find topics in documents, explore them, search, and compute the topics of new documents."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Run the command ``polyseme``. Characters that standard output cannot encode are printed as escapes."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # None if it is closed
        sys.stdout.reconfigure(errors="backslashreplace")
    app(prog_name="polyseme")
