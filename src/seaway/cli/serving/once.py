"""Demo of `seaway up --once`: a workload on simulated clusters and a simulated clock, and its summary."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from statistics import mean, median
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.progress import Progress
from rich.table import Table

from seaway.application.views import Reason
from seaway.bootstrap.clusters import read_fleet
from seaway.bootstrap.demo import DemoResult, run_demo
from seaway.cli.output import Output, console, show
from seaway.cli.tables import show_explanation
from seaway.domain.cluster import Fleet

MAX_JOBS = 300


MIN_JOBS = 30


JOBS_PER_GPU = 2.7
"""Number of jobs per GPU at which the requests are about as large as the fleet."""


MAX_REASONS = 3
"""Maximum number of rejection reasons to print."""


def run_once(fleet_name: str, output: Output = Output.TABLE) -> None:
    """Run the demo on a fleet, and print the result. Output for programs has no explanations.

    Raises
    ------
    RejectedError
        When the fleet is unknown.
    """
    fleet = read_fleet(fleet_name)
    count = min(max(round(JOBS_PER_GPU * fleet.device_count), MIN_JOBS), MAX_JOBS)
    people = output in (Output.TABLE, Output.WIDE)
    screen = console()
    if people:
        screen.print(
            f"{_count(len(fleet.clusters), 'simulated cluster')} with "
            f"{_count(fleet.device_count, 'GPU')}, {_count(len(fleet.gateways), 'gateway')}; {count} "
            "jobs are submitted together and run to completion on a simulated clock.\n"
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
    """Return the result of a demo; without jobs that ran there are no waits."""
    states = Counter(job.state.value for job in result.jobs)
    refused = Counter(result.refused.values())
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
        "refused_because": {str(why): count for why, count in refused.most_common(MAX_REASONS)},
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
    return Group(table, "", "refused: they do not fit on the empty fleet, most of them because", *because)


def _explain(reason: Reason, console: Console) -> None:
    console.print()
    if reason.explanation:
        show_explanation(replace(reason.explanation, job=reason.job.spec.name), console)
    else:
        console.print(f"{reason.job.spec.name} {reason.message}")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
