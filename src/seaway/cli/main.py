"""Entry point of `seaway`: options before the command, and errors."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from seaway import __version__
from seaway.cli import exit_interrupted
from seaway.cli.errors import (
    UNWRITABLE,
    exit_unwritable,
    hides_changes,
    open_closed_streams,
    print_error,
    show_warnings_plainly,
    write_encodable,
)
from seaway.cli.groups import FLEET, GROUPS, JOBS, SERVER, TRYING, Command, make_top
from seaway.cli.remote import ServerOptions
from seaway.domain.errors import SeawayError

COMMANDS = (
    Command("submit", JOBS, "jobs.submit", summary="Submit jobs, and follow one.", group="job", kind="SubmitCommand"),
    Command("convert", JOBS, "jobs.convert", summary="Convert job files of other schedulers.", group="job"),
    Command("jobs", JOBS, "jobs.list", summary="List jobs.", group="job list", aliases=("ls", "list", "ps")),
    Command("show", JOBS, "jobs.show", "show_job", "Show a job: state, request, attempts.", "job", ("describe", "get")),
    Command("explain", JOBS, "jobs.show", summary="Explain why a job waits, or runs where it does.", group="job"),
    Command("logs", JOBS, "jobs.logs", summary="Print or follow the logs of a job.", group="job"),
    Command("events", JOBS, "jobs.events", summary="Print or follow the changes of a job.", group="job"),
    Command("wait", JOBS, "jobs.events", summary="Wait until jobs end or run.", group="job"),
    Command("exec", JOBS, "jobs.access", "exec_", "Run a command in a container of a job.", "job"),
    Command("attach", "", "jobs.access", group="job"),
    Command("port-forward", "", "jobs.access", "port_forward", group="job"),
    Command("cp", "", "jobs.copy", "copy", group="job"),
    Command("notebook", JOBS, "jobs.notebook", summary="Start a notebook, and print its address.", group="job"),
    Command("serve", JOBS, "jobs.notebook", summary="Serve a model, and print its address.", group="job"),
    Command("cancel", JOBS, "jobs.actions", summary="Cancel jobs.", group="job"),
    Command(
        "delete",
        JOBS,
        "jobs.actions",
        summary="Delete jobs, and hide their records.",
        group="job",
        aliases=("rm", "remove"),
    ),
    Command("update", "", "jobs.update", group="job"),
    Command("reprioritize", "", "jobs.actions", group="job"),
    Command("scale", "", "jobs.actions", group="job"),
    Command("suspend", "", "jobs.actions", group="job"),
    Command("resume", "", "jobs.actions", group="job"),
    Command("failover", "", "jobs.actions", group="job"),
    Command("renew", "", "jobs.actions", group="job"),
    Command("retry", "", "jobs.actions", group="job"),
    Command("priority", "", "jobs.show", group="job"),
    Command("manifest", "", "jobs.logs", group="job"),
    Command("status", FLEET, "fleet.top", summary="Print fleet, queue and jobs; with JOB, that job."),
    Command("top", FLEET, "fleet.top", summary="Show fleet, queue, jobs and links live on the full screen."),
    Command("fleet", FLEET, "fleet.fleet", "app", "List clusters, nodes, devices and slices.", aliases=("clusters",)),
    Command("alerts", FLEET, "fleet.alerts", "app", "List, show and acknowledge firing alerts.", aliases=("alert",)),
    Command("history", FLEET, "fleet.history", summary="Show past use of GPUs and waits, by cluster, tenant or queue."),
    Command("whatif", FLEET, "fleet.whatif", summary="Try a change on a copy of the fleet."),
    Command("job", GROUPS, "", summary="Submit, show and change jobs."),
    Command("queue", GROUPS, "admin.queues", "app", "Show and set queues and their shares.", aliases=("queues",)),
    Command("cluster", GROUPS, "fleet.cluster", "app", "Join, describe, drain and delete clusters."),
    Command("network", GROUPS, "admin.network", "app", "Show links and gateways, and set the network between them."),
    Command("policy", GROUPS, "learning.policies", "policies", "Manage and train policies.", aliases=("policies",)),
    Command("pool", GROUPS, "admin.pools", "app", "Show and set pools of clusters.", aliases=("pools",)),
    Command(
        "reservation",
        GROUPS,
        "admin.reservations",
        "app",
        "Reserve capacity in advance, and plan maintenance.",
        aliases=("reservations",),
    ),
    Command("tenant", GROUPS, "admin.tenants", "app", "Show and set tenants and quotas.", aliases=("tenants",)),
    Command(
        "notification",
        GROUPS,
        "admin.notifications",
        "app",
        "Send messages about jobs to webhooks, Slack and e-mail.",
        aliases=("notifications",),
    ),
    Command(
        "workdir",
        "",
        "jobs.workdir",
        "app",
        "List and delete stored working directories of jobs.",
        group="job",
        aliases=("workdirs",),
    ),
    Command("token", GROUPS, "admin.tokens", "app", "Create, list and delete API tokens.", aliases=("tokens",)),
    Command("share", "", "fleet.share", group="queue"),
    Command("cordon", "", "fleet.cordons", group="cluster"),
    Command("uncordon", "", "fleet.cordons", group="cluster"),
    Command("drain", "", "fleet.cordons", group="cluster"),
    Command("orphans", "", "fleet.orphans", "app", group="cluster"),
    Command("metrics", "", "fleet.fleet", group="cluster"),
    Command("dashboards", "", "serving.dashboards", group="cluster"),
    Command("links", "", "fleet.links", "app", group="network"),
    Command("gateways", "", "fleet.links", group="network"),
    Command("gateway", "", "admin.gateway", "app", group="network"),
    Command("agent", "", "admin.agent", group="network"),
    Command("init", SERVER, "serving.init", summary="Set up a server: settings, clusters, tenants, queues, tokens."),
    Command("up", SERVER, "serving.up", summary="Start a server."),
    Command("doctor", SERVER, "serving.doctor", summary="Check settings, database, clusters and network."),
    Command("login", SERVER, "admin.config", summary="Store server and token as a profile."),
    Command("whoami", SERVER, "admin.config", summary="Show your name, role and tenant at the server."),
    Command("config", SERVER, "admin.config", "app", "Show settings with their sources."),
    Command("db", SERVER, "admin.db", "app", "Back up, restore, check and prune the database."),
    Command("audit", SERVER, "admin.tokens", summary="List requests with actor and result."),
    Command("simulate", SERVER, "serving.simulate", "app", "Run simulated clusters."),
    Command("compile", "", "serving.compile", "compile_policies", group="policy"),
    Command(
        "evaluate", TRYING, "learning.evaluate", summary="Compare policies on generated or own jobs.", group="policy"
    ),
    Command("replay", TRYING, "learning.replay", summary="Replay a trace of jobs with policies.", group="policy"),
    Command("trace", "", "learning.trace", "app", "List public traces of jobs, and convert them.", group="policy"),
    Command("train", TRYING, "learning.train", summary="Train a policy.", group="policy"),
)


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
    """Read the options before the command. From now on, the command handles Ctrl-C itself."""
    if signal.getsignal(signal.SIGINT) is exit_interrupted:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    context.obj = ServerOptions(server, profile)


def make_app() -> typer.Typer:
    """Return the command line."""
    return make_top(
        COMMANDS,
        seaway,
        help="Schedule GPU work over many Kubernetes clusters, and the network between them.",
        epilog="Start with `seaway up`, then `seaway submit --help`. `seaway GROUP --help` lists all commands of a "
        "group. Exit codes: 0 done, 1 the job failed or nothing matched, 2 wrong input, 3 not allowed, 4 no server, "
        "130 interrupted.",
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command `seaway`.

    Parameters
    ----------
    arguments
        Arguments without the program's name; None for those of the process.
    """
    given = sys.argv[1:] if arguments is None else arguments
    run(make_app(), given, "seaway")


def run(app: typer.Typer, arguments: Sequence[str], name: str) -> None:
    """Run a command line. Print a user error in one line, and exit with its code."""
    open_closed_streams()
    show_warnings_plainly()
    write_encodable()
    try:
        try:
            app(args=arguments, prog_name=name)
        finally:
            sys.stdout.flush()  # an error is reported here rather than by the interpreter at its end
    except SeawayError as error:
        from seaway.cli.errors import code_of

        print_error(error)
        raise SystemExit(code_of(error)) from None
    except SystemExit as ended:
        if isinstance(lost := ended.__context__, OSError) and hides_changes(lost):  # typer ends quietly then
            exit_unwritable(lost)
        raise
    except OSError as error:
        if error.errno not in UNWRITABLE and not hides_changes(error):
            raise
        exit_unwritable(error)
