"""Extension points for plugins, with the terms of the Kubernetes scheduling framework.

Plugins evaluate all nodes in one call, with arrays over the snapshot's nodes, shape (N,). A plugin is any object with a
`name` and the methods of one or more of these protocols; it need not inherit from them. `seaway.testing.plugins` has a
conformance suite for plugins.

The order of a decision is PreFilter, Filter, PostFilter (if no node is left), PreScore, Score, Reserve, Permit; then,
for each placed job, PreBind, Bind and PostBind.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from seaway.domain.job import Demand, Job
from seaway.domain.placement import Placement
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.snapshot.snapshot import Snapshot

Codes = NDArray[np.uint8]
Scores = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Verdict(Enum):
    """Verdict of a plugin on a whole decision."""

    PASS = "pass"
    REJECT = "refuse"
    WAIT = "wait"


class Decider(NamedTuple):
    """Author of a decision.

    Attributes
    ----------
    name
        Its name.
    reason
        Reason why it decided instead of the policy, one clause; empty for the policy itself.
    """

    name: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Status:
    """A verdict and, unless it is PASS, the reason in one clause."""

    verdict: Verdict = Verdict.PASS
    reason: str = ""

    @property
    def passes(self) -> bool:
        """True if the decision continues."""
        return self.verdict is Verdict.PASS


PASS = Status()


@dataclass(slots=True)
class Cycle:
    """One decision: the placement of one replica of a job.

    Attributes
    ----------
    snapshot
        The fleet. Plugins must not change it.
    job
        The job.
    replica
        Number of the replica, from 0.
    demand_index
        Row of the job's demand in ``snapshot.demands``.
    random_bits
        63 random bits of this decision, for ties and samples.
    usable
        Allowed clusters, shape (C,); restricted further for a gang.
    feasible
        Nodes that passed all filters so far, shape (N,).
    placed
        Nodes of the job's earlier replicas.
    state
        Data of plugins for later points of the same decision, by plugin name.
    may_defer
        Whether the replica may be deferred; otherwise a `Verdict.WAIT` counts as a PASS.
    deferral_reason
        Reason why it was deferred; empty if it was not.
    message
        Message on the decision, one clause; written by plugins.
    decider
        Author of the decision; written by plugins that have a fallback.
    """

    snapshot: Snapshot
    job: Job
    replica: int
    demand_index: int
    random_bits: int
    usable: Mask
    feasible: Mask
    placed: tuple[int, ...] = ()
    state: dict[str, Any] = field(default_factory=dict)
    may_defer: bool = True
    deferral_reason: str = ""
    message: str = ""
    decider: Decider | None = None

    @property
    def demand(self) -> Demand:
        """Demand of the replica."""
        return self.job.demand


class Plugin(Protocol):
    """A plugin at one or more extension points."""

    @property
    def name(self) -> str:
        """Name, unique in a profile."""


@runtime_checkable
class QueueSort(Plugin, Protocol):
    """Plugin that orders the queue."""

    def order(self, queue: JobQueue) -> NDArray[np.int64]:
        """Return the indices of the queue's jobs in the order of decision, shape (J,)."""


@runtime_checkable
class PreFilter(Plugin, Protocol):
    """Plugin that checks the replica before the filters."""

    def pre_filter(self, cycle: Cycle) -> Status:
        """Reject the replica, or prepare data for filters."""


@runtime_checkable
class Filter(Plugin, Protocol):
    """Plugin that excludes nodes."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Reasons why this filter excludes nodes; code i stands for ``reasons[i - 1]``."""

    def filter(self, cycle: Cycle) -> Codes:
        """Return 0 for each node that passes, else the code of the reason, shape (N,)."""


@runtime_checkable
class PostFilter(Plugin, Protocol):
    """Plugin that is called if no node is feasible, for example to free resources."""

    def post_filter(self, cycle: Cycle) -> Status:
        """Return PASS to try the filters once more."""


@runtime_checkable
class PreScore(Plugin, Protocol):
    """Plugin that prepares scores after the feasible nodes are known."""

    def pre_score(self, cycle: Cycle) -> Status:
        """Prepare data for scores, reject the replica, or defer it with WAIT."""


@runtime_checkable
class Score(Plugin, Protocol):
    """Plugin that ranks nodes.

    In a profile with one score plugin, the node with the highest score wins. With several, each score is scaled to
    0-100 over the feasible nodes and multiplied by its weight. Ties go to the node with the lowest index, and for
    a job that asks for connected devices to the node that breaks NVLink islands least.
    """

    def score(self, cycle: Cycle) -> Scores:
        """Return the score of each node, shape (N,); values of infeasible nodes are ignored."""


@runtime_checkable
class DeviceScore(Plugin, Protocol):
    """Plugin that ranks the devices of the chosen node. Only the first one of a profile is used."""

    def device_keys(self, cycle: Cycle, node: int) -> Scores:
        """Return a key for each device of the node, shape (devices of the node,). The lowest key that fits wins."""


@runtime_checkable
class Reserve(Plugin, Protocol):
    """Plugin that is called when resources are reserved."""

    def reserve(self, cycle: Cycle, placement: Placement) -> Status:
        """Reserve resources of the plugin. Any verdict except PASS rolls the placement back."""

    def unreserve(self, cycle: Cycle, placement: Placement) -> None:
        """Release the resources of `reserve`. May be called more than once."""


@runtime_checkable
class Permit(Plugin, Protocol):
    """Plugin that approves a placement before it is added to the plan."""

    def permit(self, cycle: Cycle, placement: Placement) -> Status:
        """Approve the placement, reject it, or defer it with WAIT."""


@runtime_checkable
class PreBind(Plugin, Protocol):
    """Plugin that prepares resources of a placement before it is bound, such as a volume or a licence.

    It is called without the lock, but the control loop waits for it.
    """

    def pre_bind(self, placement: Placement) -> Status:
        """Return PASS on success. Any other verdict releases all placements of the job, which is retried later."""


@runtime_checkable
class Bind(Plugin, Protocol):
    """Plugin that binds a placement in an external system, before Seaway stores it and sends it to the cluster.

    The first Bind plugin that does not return WAIT binds the placement.
    """

    def bind(self, placement: Placement) -> Status:
        """Return PASS on success, WAIT to leave it to another plugin, or REJECT to release the job's placements."""


@runtime_checkable
class PostBind(Plugin, Protocol):
    """Plugin that is called after a placement is bound: it is stored, and Seaway sends it to its cluster."""

    def post_bind(self, placement: Placement) -> None:
        """Handle the event. Exceptions are logged and have no effect."""


@runtime_checkable
class Compiled(Plugin, Protocol):
    """Score plugin with a compiled form, which the engine uses if the rest of the profile permits it."""

    def params(self, snapshot: Snapshot) -> tuple[Any, ...]:
        """Return the policy's parameters, a named tuple that kernels are specialised for."""


EXTENSION_POINTS = (
    QueueSort,
    PreFilter,
    Filter,
    PostFilter,
    PreScore,
    Score,
    DeviceScore,
    Reserve,
    Permit,
    PreBind,
    Bind,
    PostBind,
)
"""All extension points, in the order of their calls."""
