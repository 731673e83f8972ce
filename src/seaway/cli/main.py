"""The command `seaway` and its subcommands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from seaway import __version__
from seaway.cli import config, db, fleet, pools, queues, simulate, tenants, tokens
from seaway.cli.cordons import cordon, drain, uncordon
from seaway.cli.events import events
from seaway.cli.exits import code_of
from seaway.cli.explain import explain
from seaway.cli.jobs import jobs
from seaway.cli.links import gateways, links
from seaway.cli.logs import logs, manifest
from seaway.cli.policies import policies
from seaway.cli.remote import Asked
from seaway.cli.replay import replay
from seaway.cli.show import show_job
from seaway.cli.steps import cancel, delete, reprioritize, resume, suspend
from seaway.cli.submit import submit
from seaway.cli.telling import show_warnings_plainly, tell
from seaway.cli.up import up
from seaway.cli.whatif import whatif
from seaway.domain.errors import SeawayError

JOBS, FLEET, SETUP, TRYING = "Jobs", "The fleet", "Set up", "Try out"

app = typer.Typer(
    name="seaway",
    help="Schedule GPU work over many Kubernetes clusters, and the network between them.",
    epilog="Start with [bold]seaway up[/bold], then [bold]seaway submit --help[/bold]. "
    "Exit codes: 0 done, 1 the job failed or nothing matched, 2 wrong input, 3 not allowed, 4 no server.",
    rich_markup_mode="rich",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def offer(panel: str, *commands: Callable[..., None]) -> None:
    """Offer commands, each by its function's name, in a panel of the help."""
    for command in commands:
        app.command(rich_help_panel=panel)(command)


offer(JOBS, submit, jobs)
app.command("show", rich_help_panel=JOBS)(show_job)
offer(JOBS, explain, events, logs, manifest, cancel, suspend, resume, reprioritize, delete)
app.add_typer(fleet.app, name="fleet", rich_help_panel=FLEET)
offer(FLEET, links, gateways, cordon, uncordon, drain, whatif)
for group, name in ((queues.app, "queues"), (pools.app, "pools"), (tenants.app, "tenants"), (tokens.app, "token")):
    app.add_typer(group, name=name, rich_help_panel=SETUP)
offer(SETUP, tokens.audit, config.login)
app.add_typer(config.app, name="config", rich_help_panel=SETUP)
app.add_typer(db.app, name="db", rich_help_panel=SETUP)
offer(SETUP, up)
offer(TRYING, replay, policies)
app.add_typer(simulate.app, name="simulate", rich_help_panel=TRYING)


def say_version(asked: bool) -> None:
    """Print the version and end, if that was asked for."""
    if asked:
        typer.echo(f"seaway {__version__}")
        raise typer.Exit


@app.callback()
def seaway(
    context: typer.Context,
    server: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The server, before SEAWAY_SERVER and profiles; this machine's without any."),
    ] = None,
    profile: Annotated[
        str | None, typer.Option(metavar="NAME", help="A profile that `seaway login` stored; before SEAWAY_PROFILE.")
    ] = None,
    version: Annotated[  # noqa: ARG001  # its callback has seen it
        bool,
        typer.Option("--version", help="Say which version this is.", callback=say_version, is_eager=True),
    ] = False,
) -> None:
    """Take the options that come before a command."""
    context.obj = Asked(server, profile)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; what the user can mend is said in one line.

    Parameters
    ----------
    arguments
        Without the program's name; None takes those of the process.
    """
    show_warnings_plainly()
    try:
        app(args=arguments, prog_name="seaway")
    except SeawayError as error:
        tell(error)
        raise SystemExit(code_of(error)) from None
