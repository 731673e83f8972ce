"""An episode: the jobs of an instance pass through its fleet, one decision at a time, on the real engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from seaway.domain.errors import InvariantError, RejectedError
from seaway.domain.job import Job
from seaway.learning.episodes.arrivals import NO_JOB, ArrivalOrder, ComeAndGo, Rounds
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
        Whether jobs come at their time, run for as long as they say, and end; one that does not say stays. Those that
        wait are offered again whenever something has ended and they fit. Else jobs come in their order and stay.
    offers
        How often a job that waits is offered in all, without departures: on its arrival, and again after the last
        arrival.
    """

    departures: bool = False
    offers: int = 2

    def __post_init__(self) -> None:
        """Reject jobs that are never offered."""
        if self.offers < 1:
            raise RejectedError(f"offers is {self.offers}, but a job is offered once at least")


OFFERED_TWICE = EpisodeOptions()
"""Offers of the study: on arrival, and once more after the last one."""


class Episode:
    """Decisions for the jobs of an instance, in order of arrival.

    One job is current at a time. A decision places it or lets it wait; then the next one is current.
    An impossible decision loses the job.

    Parameters
    ----------
    instance
        A fleet with nothing on it and at least one job; of jobs with one replica.
    options
        Offers of jobs.

    Attributes
    ----------
    instance, options
        As given.
    snapshot
        The fleet as it is now.
    queue
        The jobs in order of arrival.

    Raises
    ------
    RejectedError
        When the instance has no cluster or no job, or a job with several replicas.
    """

    def __init__(self, instance: Instance, options: EpisodeOptions = OFFERED_TWICE) -> None:
        _check(instance)
        self.instance = instance
        self.options = options
        self.snapshot = Snapshot(instance.fleet)
        jobs = sorted(instance.jobs, key=lambda job: job.arrives_s) if options.departures else instance.jobs
        self.queue = JobQueue(self.snapshot, jobs)
        self._lines: list[int] = self.queue.rows[:, JOB_DEMAND].tolist()
        self._accounts = Accounts(self.snapshot, self.queue)
        self._clock = ComeAndGo(self.snapshot, self.queue, self._accounts) if options.departures else None
        self._arrival_order: ArrivalOrder = self._clock or Rounds(len(self.queue), options.offers)
        self._fleet, self._demands = self.snapshot.arrays, self.snapshot.demands.arrays
        pairs: list[tuple[Any, Any]] = list(zip(self._fleet, copy_arrays(self._fleet), strict=True))
        self._tables = [(table, empty) for table, empty in pairs if table is not self._fleet.head]
        nodes = self._fleet.nodes
        self._devices: list[tuple[int, int]] = nodes[[NODE_DEVICE_FIRST, NODE_DEVICE_END]].T.tolist()
        self._in_order = np.zeros(max((end - first for first, end in self._devices), default=0), np.int64)
        self._pays = bool(self._demands.amounts[self._lines, DEMAND_BANDWIDTH].any())
        self._firsts = np.zeros(len(self.snapshot.clusters), np.int64)
        self._fitting = np.zeros(nodes.shape[1], np.uint8)
        self._looked = self._marked = False
        self._fit_count = 0

    def reset(self) -> None:
        """Begin again: the fleet empty, the first job at hand."""
        for table, empty in self._tables:
            np.copyto(table, empty)
        # The log goes on, past all that is remembered of it: scores of the fleet as it was are out of date.
        self._fleet.head[0] += LOG_LENGTH + 1
        self._arrival_order.reset()
        self._accounts.clear()
        self._turn()

    @property
    def done(self) -> bool:
        """True if every job has been decided permanently."""
        return self._arrival_order.number == NO_JOB

    @property
    def number(self) -> int:
        """The number of the job at hand in the queue; -1 at the end."""
        return self._arrival_order.number

    @property
    def job(self) -> Job:
        """The job at hand.

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
        """The line of its demand in ``snapshot.demands``; -1 at the end."""
        return -1 if self.done else self._lines[self._arrival_order.number]

    @property
    def may_wait(self) -> bool:
        """True if the job at hand would be offered again; else waiting refuses it permanently."""
        return not self.done and self._arrival_order.may_wait

    @property
    def waited_s(self) -> int:
        """Wait of the current job so far, seconds; 0 without departures."""
        return self._clock.now_s - self.job.arrives_s if self._clock else 0

    @property
    def fits(self) -> bool:
        """True if the job at hand fits anywhere now."""
        self._look()
        return self._fit_count > 0

    def first_nodes(self) -> Int64:
        """Return the first node that fits in each cluster, shape (C,); -1 where none does. Not to be written to."""
        self._look()
        return self._firsts

    def legal_clusters(self) -> Mask:
        """Tell in which clusters the job at hand fits now, links and bandwidth included, shape (C,)."""
        mask: Mask = self.first_nodes() >= 0
        return mask

    def legal_nodes(self) -> Mask:
        """Tell on which nodes it fits now, links and bandwidth included, shape (N,). Not to be written to."""
        if not self._marked:
            self._marked = True
            if self.done:
                self._fitting[:] = 0
            else:
                fitting_nodes(self._fleet, self._demands, self.line, self._fitting)
        return self._fitting.view(np.bool_)

    def cycle(self, seed: int = 0) -> Cycle:
        """Return the decision at hand as plugins of a policy see it, all filters passed.

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
        """Place the job at hand in a cluster, on the first node and devices that fit.

        Returns
        -------
        bool
            False when it fits nowhere there: then the job is lost.
        """
        return self._place(int(self.first_nodes()[c]), None)

    def place_on_node(self, n: int, device_keys: Sequence[int] | Scores | None = None) -> bool:
        """Place the job at hand on a node.

        Parameters
        ----------
        device_keys
            A rank for each of the node's devices: the lowest that fits goes first, and of equals the first. None for
            the first that fit.

        Returns
        -------
        bool
            False when it does not fit there: then the job is lost.
        """
        return self._place(n if self.legal_nodes()[n] else -1, device_keys)

    def lose(self) -> None:
        """Lose the job at hand, as an impossible choice does."""
        self._place(-1, None)

    def wait(self) -> bool:
        """Put the job at hand back, or at its last offer refuse it.

        Returns
        -------
        bool
            True when nothing could have held it now.
        """
        right = not self.fits
        self._decided(waits=True)
        return right

    def outcome(self, policy: str) -> Outcome:
        """Return what came out so far, in the measures of `seaway.simulation.replay`.

        A job that was not placed counts as refused when nothing could have held it whenever it was offered, else
        as failed. With departures it is as in `seaway.simulation.timeline`: refused is what not even the empty fleet
        holds. How fast decisions were made is not known here.
        """
        if self._clock:
            return self._clock.hours.outcome(policy, self._arrival_order.arrived)
        return self._accounts.outcome(policy, self._arrival_order.arrived)

    def plan(self) -> Plan:
        """Return what jobs hold now as a plan, a line a job; those that hold nothing have no node."""
        return self._accounts.plan()

    def _place(self, n: int, device_keys: Sequence[int] | Scores | None) -> bool:
        if self.done:
            raise InvariantError("the episode has ended: there is no job to decide")
        placed = n >= 0
        if placed:
            first = self._devices[n][0]
            keys = self._in_order if device_keys is None else np.ascontiguousarray(device_keys, np.int64)
            number = self._arrival_order.number
            line = self._accounts.lines[number]
            if self._pays:
                reset_bandwidth_of(self._fleet)
            allocate_with_keys(DeviceKeys(keys, first), self._fleet, self._demands, n, line, self._accounts.slices)
            self._accounts.placed(number, self._arrival_order.arrived)
        self._decided(placed=placed)
        return placed

    def _decided(self, *, waits: bool = False, placed: bool = False) -> None:
        """Note what became of the job at hand, and pass to the next."""
        if self.done:
            raise InvariantError("the episode has ended: there is no job to decide")
        if not placed and self.fits:
            self._accounts.could_have[self._arrival_order.number] = True
        self._arrival_order.go_on(waits=waits, placed=placed)
        self._turn()

    def _turn(self) -> None:
        """Forget what was worked out for the job that was at hand before."""
        self._looked = self._marked = False

    def _look(self) -> None:
        """Work out where the job at hand fits, once for a turn."""
        if self._looked:
            return
        self._looked = True
        if self.done:
            self._firsts[:] = -1
            self._fit_count = 0
        else:
            self._fit_count = first_nodes(self._fleet, self._demands, self.line, self._firsts)


def _check(instance: Instance) -> None:
    """Reject an instance that no episode can be made of."""
    if not instance.jobs or not instance.fleet.clusters:
        raise RejectedError("an episode needs a cluster and a job", where=instance.name)
    for job in instance.jobs:
        if job.replicas != 1:
            raise RejectedError(
                f"job {job.name!r} has {job.replicas} replicas; episodes are of jobs with one", where=instance.name
            )
