"""The command `seaway` and its subcommands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from seaway import __version__
from seaway.cli.policies import policies
from seaway.cli.replay import replay
from seaway.cli.up import up
from seaway.domain.errors import SeawayError

BAD_INPUT = 2
"""Exit code when what the user gave is wrong."""

app = typer.Typer(
    name="seaway",
    help="Schedule GPU work over many Kubernetes clusters, and the network between them.",
    epilog="Start with [bold]seaway up --once[/bold], then [bold]seaway replay --help[/bold].",
    rich_markup_mode="rich",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command()(up)
app.command()(replay)
app.command()(policies)


def say_version(asked: bool) -> None:
    """Print the version and end, if that was asked for."""
    if asked:
        typer.echo(f"seaway {__version__}")
        raise typer.Exit


@app.callback()
def seaway(
    version: Annotated[
        bool,
        typer.Option("--version", help="Say which version this is.", callback=say_version, is_eager=True),
    ] = False,
) -> None:
    """Take the options that come before a command."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; what the user can mend is said in one line.

    Parameters
    ----------
    arguments
        Without the program's name; None takes those of the process.
    """
    try:
        app(args=arguments, prog_name="seaway")
    except SeawayError as error:
        typer.echo(f"error: {error}", err=True)
        raise SystemExit(BAD_INPUT) from None
