"""Jobs as the scheduling cycle sees them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar
from weakref import WeakValueDictionary

from seaway.domain import amounts
from seaway.domain.amounts import Amounts
from seaway.domain.job import Job
from seaway.domain.job_spec import JobSpec, id_distance
from seaway.domain.queues import Order, Preemption, Queue
from seaway.scheduling.infeasibility_cache import RequestedAmounts, requested_amounts, rule_key
from seaway.scheduling.queueing.discipline import SortKey
from seaway.scheduling.queueing.lanes import LaneName
from seaway.scheduling.queueing.past_durations import PastRuns, length_of
from seaway.scheduling.queueing.tree import Key, Owner


class Rules:
    """Requirements of jobs except amounts. Equal requirements share one instance, so comparison by identity works."""

    __slots__ = ("__weakref__",)

    _known: ClassVar[WeakValueDictionary[Hashable, Rules]] = WeakValueDictionary()

    @classmethod
    def of(cls, asked: Hashable) -> Rules:
        """Return the rules of all jobs with these requirements."""
        return cls._known.setdefault(asked, cls())


class Kind:
    """Requirements of jobs that fit in the same places. Equal requirements share one instance.

    Attributes
    ----------
    rules, asked
        The two parts of the request of a replica.
    alone
        Whether these jobs start with a single replica. If one of them is rejected, no node has room.
    requested
        Amounts that a job holds at least.
    size
        Key of kinds with the same requirements, in any queue.
    models
        Names of allowed GPU models, case-folded; empty for all.
    """

    __slots__ = ("__weakref__", "alone", "asked", "models", "requested", "rules", "size")

    _known: ClassVar[WeakValueDictionary[Hashable, Kind]] = WeakValueDictionary()

    def __init__(self, job: Job) -> None:
        self.rules: Rules = Rules.of(rule_key(job.demand))
        self.asked: RequestedAmounts = requested_amounts(job.demand)
        self.alone: bool = job.replicas == 1 or job.partial
        self.requested: Amounts = amounts.requested_amounts(job.demand, 1 if job.partial else job.replicas)
        self.size: Hashable = (self.rules, self.asked, _together(job))
        self.models: frozenset[str] = frozenset(model.casefold() for model in job.demand.devices.models)

    @classmethod
    def of(cls, queue: str, apart: Hashable, length: int, job: Job) -> Kind:
        """Return the kind of all jobs in one queue with the same request and equal `apart` and `length`.

        Parameters
        ----------
        length
            Value that jobs of similar durations share.
        """
        key = (queue, apart, length, job.demand, _together(job))
        known = cls._known.get(key)
        if known is None:
            known = cls._known[key] = cls(job)
        return known


def _together(job: Job) -> Hashable:
    """Return the requirements of a job for all its replicas."""
    return job.replicas, job.gang, job.single_cluster, job.between_replicas, job.partial, job.ring


def kind_of(job: Job, spec: JobSpec, queue: Queue, apart: Hashable = "", past: PastRuns | None = None) -> Kind:
    """Return the kind of a job in a queue.

    Parameters
    ----------
    apart
        What else decides where it fits.
    past
        Past runs from which its duration is learned.
    """
    length = past.length if past else length_of(spec.max_duration_s)  # short jobs may fit before a reservation begins
    if queue.preemption is not Preemption.NEVER and queue.order in (Order.FIFO, Order.SHORTEST):
        apart = apart, spec.priority  # a later job may displace others, though the first one of its kind may not
    return Kind.of(spec.queue, apart, length, job)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Entry:
    """Waiting job.

    Attributes
    ----------
    id
        ID of the job.
    spec
        The job as submitted.
    user
        User who submitted it.
    job
        The job in the scheduler's form, without the replicas that are complete and the places that it avoids.
    kind
        Kind, shared by jobs that fit in the same places.
    order
        Sort key of the queue discipline.
    attempt
        Number of its latest attempt.
    submitted_ns
        Wall-clock time of its submit.
    completed
        Number of its replicas that are complete.
    array
        ID of its array; empty for a job of its own.
    past
        Past runs from which its duration is learned; None if it is known, or not learned.
    """

    id: str
    spec: JobSpec
    user: str
    job: Job
    kind: Kind
    order: SortKey
    attempt: int
    submitted_ns: int
    completed: int = 0
    array: str = ""
    past: PastRuns | None = None

    @property
    def display_name(self) -> str:
        """Name for people: that of a task has the index too, like ``sweep_7``."""
        return f"{self.spec.name}_{id_distance(self.array, self.id) - 1}" if self.array else self.spec.name

    @property
    def queue(self) -> str:
        """Name of the job's queue."""
        return self.spec.queue

    @property
    def tenant(self) -> str:
        """Name of the job's tenant."""
        return self.spec.tenant

    @property
    def lane(self) -> LaneName:
        """Queue and tenant of the job."""
        return self.spec.queue, self.spec.tenant

    @property
    def owner(self) -> Owner:
        """Queue, tenant and user that the job counts in."""
        return Owner(self.spec.queue, self.spec.tenant, self.user)

    @property
    def max_duration_s(self) -> int | None:
        """Time limit, or expected or learned duration, in seconds; None if all are unknown."""
        return self.past.expected_s if self.past else self.spec.max_duration_s

    @property
    def run_spec(self) -> JobSpec:
        """Specification of its next attempt."""
        return self.spec.task(self.array, id_distance(self.array, self.id) - 1) if self.array else self.spec

    @property
    def next_attempt(self) -> Key:
        """Job ID and number of the attempt that it waits for."""
        return self.id, self.attempt + 1
