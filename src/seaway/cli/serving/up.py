"""`seaway up`: the whole control plane in one process."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import mean, median
from typing import Annotated, Any

import typer
from rich.console import Console, Group, RenderableType
from rich.progress import Progress
from rich.table import Table

from seaway.application.views import Reason
from seaway.bootstrap.clusters import read_fleet
from seaway.bootstrap.demo import DemoResult, run_demo
from seaway.cli.output import Output, console, show
from seaway.cli.tables import show_explanation
from seaway.domain.cluster import Fleet
from seaway.domain.errors import RejectedError

MOST_JOBS = 300
FEWEST_JOBS = 30
JOBS_PER_GPU = 2.7
"""So many ask for about as much as a fleet has."""
MOST_REASONS = 3
"""Reasons of refusal that are told."""


def run_once(fleet_name: str, output: Output = Output.TABLE) -> None:
    """Run the demo on a fleet, and print the result; as a program reads it, without the explanations.

    Raises
    ------
    RejectedError
        When there is no such fleet.
    """
    fleet = read_fleet(fleet_name)
    count = min(max(round(JOBS_PER_GPU * fleet.device_count), FEWEST_JOBS), MOST_JOBS)
    people = output in (Output.TABLE, Output.WIDE)
    screen = console()
    if people:
        screen.print(
            f"{_count(len(fleet.clusters), 'simulated cluster')} with {_count(fleet.device_count, 'GPU')}, "
            f"{_count(len(fleet.gateways), 'gateway')}; {count} jobs are submitted at once and followed to their end, "
            "on a clock that does not wait.\n"
        )
    with Progress(console=console(err=True), transient=True) as bar:
        task = bar.add_task("Jobs ended", total=count)
        result = run_demo(fleet, count, lambda done, _: bar.update(task, completed=done))
    body = _body(result, fleet)
    show(output, body, lambda _: _picture(body), lambda: [job.id for job in result.jobs])
    for reason in (result.placed, result.waited) if people else ():
        if reason:
            _explain(reason, screen)


def _body(result: DemoResult, fleet: Fleet) -> dict[str, Any]:
    """Say what came of a demo; without jobs that ran there are no waits."""
    states = Counter(job.state.value for job in result.jobs)
    waits_s = [((job.started_ns or 0) - job.submitted_ns) / 1e9 for job in result.jobs if job.started_ns]
    return {
        "fleet": {"clusters": len(fleet.clusters), "gpus": fleet.device_count, "gateways": len(fleet.gateways)},
        "submitted": len(result.jobs) + len(result.refused),
        "refused": len(result.refused),
        "states": dict(states.most_common()),
        "wait_s": {"median": median(waits_s), "mean": mean(waits_s), "longest": max(waits_s)} if waits_s else None,
        "busiest_share": result.busiest,
        "duration_s": result.lasted_s,
        "events": result.events,
        "refused_because": dict(Counter(result.refused.values()).most_common(MOST_REASONS)),
    }


def _picture(body: dict[str, Any]) -> RenderableType:
    table = Table(box=None, show_header=False, pad_edge=False)
    for state, count in body["states"].items():
        table.add_row(state, f"{count:,}")
    if body["refused"]:
        table.add_row("refused when submitted", f"{body['refused']:,}")
    table.add_row("largest share of GPU cores in use", f"{100 * body['busiest_share']:.0f} %")
    if body["wait_s"]:
        table.add_row("wait until running, median", f"{body['wait_s']['median']:,.0f} s")
        table.add_row("wait until running, mean", f"{body['wait_s']['mean']:,.0f} s")
    table.add_row("first submit to last end", f"{body['duration_s'] / 3600:.1f} h")
    table.add_row("events stored", f"{body['events']:,}")
    if not body["refused"]:
        return table
    because = [f"  {count:,}: {reason}" for reason, count in body["refused_because"].items()]
    return Group(table, "", "refused, as this fleet could not hold them if it were empty, most of them as", *because)


def _explain(reason: Reason, console: Console) -> None:
    console.print()
    if reason.explanation:
        show_explanation(replace(reason.explanation, job=reason.job.spec.name), console)
    else:
        console.print(f"{reason.job.spec.name} {reason.sentence}")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def up(
    host: Annotated[str | None, typer.Option(help="Address to listen on.", show_default="127.0.0.1")] = None,
    port: Annotated[
        int | None, typer.Option(help="Port to listen on; 0 takes a free one.", show_default="8080")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder for database, backups and tokens.", show_default="~/.local/share/seaway"),
    ] = None,
    fleet: Annotated[
        str | None, typer.Option(help="Simulated clusters: demo, or a fleet file.", show_default="demo")
    ] = None,
    simulated: Annotated[
        str | None, typer.Option(metavar="URL", help="Simulated clusters of another process (seaway simulate serve).")
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(metavar="URL", help="sqlite:///, mysql:// or postgresql://.", show_default="SQLite in --data"),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="Settings in TOML: docs/settings.md has them all.")] = None,
    tls_certificate: Annotated[Path | None, typer.Option(help="Certificate, PEM; serves https.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="The certificate's key, PEM.")] = None,
    no_auth: Annotated[
        bool, typer.Option("--no-auth", help="Everybody is an admin. Only on loopback, for trying things out.")
    ] = False,
    once: Annotated[
        bool, typer.Option("--once", help="Run a demo workload to its end on a clock that does not wait, and end.")
    ] = False,
    output: Annotated[
        Output | None, typer.Option("--output", "-o", help="How --once prints its result.", show_default="table")
    ] = None,
) -> None:
    r"""Start Seaway: REST API, live events and control loop, until Ctrl-C or SIGTERM. State is kept.

    Without options it listens on 127.0.0.1:8080, keeps everything in a SQLite database and drives three
    small simulated clusters. Commands on this machine find it, and its first token, by themselves.

    Settings come from options, from variables like SEAWAY_SERVER_PORT, and from the file of --config; what comes
    first here wins. `seaway config show --server` says what they are and where each comes from.

    [bold]Examples[/bold]

      [cyan]seaway up --port 9090 --data /var/lib/seaway[/cyan]

    With a file of settings, here a port and a database:

      [cyan]printf '\[server]\nport = 9090\n\[database]\nbackup_every_h = 6\n' > seaway.toml[/cyan]

      [cyan]seaway up --config seaway.toml[/cyan]
    """
    flags = {
        ("server", "host"): host,
        ("server", "port"): port,
        ("server", "tls_certificate"): str(tls_certificate) if tls_certificate else None,
        ("server", "tls_key"): str(tls_key) if tls_key else None,
        ("server", "no_auth"): no_auth or None,
        ("database", "url"): database,
        ("clusters", "fleet"): fleet,
        ("clusters", "simulated_url"): simulated,
    }
    if once:
        _require_unused({**flags, ("", "data"): data, ("", "config"): config, ("clusters", "fleet"): None})
        from seaway.cli.serving.up import run_once

        run_once(fleet or "demo", output or Output.TABLE)
        return
    if output:
        raise RejectedError("goes with --once only", where="--output")
    gc.disable()  # until it serves: next to nothing of what is imported and made until then is garbage
    try:
        from seaway.cli.serving.server import serve

        serve(config, flags, data)
    finally:
        gc.enable()


def _require_unused(flags: Mapping[tuple[str, str], object]) -> None:
    """Check that no option is given that a demo has no use for.

    Raises
    ------
    RejectedError
        With all that are.
    """
    words = {("database", "url"): "--database", ("clusters", "simulated_url"): "--simulated"}
    given = [words.get(key, f"--{key[1].replace('_', '-')}") for key, value in flags.items() if value is not None]
    if given:
        raise RejectedError(
            f"{', '.join(given)} cannot go with --once, which listens nowhere and keeps nothing; "
            "leave out what is not --fleet or --output",
            where="--once",
        )
