"""Placements: where a replica goes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeviceSlice:
    """A share of one device, held by one replica.

    Attributes
    ----------
    uuid
        The device.
    memory_mib, core_milli
        What the slice books, MiB and thousandths of the device.
    mig_profile, mig_start
        For an instance on a device in MIG mode, its profile and first memory slice; else empty
        and -1.
    """

    uuid: str
    memory_mib: int
    core_milli: int
    mig_profile: str = ""
    mig_start: int = -1


@dataclass(frozen=True, slots=True)
class Placement:
    """The decision for one replica: this node, these devices."""

    job: str
    replica: int
    cluster: str
    node: str
    slices: tuple[DeviceSlice, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """One rule and how many nodes it refused.

    Attributes
    ----------
    plugin
        The filter that refused.
    reason
        Why, one clause, like ``not enough free GPU memory on any one device``.
    nodes
        How many nodes it was the first to refuse.
    clusters
        How many of them are in which cluster, by the cluster's name.
    code
        Tells reasons apart for programs, like ``NodeResources.1``: the filter, and which of its reasons, from 1; empty
        for one that no filter has.
    """

    plugin: str
    reason: str
    nodes: int
    clusters: tuple[tuple[str, int], ...] = ()
    code: str = ""


@dataclass(frozen=True, slots=True)
class Remedy:
    """The smallest change to one figure of a request that would admit it.

    Attributes
    ----------
    field
        What to change, like ``gpu_memory_mib``.
    current, required
        The figure now, and the one that would be admitted.
    cluster, node
        Where the job would go then.
    """

    field: str
    current: int
    required: int
    cluster: str
    node: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that could take the job, with what each plugin said of it.

    Attributes
    ----------
    cluster, node
        Where.
    scores
        Score of each plugin, by name, as it entered the sum.
    total
        The sum that decided.
    """

    cluster: str
    node: str
    scores: dict[str, int]
    total: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """Reasons why a replica can or cannot be placed at one time.

    Attributes
    ----------
    job
        The job's name.
    nodes
        Number of evaluated nodes.
    refusals
        Rules with the number of nodes that they exclude, most first.
    candidates
        The best nodes that fit, best first.
    remedies
        Single changes that would admit a job that fits nowhere, smallest first.
    links
        Links that violate the job's bounds, with their figures, such as ``gw-4 to gw-1: latency 31 ms, bound 20 ms``.
    data
        Location of its data, and transfer times to the candidates' clusters, one clause; empty without data.
    deferral_reason
        Why it is deferred although it fits, one clause; empty if it is not.
    message
        Message of its policy on the decision, one clause.
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

    @property
    def fits(self) -> bool:
        """True if any node could take the job."""
        return bool(self.candidates)
