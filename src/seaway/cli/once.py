"""`seaway up --once`: a demo workload, run to its end, and what came of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from statistics import mean, median

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from seaway.application.records import JobRecord
from seaway.application.views import Reason
from seaway.bootstrap.demo import DemoResult, run_demo
from seaway.bootstrap.plane import read_fleet
from seaway.cli.tables import show_explanation

JOBS = 300


def run_once(fleet_name: str) -> None:
    """Run the demo on a fleet, and print the result.

    Raises
    ------
    RejectedError
        When there is no such fleet.
    """
    console = Console(highlight=False)
    fleet = read_fleet(fleet_name)
    console.print(
        f"{len(fleet.clusters)} simulated clusters with {fleet.device_count} GPUs, {len(fleet.gateways)} gateways; "
        f"{JOBS} jobs are submitted at once and followed to their end, on a clock that does not wait.\n"
    )
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("Jobs ended", total=JOBS)
        result = run_demo(fleet, JOBS, lambda done, _: bar.update(task, completed=done))
    _show(result, console)


def _show(result: DemoResult, console: Console) -> None:
    states = Counter(job.state.value for job in result.jobs)
    waits = [_waited_s(job) for job in result.jobs if job.started_ns]
    table = Table(box=None, show_header=False, pad_edge=False)
    for state, count in states.most_common():
        table.add_row(state, f"{count:,}")
    table.add_row("largest share of GPU cores in use", f"{100 * result.busiest:.0f} %")
    if waits:
        table.add_row("wait until running, median", f"{median(waits):,.0f} s")
        table.add_row("wait until running, mean", f"{mean(waits):,.0f} s")
    table.add_row("first submit to last end", f"{result.lasted_s / 3600:.1f} h")
    table.add_row("events stored", f"{result.events:,}")
    console.print(table)
    for reason in (result.placed, result.waited):
        if reason:
            _explain(reason, console)


def _explain(reason: Reason, console: Console) -> None:
    console.print()
    if reason.explanation:
        show_explanation(replace(reason.explanation, job=reason.job.spec.name), console)
    else:
        console.print(f"{reason.job.spec.name} {reason.sentence}")


def _waited_s(job: JobRecord) -> float:
    return ((job.started_ns or 0) - job.submitted_ns) / 1e9
