"""Stored records that the control loop reads at a start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seaway.application.ports.store import Store
from seaway.application.records import (
    ClusterFacts,
    ClusterInventory,
    ClusterReport,
    CompletedRun,
    Cordon,
    EndedUse,
    PendingCommand,
    ScaleWindow,
    Verb,
)
from seaway.domain.attempt import Attempt
from seaway.domain.job_record import JobRecord
from seaway.domain.queues import Queue
from seaway.domain.reservations import AdvanceReservation
from seaway.domain.tenancy import Pool, Tenant

MAX_RUNS = 50_000
"""Number of completed jobs from which durations are learned at a start."""


@dataclass(frozen=True, slots=True)
class Stored:
    """All stored records that the loop needs.

    Attributes
    ----------
    records
        Attempts, pending commands and jobs in the order of their application. Removals go first, since an ending
        attempt has allocations only where a removal is pending.
    """

    queues: Sequence[Queue]
    pools: Sequence[Pool]
    tenants: Sequence[Tenant]
    cordons: Sequence[Cordon]
    facts: Sequence[ClusterFacts]
    reports: Sequence[ClusterReport]
    inventories: Sequence[ClusterInventory]
    windows: Sequence[ScaleWindow]
    reservations: Sequence[AdvanceReservation]
    uses: Sequence[EndedUse]
    runs: Sequence[CompletedRun]
    records: Sequence[Attempt | PendingCommand | JobRecord]


def read(store: Store, uses_since_ns: int | None = None, *, runs: bool = False) -> Stored:
    """Read all records that the loop needs.

    Parameters
    ----------
    uses_since_ns
        Time since which ended uses are read; None for none.
    runs
        Whether past runs are read.

    Raises
    ------
    UnavailableError
        If the database does not respond.
    """
    queues, pools, tenants = store.queues(), store.pools(), store.tenants()
    cordons, facts, windows = store.cordons(), store.cluster_facts(), store.scale_windows()
    reports, inventories = store.cluster_reports(), store.cluster_inventories()
    attempts, jobs = list(store.held_attempts()), {job.id: job for job in store.live_jobs()}
    holders = dict.fromkeys(attempt.job_id for attempt in attempts)  # finished jobs can still have allocations
    for job_id in [*holders, *dict.fromkeys(job.array for job in jobs.values() if job.array)]:
        if job_id not in jobs and (over := store.job(job_id)):
            jobs[job_id] = over
    pending_commands = list(store.pending_commands())  # read after the attempts, so that no pending removal is missed
    removals = [each for each in pending_commands if each.verb is Verb.DELETE]
    others = [each for each in pending_commands if each.verb is not Verb.DELETE]
    uses = [] if uses_since_ns is None else list(store.ended_uses(uses_since_ns))
    reservations = store.reservations()
    past_runs = store.completed_runs(MAX_RUNS) if runs else []
    every: list[Attempt | PendingCommand | JobRecord] = [*removals, *attempts, *others, *jobs.values()]
    clusters = cordons, facts, reports, inventories
    return Stored(queues, pools, tenants, *clusters, windows, reservations, uses, past_runs, every)
