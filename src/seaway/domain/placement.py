"""Placements of replicas, and explanations."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from seaway.domain.reasons import Params, Reason


@dataclass(frozen=True, slots=True)
class DeviceSlice:
    """A share of one device that one replica holds.

    Attributes
    ----------
    uuid
        UUID of the device.
    memory_mib, core_milli
        Reserved memory and cores, MiB and thousandths of the device.
    mig_profile, mig_start
        Profile and first memory slice of an instance on a device in MIG mode; otherwise empty and -1.
    """

    uuid: str
    memory_mib: int
    core_milli: int
    mig_profile: str = ""
    mig_start: int = -1


@dataclass(frozen=True, slots=True)
class Placement:
    """Node and device slices assigned to one replica.

    Attributes
    ----------
    wave
        Number of the resize that added it to its attempt; 0 for the first placement.
    leaving
        True if the replica is being removed. It holds its devices until its pod is gone.
    beside
        Replicas that its workload was created with, such as ``0-3``, if some of them were removed; empty otherwise.
    address
        Address of rank 0 of a ring for replicas in other clusters, ``host:port``; empty until it is known, and for
        other replicas. It does not change the place, so it is ignored in comparisons.
    completed
        True if all replicas of its workload have completed. It holds no resources, and its workload is not written
        again.
    """

    job: str
    replica: int
    cluster: str
    node: str
    slices: tuple[DeviceSlice, ...] = ()
    wave: int = 0
    leaving: bool = False
    beside: str = ""
    address: str = field(default="", compare=False)
    completed: bool = False

    @property
    def place(self) -> Hashable:
        """Key of the replicas of a job that share one workload: same node, devices and amounts, added together."""
        slices = sorted((each.uuid, each.memory_mib, each.core_milli, each.mig_profile) for each in self.slices)
        return self.cluster, self.node, self.wave, *slices


def ring_links(placements: Sequence[Placement], replicas: int) -> tuple[tuple[str, str], ...]:
    """Return the clusters of consecutive replicas of a ring that are in different clusters, in its order.

    Parameters
    ----------
    placements
        The placed replicas. A replica that is not placed has no links.
    replicas
        Number of all replicas; the first one follows the last one.
    """
    clusters = {each.replica: each.cluster for each in placements}
    pairs = ((here, clusters.get((replica + 1) % replicas, here)) for replica, here in clusters.items())
    return tuple(dict.fromkeys(pair for pair in pairs if pair[0] != pair[1]))


@dataclass(frozen=True, slots=True)
class Refusal:
    """A rule, and the number of nodes that it excludes.

    Attributes
    ----------
    plugin
        Name of the filter.
    reason
        Reason in one clause, such as ``not enough free GPU memory on any one device``.
    nodes
        Number of nodes that this rule was the first to exclude.
    clusters
        Number of these nodes by cluster.
    code
        Code of the reason, such as ``NodeResources.1``: the filter, and the number of its reason, from 1; or one of
        `seaway.domain.reasons`. Empty for a reason without a code.
    params
        Parameters of the reason.
    """

    plugin: str
    reason: str
    nodes: int
    clusters: tuple[tuple[str, int], ...] = ()
    code: str = ""
    params: Params = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Remedy:
    """Smallest change to one field of a job that admits the whole job, verified by a trial.

    Attributes
    ----------
    field
        Field to change, such as ``gpu_memory_mib``.
    current, required
        Current value, and value with which the job fits; 0 or empty to leave the field out.
    cluster, node
        Place of the first replica in the trial.
    replicas, nodes
        Number of replicas that were placed in the trial, and of their nodes.
    """

    field: str
    current: int | str
    required: int | str
    cluster: str
    node: str
    replicas: int = 1
    nodes: int = 1

    @property
    def where(self) -> str:
        """Place of the replicas, such as ``a/n1 and 3 other nodes``."""
        first = f"{self.cluster}/{self.node}"
        return Reason("other_nodes", place=first, count=self.nodes - 1) if self.nodes > 1 else first


@dataclass(frozen=True, slots=True)
class Candidate:
    """A feasible node with its scores.

    Attributes
    ----------
    cluster, node
        Cluster and node.
    scores
        Weighted score of each plugin, by name.
    total
        Sum of the scores.
    connection
        0 if the GPUs are connected as well as on the best node; otherwise 1.
    island_loss
        Figure that decides among equal nodes for a job that asks for connected GPUs: the node that breaks NVLink
        islands least has the lowest.
    """

    cluster: str
    node: str
    scores: dict[str, int]
    total: int
    connection: int = 0
    island_loss: int = 0


@dataclass(frozen=True, slots=True)
class Explanation:
    """Reasons why a replica can or cannot be placed at a point in time.

    Attributes
    ----------
    job
        Name of the job.
    nodes
        Number of evaluated nodes.
    refusals
        Rules with the number of nodes that they exclude, largest first.
    candidates
        The best feasible nodes, best first.
    remedies
        Single changes that make an infeasible job fit, smallest first.
    links
        Links that violate the job's bounds, with measurements, such as ``gw-4 to gw-1: latency 31 ms, bound 20 ms``.
    data
        Location of its data, and transfer times to the candidates' clusters, one clause; empty without data.
    deferral_reason
        Reason why it is deferred although it fits, one clause; empty if it is not.
    message
        Message of its policy on the decision, one clause.
    answered
        Whether any cluster has reported what it has.
    """

    job: str
    nodes: int
    refusals: tuple[Refusal, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    links: tuple[str, ...] = ()
    data: str = ""
    deferral_reason: str = ""
    message: str = ""
    answered: bool = True

    @property
    def fits(self) -> bool:
        """True if at least one node is feasible."""
        return bool(self.candidates)
