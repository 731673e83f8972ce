"""Entry point of `seaway`: options before the command, and errors."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Annotated

import typer

from seaway import __version__
from seaway.cli.commands import COMMANDS, Command, wanted
from seaway.cli.errors import show_warnings_plainly, tell, write_what_can_be_written
from seaway.cli.remote import ServerOptions
from seaway.domain.errors import SeawayError


def say_version(asked: bool) -> None:
    """Print the version and exit, if requested."""
    if asked:
        typer.echo(f"seaway {__version__}")
        raise typer.Exit


def seaway(
    context: typer.Context,
    server: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="URL of the server; overrides SEAWAY_SERVER and profiles. Default: this machine's server.",
        ),
    ] = None,
    profile: Annotated[
        str | None, typer.Option(metavar="NAME", help="Profile stored by `seaway login`; overrides SEAWAY_PROFILE.")
    ] = None,
    version: Annotated[  # noqa: ARG001  # handled by its callback
        bool,
        typer.Option("--version", help="Print the version.", callback=say_version, is_eager=True),
    ] = False,
) -> None:
    """Read the options before the command."""
    context.obj = ServerOptions(server, profile)


def make_app(commands: Iterable[Command] = COMMANDS) -> typer.Typer:
    """Return the command line with some commands."""
    app = typer.Typer(
        name="seaway",
        help="Schedule GPU work over many Kubernetes clusters, and the network between them.",
        epilog="Start with [bold]seaway up[/bold], then [bold]seaway submit --help[/bold]. "
        "Exit codes: 0 done, 1 the job failed or nothing matched, 2 wrong input, 3 not allowed, 4 no server.",
        rich_markup_mode="rich",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )
    app.callback()(seaway)
    for each in commands:
        each.join(app)
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command `seaway`.

    Parameters
    ----------
    arguments
        Arguments without the program's name; None means those of the process.
    """
    given = sys.argv[1:] if arguments is None else arguments
    run(make_app(wanted(given)), given, "seaway")


def run(app: typer.Typer, arguments: Sequence[str], name: str) -> None:
    """Run a command line. Print a user error in one line, and exit with its code."""
    show_warnings_plainly()
    write_what_can_be_written()
    try:
        app(args=arguments, prog_name=name)
    except SeawayError as error:
        from seaway.cli.errors import code_of

        tell(error)
        raise SystemExit(code_of(error)) from None
