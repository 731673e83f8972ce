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
        Name of their model, such as A100; empty for any.
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
        if not 0 <= self.gpus <= LARGEST:
            raise RejectedError(Reason("not_between", value=self.gpus, least=0, most=LARGEST), where="gpus")
        wrong = {
            "after_start": ("ends", self.ends_ns <= self.starts_ns),
            "days_after_start": ("ends", self.ends_ns - self.starts_ns > MAX_DURATION_NS),
            "too_far_in_future": ("ends", self.ends_ns >= LATEST_NS),
            "gpus_need_tenant": ("gpus", self.maintenance and bool(self.gpus)),
            "model_needs_gpus": ("gpu_model", bool(self.gpu_model) and not self.gpus),
            "name_cluster_or_gpus": ("clusters", not self.gpus and not self.clusters),
            "nodes_of_one_cluster": ("nodes", bool(self.nodes) and len(self.clusters) != 1),
            "not_with_gpus": ("nodes", bool(self.nodes and self.gpus)),
            "drain_is_maintenance": ("drain", self.drain and not self.maintenance),
        }
        for code, (where, applies) in wrong.items():
            if applies:
                raise RejectedError(Reason(code), where=where)

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
