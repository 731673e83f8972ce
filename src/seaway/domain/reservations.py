"""Advance reservations: capacity for a tenant or queue at a later time, and maintenance windows."""

from __future__ import annotations

from dataclasses import dataclass

from seaway.domain.errors import RejectedError
from seaway.domain.reasons import Reason, time_param
from seaway.domain.tenancy import require_name
from seaway.domain.units import LARGEST

MAX_DURATION_NS = 366 * 86_400 * 10**9
"""Maximum duration of a reservation, nanoseconds."""

LATEST_NS = 2**62
"""Time before which every reservation ends, nanoseconds since 1970."""


@dataclass(frozen=True, slots=True)
class AdvanceReservation:
    """Capacity that only some jobs may use between two times. Without a tenant and a queue it is maintenance.

    Attributes
    ----------
    starts_ns, ends_ns
        Begin and end by the wall clock.
    tenant, queue
        Holders: the jobs of this tenant and of this queue; empty for any.
    gpus
        Number of whole GPUs; 0 for all that `clusters` or `nodes` have.
    gpu_model
        Product name of the GPUs; empty for any.
    clusters
        Clusters; empty for all.
    nodes
        Nodes of the only cluster; empty for all.
    drain
        Whether maintenance moves running jobs elsewhere when it begins.
    """

    name: str
    starts_ns: int
    ends_ns: int
    tenant: str = ""
    queue: str = ""
    gpus: int = 0
    gpu_model: str = ""
    clusters: frozenset[str] = frozenset()
    nodes: frozenset[str] = frozenset()
    drain: bool = False
    description: str = ""

    def __post_init__(self) -> None:
        """Reject invalid times and combinations.

        Raises
        ------
        RejectedError
            With the field.
        """
        require_name("reservation", self.name)
        wrong = {
            "must be after the start": ("ends", self.ends_ns <= self.starts_ns),
            "must be at most 366 days after the start": ("ends", self.ends_ns - self.starts_ns > MAX_DURATION_NS),
            "is too far in the future": ("ends", self.ends_ns >= LATEST_NS),
            f"is {self.gpus}, but must be between 0 and {LARGEST}": ("gpus", not 0 <= self.gpus <= LARGEST),
            "needs a tenant or a queue; maintenance is of whole clusters or nodes": (
                "gpus",
                self.maintenance and bool(self.gpus),
            ),
            "needs a number of GPUs, in `gpus`": ("gpu_model", bool(self.gpu_model) and not self.gpus),
            "name a cluster, or the number of GPUs to reserve in `gpus`": (
                "clusters",
                not self.gpus and not self.clusters,
            ),
            "are nodes of one cluster: name that cluster only": ("nodes", bool(self.nodes) and len(self.clusters) != 1),
            "cannot be combined with a number of GPUs": ("nodes", bool(self.nodes and self.gpus)),
            "is for maintenance, without a tenant and a queue": ("drain", self.drain and not self.maintenance),
        }
        for said, (where, applies) in wrong.items():
            if applies:
                raise RejectedError(said, where=where)

    @property
    def maintenance(self) -> bool:
        """True if no job may use the capacity."""
        return not (self.tenant or self.queue)

    @property
    def places(self) -> frozenset[tuple[str, str]]:
        """Reserved clusters and nodes, as cluster and node; the node is empty for a whole cluster. None with `gpus`."""
        if self.gpus:
            return frozenset()
        return frozenset((cluster, node) for cluster in self.clusters for node in self.nodes or ("",))

    @property
    def summary(self) -> Reason:
        """Description of what is reserved, for whom and when."""
        places = ", ".join(f"{cluster}/{node}" if node else cluster for cluster, node in sorted(self.places))
        gpus = Reason("gpus", count=self.gpus)
        if self.gpu_model:
            gpus = Reason("gpus_of_model", count=self.gpus, model=self.gpu_model)
        what = places or gpus
        whom = {name: each for name, each in (("tenant", self.tenant), ("queue", self.queue)) if each}
        code = f"reserved_for_{'_in_'.join(whom) or 'no_job'}"
        times = {"begin": time_param(self.starts_ns), "end": time_param(self.ends_ns)}
        return Reason(code, what=what, **whom, **times)

    def is_held_by(self, tenant: str, queue: str) -> bool:
        """Report whether jobs of a tenant in a queue may use it."""
        return not self.maintenance and self.tenant in ("", tenant) and self.queue in ("", queue)

    def overlaps(self, other: AdvanceReservation) -> bool:
        """Report whether two reservations share some time."""
        return self.starts_ns < other.ends_ns and other.starts_ns < self.ends_ns
