"""What a user asked for, checked and with every default written out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from seaway.domain.errors import RejectedError
from seaway.domain.job import NO_DATA, DataPlace, Demand, Job
from seaway.domain.network import NO_NEED, NetworkNeed, OnBreach
from seaway.domain.tenancy import DEFAULT, require_name

NOWHERE = frozenset({""})
"""Allows no cluster at all: none has an empty name."""


@dataclass(frozen=True, slots=True)
class Run:
    """What each replica runs.

    Attributes
    ----------
    image
        The container's image.
    command, args
        As in Kubernetes: empty leaves the image's own.
    env
        Environment variables, by name.
    ports
        TCP ports that the container listens on.
    """

    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    ports: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class JobSpec:
    """A job as it was submitted.

    Attributes
    ----------
    name
        What people call it; several jobs may have one name, their ids tell them apart.
    demand
        What each replica needs.
    replicas, gang, between_replicas, priority, tenant, queue
        As in `seaway.domain.job.Job`.
    template
        Which kind of workload it becomes.
    run
        What each replica runs.
    runs_s
        How long it is expected to run, seconds; None when nobody knows. A short job may be let past
        a waiting one if it will be gone in time; simulated clusters run it for just so long.
    time_limit_s
        After how many seconds it is stopped; None for never.
    retries
        How often it is started again after it failed by itself; what it ran on may fail as often as it likes.
        Means nothing to what comes back.
    labels
        Passed on to the workload; what runs keeps its labels until its next attempt.
    together
        Whether all replicas have to be in one cluster, and are a gang; its template says so.
    comes_back
        Whether it is started again however often it failed, because it is meant to run for ever; its template
        says so.
    on_breach
        What is done when its links break its bounds while it runs.
    data
        Where its data is; changing that moves nothing that runs.
    """

    name: str
    demand: Demand
    replicas: int = 1
    gang: bool = False
    between_replicas: NetworkNeed = NO_NEED
    priority: int = 0
    tenant: str = DEFAULT
    queue: str = DEFAULT
    template: str = "job"
    run: Run = Run()
    runs_s: int | None = None
    time_limit_s: int | None = None
    retries: int = 0
    labels: dict[str, str] = field(default_factory=dict)
    together: bool = False
    comes_back: bool = False
    on_breach: OnBreach = OnBreach.REPORT
    data: DataPlace = NO_DATA

    def __post_init__(self) -> None:
        """Check the name and the figures."""
        require_name("job", self.name)
        for figure, least in (("replicas", 1), ("runs_s", 0), ("time_limit_s", 1), ("retries", 0)):
            value = getattr(self, figure)
            if value is not None and value < least:
                raise RejectedError(f"is {value}, but has to be at least {least}", where=figure)

    def told(self, *, together: bool, comes_back: bool) -> JobSpec:
        """Return the job with what its template says of it: this very one where it says so already, as most do."""
        if (together, comes_back) == (self.together, self.comes_back):
            return self
        return replace(self, together=together, comes_back=comes_back)

    def job(self, job_id: str, clusters: frozenset[str] = frozenset()) -> Job:
        """Return what the scheduler sees.

        Parameters
        ----------
        job_id
            Stands for the job's name, which need not be unique.
        clusters
            The clusters of its queue's pool; empty for all.
        """
        demand = self.demand
        if clusters:
            allowed = demand.nodes.clusters & clusters if demand.nodes.clusters else clusters
            demand = replace(demand, nodes=replace(demand.nodes, clusters=allowed or NOWHERE))
        return Job(
            job_id,
            demand,
            self.replicas,
            self.gang or self.together,
            self.between_replicas,
            self.priority,
            self.tenant,
            self.queue,
            runs_s=self.runs_s,
            labels=self.labels,
            together=self.together,
            data=self.data,
        )

    def differs_in_kind(self, other: JobSpec) -> bool:
        """Tell whether a job that runs by the one spec has to be started anew to run by the other."""
        return _essence(self) != _essence(other)

    @property
    def has_bounds(self) -> bool:
        """Whether it asks anything of the network."""
        return self.demand.network.any or self.between_replicas.any

    @property
    def ends_within_s(self) -> int | None:
        """Seconds after which the job is surely gone, or expected to be; None when nobody knows."""
        known = [each for each in (self.runs_s, self.time_limit_s) if each is not None]
        return min(known, default=None)


def _essence(spec: JobSpec) -> tuple[Any, ...]:
    """Take what running copies hang on: all but name, labels, priority, queue, length, limits, data and breaches."""
    return (
        spec.demand,
        spec.replicas,
        spec.gang,
        spec.between_replicas,
        spec.template,
        spec.run,
    )


ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base 32: no i, l, o, u, which people mix up."""

_PAIRS = tuple(first + second for first in ALPHABET for second in ALPHABET)
"""Two letters at once: every row that is read has an id to write."""

_DIGITS = bytes(b"0123456789abcdefghijklmnopqrstuv!"[ALPHABET.find(chr(each))] for each in range(256))
"""Turns a letter of an id into what Python calls the same digit, and any other letter into none."""

LENGTH = 13
RANDOM_BITS = 22
NS_PER_MS = 1_000_000


class JobIds:
    """Draws ids: 42 bits of milliseconds since 1970, 22 bits that are random at first and count up after.

    Parameters
    ----------
    random
        Where the random bits come from.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._last = 0

    def draw(self, now_ns: int) -> str:
        """Return an id that sorts after all drawn before it, even when the clock was set back."""
        fresh = (now_ns // NS_PER_MS << RANDOM_BITS) | self._random.getrandbits(RANDOM_BITS)
        self._last = fresh if fresh >> RANDOM_BITS > self._last >> RANDOM_BITS else self._last + 1
        return encode(self._last)


def encode(number: int) -> str:
    """Write a 64-bit number as 13 letters and digits that sort as the number does."""
    pairs = _PAIRS
    return (
        ALPHABET[number >> 60 & 31]
        + pairs[number >> 50 & 1023]
        + pairs[number >> 40 & 1023]
        + pairs[number >> 30 & 1023]
        + pairs[number >> 20 & 1023]
        + pairs[number >> 10 & 1023]
        + pairs[number & 1023]
    )


def decode(text: str) -> int | None:
    """Read an id; None when `text` is none."""
    if len(text) != LENGTH:
        return None
    try:
        number = int(text.encode("ascii").translate(_DIGITS), 32)
    except ValueError:
        return None
    return number if number < 1 << 63 else None
