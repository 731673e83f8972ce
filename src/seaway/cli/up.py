"""`seaway up`: for now, a made-up fleet on which two policies place a few hundred jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from seaway.domain.cluster import Fleet
    from seaway.domain.explanation import Explanation
    from seaway.domain.job import Job
    from seaway.scheduling.policies import PolicyOptions

JOBS = 300
EXPLAIN_EVERY = 8
"""Of so many jobs one is explained, and the most telling explanations are shown; each costs tables of its own."""
POLICIES = ("bestfit", "seaway")


def up(
    once: Annotated[  # noqa: ARG001  # there is nothing yet that would go on
        bool, typer.Option("--once", help="Go through it once and end.")
    ] = False,
) -> None:
    """Start Seaway on a small made-up fleet: three clusters behind their gateways, and users behind a fourth.

    Places a few hundred jobs by two policies, compares them, and explains two decisions: why one job
    went where it did, and why another could not be placed. Needs nothing but this machine.
    """
    from rich.console import Console

    from seaway.cli.compare import compare
    from seaway.cli.tables import show_comparison
    from seaway.scheduling.policies import PolicyOptions
    from seaway.simulation.demo import demo_fleet, demo_jobs

    console = Console()
    fleet, jobs = demo_fleet(), demo_jobs(JOBS)
    options = PolicyOptions(mix=demo_jobs(JOBS, seed=1))
    names = " and ".join(POLICIES)
    console.print(
        f"{len(fleet.clusters)} clusters with {fleet.device_count} GPUs, {len(fleet.gateways)} gateways, "
        f"{len(jobs)} jobs, placed by {names}:\n",
        highlight=False,
    )
    show_comparison(compare(fleet, jobs, POLICIES, options), console)
    explain_some(fleet, jobs, options, console)


def explain_some(fleet: Fleet, jobs: tuple[Job, ...], options: PolicyOptions, console: Console) -> None:
    """Carry a plan out, and print why one job went where it did, and why another could not be placed."""
    from seaway.cli.tables import show_explanation
    from seaway.scheduling.binding import carry_out
    from seaway.scheduling.engine import decide
    from seaway.scheduling.policies import make_profile
    from seaway.scheduling.queue import JobQueue
    from seaway.scheduling.snapshot import Snapshot
    from seaway.simulation.kubelets import Kubelets

    snapshot = Snapshot(fleet)
    queue = JobQueue(snapshot, jobs)
    kubelets = Kubelets(fleet, jobs)
    profile = make_profile(POLICIES[-1], options).joined_by(kubelets)
    plan = decide(snapshot, queue, profile, explained=range(0, len(jobs), EXPLAIN_EVERY))
    bound = carry_out(plan, profile)
    console.print(f"\n{kubelets.running.total()} replicas run on {len(kubelets.running)} nodes.", highlight=False)
    for each in bound:
        if not each.status.passes:
            console.print(f"{each.placement.job} was not admitted: {each.status.reason}", style="red")
    reasons = list(plan.explanations.values())
    for chosen in (telling(reasons, fits=True), telling(reasons, fits=False)):
        if chosen:
            console.print()
            show_explanation(chosen, console)


def telling(explanations: list[Explanation], *, fits: bool) -> Explanation | None:
    """Choose the explanation to show: where most rules had a say and candidates differ most."""
    wanted = [each for each in explanations if each.fits == fits]
    return max(wanted, key=_says, default=None)


def _says(explanation: Explanation) -> tuple[int, int]:
    totals = {candidate.total for candidate in explanation.candidates}
    return min(len(totals), 3) + len(explanation.refusals), len(explanation.remedies)
