"""Episodes: one decision after the other about the jobs of an instance, on the real engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from seaway.domain.errors import InvariantError, RejectedError
from seaway.domain.job import Job
from seaway.learning.episodes.arrivals import NO_JOB, ArrivalOrder, ArrivalsAndDepartures, Rounds
from seaway.learning.episodes.outcomes import Accounts
from seaway.learning.instances.instance import Instance
from seaway.scheduling.arrays import Int64, copy_arrays
from seaway.scheduling.columns import (
    CLUSTERS_ALLOWED,
    DEMAND_BANDWIDTH,
    JOB_DEMAND,
    JOB_SEQUENCE,
    NODE_DEVICE_END,
    NODE_DEVICE_FIRST,
)
from seaway.scheduling.framework import Cycle, Mask, Scores
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.kernels.candidates import first_nodes, fitting_nodes
from seaway.scheduling.kernels.compile import mixed
from seaway.scheduling.kernels.decide import DeviceKeys, allocate_with_keys, reset_bandwidth_of
from seaway.scheduling.plan import Plan
from seaway.scheduling.snapshot.encode import LOG_LENGTH
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.simulation.outcome import Outcome


@dataclass(frozen=True, slots=True)
class EpisodeOptions:
    """Offers of jobs.

    Attributes
    ----------
    departures
        Whether jobs arrive at their times and depart after their expected durations; jobs without one remain. Waiting
        jobs that fit are offered again after each departure. Otherwise jobs arrive in order and remain.
    offers
        Without departures: number of offers of a job that waits, the first on its arrival and others after the last
        arrival.
    """

    departures: bool = False
    offers: int = 2

    def __post_init__(self) -> None:
        """Check the number of offers."""
        if self.offers < 1:
            raise RejectedError(f"offers is {self.offers}, but a job is offered once at least")


OFFERED_TWICE = EpisodeOptions()
"""Offers of the study: on arrival, and once after the last arrival."""


class Episode:
    """Decisions for the jobs of an instance, in order of arrival.

    One job is current at a time. A decision places it or lets it wait; then the next one is current.
    An infeasible decision loses the job.

    Parameters
    ----------
    instance
        Fleet without allocations, and at least one job; jobs have one replica.
    options
        Offers of jobs.

    Attributes
    ----------
    instance, options
        The parameters.
    snapshot
        Present state of the fleet.
    queue
        The jobs in order of arrival.

    Raises
    ------
    RejectedError
        When the instance has no cluster or no job, or a job with several replicas.
    """

    def __init__(self, instance: Instance, options: EpisodeOptions = OFFERED_TWICE) -> None:
        _check_instance(instance)
        self.instance = instance
        self.options = options
        self.snapshot = Snapshot(instance.fleet)
        jobs = sorted(instance.jobs, key=lambda job: job.arrives_s) if options.departures else instance.jobs
        self.queue = JobQueue(self.snapshot, jobs)
        self._lines: list[int] = self.queue.rows[:, JOB_DEMAND].tolist()
        self._accounts = Accounts(self.snapshot, self.queue)
        self._clock = ArrivalsAndDepartures(self.snapshot, self.queue, self._accounts) if options.departures else None
        self._arrival_order: ArrivalOrder = self._clock or Rounds(len(self.queue), options.offers)
        self._fleet, self._demands = self.snapshot.arrays, self.snapshot.demands.arrays
        pairs: list[tuple[Any, Any]] = list(zip(self._fleet, copy_arrays(self._fleet), strict=True))
        self._tables = [(table, empty) for table, empty in pairs if table is not self._fleet.head]
        nodes = self._fleet.nodes
        self._devices: list[tuple[int, int]] = nodes[[NODE_DEVICE_FIRST, NODE_DEVICE_END]].T.tolist()
        self._default_keys = np.zeros(max((end - first for first, end in self._devices), default=0), np.int64)
        self._uses_bandwidth = bool(self._demands.amounts[self._lines, DEMAND_BANDWIDTH].any())
        self._firsts = np.zeros(len(self.snapshot.clusters), np.int64)
        self._fitting = np.zeros(nodes.shape[1], np.uint8)
        self._firsts_valid = self._fitting_valid = False
        self._fit_count = 0

    def reset(self) -> None:
        """Restart with an empty fleet and the first job."""
        for table, empty in self._tables:
            np.copyto(table, empty)
        # The log position jumps past its whole length, which invalidates cached scores.
        self._fleet.head[0] += LOG_LENGTH + 1
        self._arrival_order.reset()
        self._accounts.reset()
        self._invalidate()

    @property
    def done(self) -> bool:
        """True if every job has been decided permanently."""
        return self._arrival_order.number == NO_JOB

    @property
    def number(self) -> int:
        """Number of the current job in the queue; -1 at the end."""
        return self._arrival_order.number

    @property
    def job(self) -> Job:
        """Current job.

        Raises
        ------
        InvariantError
            At the end.
        """
        if self.done:
            raise InvariantError("the episode has ended: there is no job to decide")
        return self.queue.jobs[self._arrival_order.number]

    @property
    def line(self) -> int:
        """Index of its demand in ``snapshot.demands``; -1 at the end."""
        return -1 if self.done else self._lines[self._arrival_order.number]

    @property
    def may_wait(self) -> bool:
        """True if the current job would be offered again; otherwise waiting refuses it permanently."""
        return not self.done and self._arrival_order.may_wait

    @property
    def waited_s(self) -> int:
        """Waiting time of the current job, seconds; 0 without departures."""
        return self._clock.now_s - self.job.arrives_s if self._clock else 0

    @property
    def fits(self) -> bool:
        """True if the current job fits on any node."""
        self._find_fits()
        return self._fit_count > 0

    def first_nodes(self) -> Int64:
        """Return the first feasible node of each cluster, shape (C,); -1 for none. Do not modify it."""
        self._find_fits()
        return self._firsts

    def legal_clusters(self) -> Mask:
        """Return the feasible clusters of the current job, with links and bandwidth, shape (C,)."""
        mask: Mask = self.first_nodes() >= 0
        return mask

    def legal_nodes(self) -> Mask:
        """Return the feasible nodes of the current job, with links and bandwidth, shape (N,). Do not modify it."""
        if not self._fitting_valid:
            self._fitting_valid = True
            if self.done:
                self._fitting[:] = 0
            else:
                fitting_nodes(self._fleet, self._demands, self.line, self._fitting)
        return self._fitting.view(np.bool_)

    def cycle(self, seed: int = 0) -> Cycle:
        """Return the current decision in the form for plugins, after all filters.

        Parameters
        ----------
        seed
            Seed of random choices.
        """
        job, number = self.job, self._arrival_order.number
        marks = self._fleet.clusters_open
        return Cycle(
            snapshot=self.snapshot,
            job=job,
            replica=0,
            demand_index=self.line,
            random_bits=int(mixed(seed, int(self.queue.rows[number, JOB_SEQUENCE]), 0)),
            usable=marks[CLUSTERS_ALLOWED] != 0,
            feasible=self.legal_nodes().copy(),
            may_defer=self.may_wait,
        )

    def place_in_cluster(self, c: int) -> bool:
        """Place the current job in a cluster, on the first node and devices that fit.

        Returns
        -------
        bool
            False if it does not fit there; the job is lost then.
        """
        return self._place(int(self.first_nodes()[c]), None)

    def place_on_node(self, n: int, device_keys: Sequence[int] | Scores | None = None) -> bool:
        """Place the current job on a node.

        Parameters
        ----------
        device_keys
            Sort key of each device of the node, lowest first; equal keys keep their order. None for equal keys.

        Returns
        -------
        bool
            False if it does not fit there; the job is lost then.
        """
        return self._place(n if self.legal_nodes()[n] else -1, device_keys)

    def lose(self) -> None:
        """Lose the current job, as after an infeasible decision."""
        self._place(-1, None)

    def wait(self) -> bool:
        """Let the current job wait, or refuse it at its last offer.

        Returns
        -------
        bool
            True if it fits on no node.
        """
        infeasible = not self.fits
        self._finish_decision(waits=True)
        return infeasible

    def outcome(self, policy: str) -> Outcome:
        """Return the outcome so far, with the figures of `seaway.simulation.replay`.

        A job without a placement counts as refused if it fitted at none of its offers, otherwise as failed. With
        departures it counts as refused if it does not fit on the empty fleet, as in `seaway.simulation.timeline`. The
        outcome has no speed.
        """
        if self._clock:
            return self._clock.usage.outcome(policy, self._arrival_order.arrived)
        return self._accounts.outcome(policy, self._arrival_order.arrived)

    def plan(self) -> Plan:
        """Return the present allocations as a plan. Jobs without an allocation have no node."""
        return self._accounts.plan()

    def _place(self, n: int, device_keys: Sequence[int] | Scores | None) -> bool:
        if self.done:
            raise InvariantError("the episode has ended: there is no job to decide")
        placed = n >= 0
        if placed:
            first = self._devices[n][0]
            keys = self._default_keys if device_keys is None else np.ascontiguousarray(device_keys, np.int64)
            number = self._arrival_order.number
            row = self._accounts.rows[number]
            if self._uses_bandwidth:
                reset_bandwidth_of(self._fleet)
            allocate_with_keys(DeviceKeys(keys, first), self._fleet, self._demands, n, row, self._accounts.slices)
            self._accounts.placed(number, self._arrival_order.arrived)
        self._finish_decision(placed=placed)
        return placed

    def _finish_decision(self, *, waits: bool = False, placed: bool = False) -> None:
        """Record the result for the current job, and advance to the next."""
        if self.done:
            raise InvariantError("the episode has ended: there is no job to decide")
        if not placed and self.fits:
            self._accounts.was_feasible[self._arrival_order.number] = True
        self._arrival_order.advance(waits=waits, placed=placed)
        self._invalidate()

    def _invalidate(self) -> None:
        """Invalidate the cached feasible nodes."""
        self._firsts_valid = self._fitting_valid = False

    def _find_fits(self) -> None:
        """Find the feasible clusters of the current job, if they are not cached."""
        if self._firsts_valid:
            return
        self._firsts_valid = True
        if self.done:
            self._firsts[:] = -1
            self._fit_count = 0
        else:
            self._fit_count = first_nodes(self._fleet, self._demands, self.line, self._firsts)


def _check_instance(instance: Instance) -> None:
    """Check that episodes with an instance are possible."""
    if not instance.jobs or not instance.fleet.clusters:
        raise RejectedError("an episode needs a cluster and a job", where=instance.name)
    for job in instance.jobs:
        if job.replicas != 1:
            raise RejectedError(
                f"job {job.name!r} has {job.replicas} replicas; episodes are of jobs with one", where=instance.name
            )
