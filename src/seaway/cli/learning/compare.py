"""Replays of a trace with several policies, with a progress bar on terminals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from seaway.bootstrap.policies import policy_of, uncompiled
from seaway.domain.cluster import Fleet
from seaway.domain.job import Job
from seaway.scheduling.policies.registry import PolicyOptions
from seaway.simulation.outcome import Outcome
from seaway.simulation.replay import replay as replay_jobs
from seaway.simulation.timeline import replay_with_departures
from seaway.simulation.waiting.discipline import Discipline


def compare(
    fleet: Fleet,
    jobs: Sequence[Job],
    policies: Sequence[str],
    options: PolicyOptions,
    *,
    departures: Discipline | None = None,
    offers: int = 1,
) -> list[Outcome]:
    """Replay jobs with each policy in turn, each on an empty fleet.

    Jobs end if `departures` says how they wait; otherwise they never do.

    Progress is printed to standard error if that is a terminal. A note about compilation is always printed there.
    """
    run = partial(replay_with_departures, discipline=departures) if departures else partial(replay_jobs, offers=offers)
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    outcomes = []
    if uncompiled(policies):
        console.print("Compiling the engine: about a minute, once on this machine.", style="dim")
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        for name in policies:
            task = bar.add_task(name, total=len(jobs))
            progress = partial(_advance, bar, task)
            outcomes.append(run(fleet, jobs, partial(policy_of, name, options), progress))
    return outcomes


def _advance(bar: Progress, task: TaskID, jobs: int) -> None:
    bar.update(task, completed=jobs)
