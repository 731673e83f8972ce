"""Jobs in the scheduler's form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from seaway.domain.device import MIG_SIZES, WHOLE_DEVICE_MILLI, DeviceMode, mig_figures
from seaway.domain.errors import RejectedError
from seaway.domain.network import NO_NEED, NetworkNeed
from seaway.domain.node import Toleration
from seaway.domain.reasons import Reason


@dataclass(frozen=True, slots=True)
class ResourceRequest:
    """Resources of one replica: of its node and of each of its devices.

    Attributes
    ----------
    cpu_milli, memory_mib
        CPU and memory of the node, thousandths of a core and MiB.
    gpus
        Number of different devices; MIG instances may share one.
    gpu_memory_mib
        Memory of each device, MiB; 0 if not given.
    gpu_memory_percent
        Share of each device's memory, 1-100; 0 if not given. Ignored if `gpu_memory_mib` is given.
    gpu_milli
        Cores of each device, thousandths; more than 1,000 counts as 1,000; 0 reserves none.
    mig
        Name of the MIG profile of each instance, such as ``3g.40gb``, which sets its memory and cores; empty for any
        device.

    Notes
    -----
    A request without a memory field requests the whole memory of a device and, by default, all of its cores, as in the
    vGPU layer's webhook.
    """

    cpu_milli: int = 0
    memory_mib: int = 0
    gpus: int = 0
    gpu_memory_mib: int = 0
    gpu_memory_percent: int = 0
    gpu_milli: int = 0
    mig: str = ""

    def __post_init__(self) -> None:
        """Reject negative figures, slices without a device, and amounts beside a MIG profile."""
        for name in ("cpu_milli", "memory_mib", "gpus", "gpu_memory_mib", "gpu_memory_percent", "gpu_milli"):
            if getattr(self, name) < 0:
                raise RejectedError(Reason("may_not_be_negative", name=name, value=getattr(self, name)))
        if self.gpu_memory_percent > 100:
            raise RejectedError(Reason("percent_beyond_device", value=self.gpu_memory_percent))
        if not self.gpus and (self.gpu_memory_mib or self.gpu_memory_percent or self.gpu_milli):
            raise RejectedError(Reason("slices_without_gpu"))
        if self.mig and (not self.gpus or self.gpu_memory_mib or self.gpu_memory_percent or self.gpu_milli):
            raise RejectedError(Reason("mig_sets_amounts", profile=self.mig))

    def filled(self) -> ResourceRequest:
        """Return the request with the defaults of the vGPU layer.

        A MIG profile is replaced by its nominal share of the memory, without cores: both depend on the device.
        """
        if not self.gpus:
            return self
        if self.mig:
            size = MIG_SIZES.get(mig_figures(self.mig)[0], max(MIG_SIZES.values()))
            return replace(self, mig="", gpu_memory_percent=100 * size // max(MIG_SIZES.values()))
        by_size = self.gpu_memory_mib > 0
        percent = 0 if by_size else self.gpu_memory_percent or 100
        whole = not by_size and percent == 100
        cores = self.gpu_milli or (WHOLE_DEVICE_MILLI if whole else 0)
        return ResourceRequest(
            self.cpu_milli,
            self.memory_mib,
            self.gpus,
            self.gpu_memory_mib,
            percent,
            min(cores, WHOLE_DEVICE_MILLI),
        )


class GpuTopology(Enum):
    """Connection between the devices of a replica."""

    ANY = ""
    BEST_EFFORT = "best-effort"
    """One NVLink island if possible, else one PCIe switch, else one NUMA node, else any devices."""
    SAME_ISLAND = "same-island"
    """All devices must be in one NVLink island."""
    SAME_SWITCH = "same-switch"
    """All devices must be below one PCIe switch. Users cannot set it: it is a step of `BEST_EFFORT`."""


@dataclass(frozen=True, slots=True)
class DeviceRules:
    """Allowed devices of a replica.

    Attributes
    ----------
    models
        Names of allowed models, see `seaway.domain.gpu_models.covers`; empty allows any.
    use_types, avoid_types
        Names of allowed and excluded models (HAMi's use-gputype and nouse-gputype).
    use_uuids, avoid_uuids
        Allowed and excluded devices.
    vendors
        Allowed vendors; empty allows any.
    modes
        Allowed sharing modes; empty allows any.
    same_numa
        Whether all devices must be on one NUMA node.
    exclusive
        Whether the devices must be idle (HAMi's mutex policy).
    topology
        Connection between the devices of a replica.
    slice_nodes
        Number of nodes of allowed multi-host TPU slices, which the job takes whole; 1 for none. Devices outside of such
        slices are always allowed. Users cannot set it: a `Job` derives it.
    excluded
        Products that it may not use now, case-folded and whole. Users cannot set it: limits of models do.
    """

    models: frozenset[str] = frozenset()
    use_types: tuple[str, ...] = ()
    avoid_types: tuple[str, ...] = ()
    use_uuids: frozenset[str] = frozenset()
    avoid_uuids: frozenset[str] = frozenset()
    vendors: frozenset[str] = frozenset()
    modes: frozenset[DeviceMode] = frozenset()
    same_numa: bool = False
    exclusive: bool = False
    topology: GpuTopology = GpuTopology.ANY
    slice_nodes: int = 1
    excluded: frozenset[str] = frozenset()

    @property
    def of_tpus(self) -> bool:
        """True if they name TPUs."""
        names = (*self.vendors, *self.models, *self.use_types)
        return any(each.casefold().startswith(TPU.casefold()) for each in names)


TPU = "TPU"
"""Vendor of TPUs, with which the names of their models begin."""

OTHER_COPY = "*"
"""Name of a node in `NodeRules.avoid` for the whole cluster of the other copy of a service with a standby."""


@dataclass(frozen=True, slots=True)
class NodeRules:
    """Allowed nodes and clusters of a replica.

    Attributes
    ----------
    node_labels
        Required labels of a node (Kubernetes' nodeSelector).
    tolerations
        Tolerated taints.
    clusters
        Allowed clusters by name; empty allows any.
    regions
        Allowed regions; empty allows any.
    hardware
        Special hardware that the cluster must have.
    cluster_labels
        Required labels of the cluster.
    max_microprice
        Maximum price of a GPU for an hour, millionths of the currency's unit; None for no maximum.
    avoid
        Excluded nodes, by cluster and name; an empty name, or `OTHER_COPY`, means the whole cluster. Users cannot set
        it: it records where the job was rejected, and where the other copy of a service with a standby is.
    only
        Nodes to which an operator moves the job, by cluster and name; empty allows any. Users cannot set it.
    pool
        Clusters of the pool of the job's queue, for reasons only: `clusters` is already limited to them. Empty for all.
    """

    node_labels: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    clusters: frozenset[str] = frozenset()
    regions: frozenset[str] = frozenset()
    hardware: frozenset[str] = frozenset()
    avoid: frozenset[tuple[str, str]] = frozenset()
    only: frozenset[tuple[str, str]] = frozenset()
    cluster_labels: tuple[tuple[str, str], ...] = ()
    max_microprice: int | None = None
    pool: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Demand:
    """All requirements on the placement of one replica.

    Attributes
    ----------
    request
        Resources.
    devices, nodes
        Allowed devices, nodes and clusters.
    gateway
        Name of the user's gateway; empty if the job has no bounds on its network.
    network
        Bounds on the link from the user's gateway to the cluster.
    """

    request: ResourceRequest
    devices: DeviceRules = DeviceRules()
    nodes: NodeRules = NodeRules()
    gateway: str = ""
    network: NetworkNeed = NO_NEED

    def __post_init__(self) -> None:
        """Reject bounds on a link without a user's gateway."""
        if self.network.any and not self.gateway:
            raise RejectedError(Reason("bounds_without_gateway"))


@dataclass(frozen=True, slots=True)
class DataSource:
    """Location of the data of a job.

    Attributes
    ----------
    location
        Name of a cluster, a gateway or a region; empty for none.
    size_mib
        Amount of data, MiB.
    others
        Outputs of its predecessors.
    """

    location: str = ""
    size_mib: int = 0
    others: tuple[DataSource, ...] = ()

    def __post_init__(self) -> None:
        """Reject a negative size, and a size without a location."""
        if self.size_mib < 0 or (self.size_mib and not self.location):
            raise RejectedError(Reason("data_place"))

    @property
    def places(self) -> tuple[DataSource, ...]:
        """All places with data; none without data."""
        return tuple(each for each in (self, *self.others) if each.location)


NO_DATA = DataSource()
"""The value for jobs without data."""


@dataclass(frozen=True, slots=True)
class Job:
    """A unit of work: one or more equal replicas.

    Attributes
    ----------
    name
        Name, unique among live jobs.
    demand
        Demand of each replica.
    replicas
        Number of replicas that run in parallel.
    gang
        Whether all replicas must be placed together.
    single_cluster
        Whether all replicas of a gang must be in one cluster.
    between_replicas
        Bounds on the links between the clusters of the replicas.
    priority
        Jobs with higher priority are placed first.
    tenant, queue
        Tenant and queue of the job.
    arrives_s, expected_duration_s
        Time of submission and expected duration, seconds; the duration is None if unknown or without an end.
    data
        Location of its data. Placement prefers clusters close to it.
    partial
        Whether it starts as soon as one replica fits, with as many replicas as fit.
    ring
        Whether the replicas of a gang form a ring, in which each sends to the next one. `between_replicas` then applies
        to the links between consecutive replicas only.
    max_replicas
        Maximum number of replicas of an elastic job, which starts with `replicas`; 0 for other jobs. Only replays use
        it.
    """

    name: str
    demand: Demand
    replicas: int = 1
    gang: bool = False
    between_replicas: NetworkNeed = NO_NEED
    priority: int = 0
    tenant: str = "default"
    queue: str = "default"
    arrives_s: int = 0
    expected_duration_s: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    single_cluster: bool = False
    data: DataSource = NO_DATA
    partial: bool = False
    ring: bool = False
    max_replicas: int = 0

    def __post_init__(self) -> None:
        """Reject a job without replicas, with a negative time, or in a single cluster without being a gang."""
        if self.single_cluster and not self.gang:
            raise RejectedError(Reason("cluster_gang", name=self.name))
        if self.ring and (not self.gang or self.single_cluster):
            raise RejectedError(Reason("ring_gang", name=self.name))
        if self.replicas < 1:
            raise RejectedError(Reason("replicas_too_few", name=self.name, replicas=self.replicas))
        if self.expected_duration_s is not None and self.expected_duration_s < 0:
            raise RejectedError(Reason("ends_before_begin", name=self.name))
        devices = self.demand.devices
        nodes = self.replicas if self.gang and self.demand.request.gpus and devices.of_tpus else 1
        if devices.slice_nodes != nodes:
            changed = replace(self.demand, devices=replace(devices, slice_nodes=nodes))
            object.__setattr__(self, "demand", changed)

    @property
    def elastic(self) -> bool:
        """True if it can have more replicas than it starts with."""
        return self.max_replicas > self.replicas
