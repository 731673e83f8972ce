"""Extension points: what a plugin can be asked, in the words of the Kubernetes scheduling framework.

Plugins answer for all nodes at once, with arrays over the snapshot's nodes, shape (N,). A plugin is
any object with a `name` and the methods of one or more of these protocols; nothing must be
inherited. `seaway.testing.plugins` has the suite that every plugin should pass.

The order of one decision: PreFilter, Filter, (PostFilter when nothing is left), PreScore, Score,
Reserve, Permit; then, for each job that is placed, PreBind, Bind and PostBind.
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
        Why it decided instead of the policy, one clause; empty for the policy itself.
    """

    name: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Status:
    """A verdict and, unless it passes, the reason in one sentence without a full stop."""

    verdict: Verdict = Verdict.PASS
    reason: str = ""

    @property
    def passes(self) -> bool:
        """True if the decision goes on."""
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
        Why it was deferred; empty if it was not.
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
    """Anything that hooks into a decision."""

    @property
    def name(self) -> str:
        """Name, unique in a profile."""


@runtime_checkable
class QueueSort(Plugin, Protocol):
    """Decides who goes first."""

    def order(self, queue: JobQueue) -> NDArray[np.int64]:
        """Return the indices of the queue's jobs in the order of decision, shape (J,)."""


@runtime_checkable
class PreFilter(Plugin, Protocol):
    """Looks at the replica before any node is looked at."""

    def pre_filter(self, cycle: Cycle) -> Status:
        """Refuse the replica altogether, or note down what filters need."""


@runtime_checkable
class Filter(Plugin, Protocol):
    """Refuses nodes."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Reason why this filter refuses nodes; a code i stands for ``reasons[i - 1]``."""

    def filter(self, cycle: Cycle) -> Codes:
        """Return 0 for each node that passes and else the code of the reason, shape (N,)."""


@runtime_checkable
class PostFilter(Plugin, Protocol):
    """Is asked when no node is left, for instance to make room."""

    def post_filter(self, cycle: Cycle) -> Status:
        """Return PASS if the decision should be tried once more."""


@runtime_checkable
class PreScore(Plugin, Protocol):
    """Prepares scores, with the feasible nodes known."""

    def pre_score(self, cycle: Cycle) -> Status:
        """Note down what scores need, or refuse the replica, or hold it back (which leaves it unplaced for now)."""


@runtime_checkable
class Score(Plugin, Protocol):
    """Prefers nodes.

    In a profile with one score the highest wins as it is; among several, each is scaled to 0-100
    over the feasible nodes, times its weight. Equals go to the node with the lowest index.
    """

    def score(self, cycle: Cycle) -> Scores:
        """Score every node, shape (N,); values of infeasible nodes are ignored."""


@runtime_checkable
class DeviceScore(Plugin, Protocol):
    """Prefers devices of the chosen node. The first of a profile decides."""

    def device_keys(self, cycle: Cycle, node: int) -> Scores:
        """Rank the node's devices, shape (devices of the node,); the lowest fitting key wins."""


@runtime_checkable
class Reserve(Plugin, Protocol):
    """Plugin that is called when resources are reserved."""

    def reserve(self, cycle: Cycle, placement: Placement) -> Status:
        """Keep own books; anything but PASS takes the placement back."""

    def unreserve(self, cycle: Cycle, placement: Placement) -> None:
        """Forget what `reserve` noted; may be called more than once."""


@runtime_checkable
class Permit(Plugin, Protocol):
    """Has the last word before a placement joins the plan."""

    def permit(self, cycle: Cycle, placement: Placement) -> Status:
        """Let it pass, refuse it, or hold it back (which leaves the replica unplaced for now)."""


@runtime_checkable
class PreBind(Plugin, Protocol):
    """Prepares what a placement needs before it is bound, such as a volume or a licence.

    It is called without a lock, but the control loop waits for it.
    """

    def pre_bind(self, placement: Placement) -> Status:
        """Return PASS when done. Anything else gives all placements of the job back; it is tried again later."""


@runtime_checkable
class Bind(Plugin, Protocol):
    """Binds a placement in a system of its own, before Seaway stores it and sends it to the cluster.

    The first of a profile that does not answer WAIT has done it.
    """

    def bind(self, placement: Placement) -> Status:
        """Return PASS when done, WAIT when this is for another plugin, REFUSE to give the job's placements back."""


@runtime_checkable
class PostBind(Plugin, Protocol):
    """Is informed that a placement is bound: it is stored, and Seaway sends it to its cluster."""

    def post_bind(self, placement: Placement) -> None:
        """Take note. Exceptions are logged and change nothing."""


@runtime_checkable
class Compiled(Plugin, Protocol):
    """A score that the engine can run as machine code when nothing else in the profile objects."""

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
"""Every point at which a plugin is called, in order."""
