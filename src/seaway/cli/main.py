"""Entry point of `seaway`: options before the command, and errors."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated

import typer

from seaway import __version__
from seaway.cli.errors import print_error, show_warnings_plainly, write_encodable
from seaway.cli.remote import ServerOptions
from seaway.domain.errors import SeawayError

JOBS, FLEET, SETUP, TRYING = "Jobs", "The fleet", "Set up", "Try out"


@dataclass(frozen=True, slots=True)
class Command:
    """Command, or group of commands.

    Attributes
    ----------
    name
        Name on the command line.
    panel
        Section of the help.
    module
        Module in `seaway.cli`.
    what
        Function or group in the module; empty if it has the command's name.
    """

    name: str
    panel: str
    module: str
    what: str = ""

    def join(self, app: typer.Typer) -> None:
        """Import the command, and add it to the command line."""
        found = getattr(import_module(f"seaway.cli.{self.module}"), self.what or self.name)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=self.name, rich_help_panel=self.panel)
        else:
            app.command(self.name, rich_help_panel=self.panel)(found)


COMMANDS = (
    Command("submit", JOBS, "jobs.submit"),
    Command("jobs", JOBS, "jobs.list"),
    Command("show", JOBS, "jobs.show", "show_job"),
    Command("explain", JOBS, "jobs.show"),
    Command("priority", JOBS, "jobs.show"),
    Command("events", JOBS, "jobs.events"),
    Command("logs", JOBS, "jobs.logs"),
    Command("manifest", JOBS, "jobs.logs"),
    Command("cancel", JOBS, "jobs.actions"),
    Command("suspend", JOBS, "jobs.actions"),
    Command("resume", JOBS, "jobs.actions"),
    Command("reprioritize", JOBS, "jobs.actions"),
    Command("update", JOBS, "jobs.update"),
    Command("delete", JOBS, "jobs.actions"),
    Command("top", FLEET, "fleet.top"),
    Command("fleet", FLEET, "fleet.fleet", "app"),
    Command("metrics", FLEET, "fleet.fleet"),
    Command("links", FLEET, "fleet.links", "app"),
    Command("gateways", FLEET, "fleet.links"),
    Command("cordon", FLEET, "fleet.cordons"),
    Command("uncordon", FLEET, "fleet.cordons"),
    Command("drain", FLEET, "fleet.cordons"),
    Command("orphans", FLEET, "fleet.orphans", "app"),
    Command("whatif", FLEET, "fleet.whatif"),
    Command("share", FLEET, "fleet.share"),
    Command("network", SETUP, "admin.network", "app"),
    Command("queues", SETUP, "admin.queues", "app"),
    Command("pools", SETUP, "admin.pools", "app"),
    Command("reservations", SETUP, "admin.reservations", "app"),
    Command("tenants", SETUP, "admin.tenants", "app"),
    Command("token", SETUP, "admin.tokens", "app"),
    Command("audit", SETUP, "admin.tokens"),
    Command("login", SETUP, "admin.config"),
    Command("config", SETUP, "admin.config", "app"),
    Command("cluster", SETUP, "fleet.cluster", "app"),
    Command("gateway", SETUP, "admin.gateway", "app"),
    Command("agent", SETUP, "admin.agent"),
    Command("db", SETUP, "admin.db", "app"),
    Command("compile", SETUP, "serving.compile", "compile_policies"),
    Command("up", SETUP, "serving.up"),
    Command("train", TRYING, "learning.train"),
    Command("replay", TRYING, "learning.replay"),
    Command("evaluate", TRYING, "learning.evaluate"),
    Command("policies", TRYING, "learning.policies"),
    Command("simulate", TRYING, "serving.simulate", "app"),
)

WITH_VALUE = ("--server", "--profile")
"""Options before the command that require a value."""


def wanted(arguments: Sequence[str]) -> tuple[Command, ...]:
    """Return the commands that the arguments select: one, or all if the selection is unclear."""
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        rest = rest[2 if rest[0] in WITH_VALUE else 1 :]
    return tuple(each for each in COMMANDS if rest and each.name == rest[0]) or COMMANDS


def print_version(asked: bool) -> None:
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
        typer.Option("--version", help="Print the version.", callback=print_version, is_eager=True),
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
        Arguments without the program's name; None for those of the process.
    """
    given = sys.argv[1:] if arguments is None else arguments
    run(make_app(wanted(given)), given, "seaway")


def run(app: typer.Typer, arguments: Sequence[str], name: str) -> None:
    """Run a command line. Print a user error in one line, and exit with its code."""
    show_warnings_plainly()
    write_encodable()
    try:
        app(args=arguments, prog_name=name)
    except SeawayError as error:
        from seaway.cli.errors import code_of

        print_error(error)
        raise SystemExit(code_of(error)) from None
