"""A job as people write it, in YAML, JSON or Python, and its way to what Seaway works with."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from seaway.domain.device import DeviceMode
from seaway.domain.errors import RejectedError
from seaway.domain.job import NO_DATA, DataSource, Demand, DeviceRules, NodeRules, ResourceRequest
from seaway.domain.job_spec import JobSpec, Run
from seaway.domain.network import NO_NEED, NetworkNeed, OnViolation
from seaway.domain.node import TaintEffect, Toleration
from seaway.domain.tenancy import DEFAULT
from seaway.wire import fields
from seaway.wire.fields import (
    Bound,
    Cores,
    Cpu,
    GpuMemory,
    LabelKey,
    Labels,
    LabelValue,
    Limit,
    Loss,
    Memory,
    Name,
    NameOrNone,
    OneOrMore,
    Rate,
    ReferenceOrNone,
    References,
    Text,
    Time,
    Variable,
    no_entries,
    no_pairs,
    several,
)
from seaway.wire.job_text import ANY_DEVICE, ANY_NODE, NOTHING, job_text
from seaway.wire.message import Incoming

MAX_GPUS = 1024
"""Devices that one replica may ask for; no node has more."""

Mode = Literal["hami-core", "mig", "mps", "whole", "shared"]
Modes = Annotated[list[Mode], Field(max_length=5), BeforeValidator(several, json_schema_input_type=Mode | list[Mode])]
Effect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class ResourcesIn(Incoming):
    """Resources of each replica, of its node and of each of its devices."""

    cpu: Cpu = 0
    """CPU cores of the node."""
    memory: Memory = 0
    """Memory of the node, with its unit."""
    gpus: Annotated[int, Field(ge=0, le=MAX_GPUS)] = 0
    """Number of devices. A slice does not span devices: each device provides the same amounts."""
    gpu_memory: GpuMemory | None = None
    """Memory of each device, with its unit or as a share; all of it when left out."""
    gpu_cores: Cores | None = None
    """Cores of each device, as a share; left out, none are reserved, or all where all the memory is taken."""
    gpu_model: OneOrMore = no_entries()
    """Accepted product names, whole and case-insensitive; any when left out."""
    gpu_vendor: OneOrMore = no_entries()
    """Accepted vendors, like NVIDIA; any when left out."""
    gpu_use_types: References = no_entries()
    """Parts of product names, one of which the device's has to contain."""
    gpu_avoid_types: References = no_entries()
    """Parts of product names that the device's may not contain."""
    gpu_uuids: References = no_entries()
    """The only devices to use."""
    gpu_avoid_uuids: References = no_entries()
    """Devices to avoid."""
    gpu_mode: Modes = no_entries()
    """Accepted sharing modes; any when left out. ``whole`` is none, ``shared`` by turns and unbounded."""
    same_numa: bool = False
    """True if all devices must be on one NUMA node."""
    exclusive: bool = False
    """True if the devices must be idle."""


class NetworkIn(Incoming):
    """Bounds on a link; what is left out sets none."""

    max_latency: Bound | None = None
    """Largest round-trip time."""
    max_jitter: Bound | None = None
    """Largest spread of the round-trip time."""
    max_loss: Loss | None = None
    """Largest share of lost packets."""
    min_bandwidth: Rate = 0
    """Bandwidth that the job takes while it runs; a figure alone is Mbit/s."""


class UserNetworkIn(NetworkIn):
    """Bounds on the link from the user's gateway, and what is done when a link breaks a bound of the job."""

    on_violation: Literal["report", "move"] = "report"
    """Action if a running job's links violate its bounds for too long: report it, or move the job."""


class DataIn(Incoming):
    """Location of the job's data: a preference, not a rule."""

    location: ReferenceOrNone = ""
    """A cluster, a gateway or a region."""
    size: Memory = 0
    """Amount of data, with its unit."""


class TolerationIn(Incoming):
    """Leave to run on nodes with a taint, as in Kubernetes."""

    key: Annotated[str, Field(max_length=317)] = ""
    """The taint's key; empty bears every taint."""
    value: LabelValue | None = None
    """The taint's value; any when left out."""
    effect: Effect | None = None
    """The taint's effect; any when left out."""


class PlacementIn(Incoming):
    """Constraints on the placement of replicas. Empty fields do not constrain it."""

    clusters: References = no_entries()
    """Clusters by name."""
    regions: References = no_entries()
    """Regions."""
    hardware: References = no_entries()
    """Special hardware that the cluster must have, all of it."""
    node_labels: Annotated[dict[LabelKey, LabelValue], Field(max_length=64)] = no_pairs()
    """Labels that the node has to carry."""
    tolerations: Annotated[list[TolerationIn], Field(max_length=64)] = no_entries()
    """Taints that the job bears."""


class RunIn(Incoming):
    """Program of each replica."""

    image: ReferenceOrNone = ""
    """Container image."""
    command: Annotated[list[Text], Field(max_length=256)] = no_entries()
    """Instead of the image's entry point."""
    args: Annotated[list[Text], Field(max_length=256)] = no_entries()
    """Instead of the image's arguments."""
    env: Annotated[dict[Variable, Text], Field(max_length=256)] = no_pairs()
    """Environment variables."""
    ports: Annotated[list[Annotated[int, Field(ge=1, le=65_535)]], Field(max_length=64)] = no_entries()
    """TCP ports that it listens on."""


MAX_REPLICAS = 10_000
MAX_PRIORITY = 1_000_000_000
MAX_RETRIES = 1000

EXAMPLES: list[dict[str, Any]] = [
    {
        "name": "train",
        "resources": {"cpu": 4, "memory": "32GB", "gpus": 1, "gpu_memory": "24GB", "gpu_cores": "50%"},
        "run": {"image": "pytorch:2.9", "command": ["python", "train.py"]},
        "expected_duration": "10m",
    },
    {
        "name": "serve",
        "gateway": "site-berlin",
        "replicas": 2,
        "template": "deployment",
        "resources": {"cpu": "500m", "memory": "8Gi", "gpus": 1, "gpu_memory": "50%"},
        "network": {"max_latency": "20ms", "min_bandwidth": "1Gbps"},
        "run": {"image": "server:1", "ports": [8080]},
    },
]


class JobIn(Incoming):
    """A job: one or more equal replicas."""

    model_config = ConfigDict(json_schema_extra={"examples": EXAMPLES})  # type: ignore[dict-item]

    name: Name
    """Name of the job. Several jobs may have one name; their ids tell them apart."""
    tenant: NameOrNone = ""
    """Tenant of the job. Default: your own tenant, or `default` if you have none."""
    queue: Name = DEFAULT
    """Queue of the job."""
    priority: Annotated[int, Field(ge=-MAX_PRIORITY, le=MAX_PRIORITY)] = 0
    """Priority; higher goes first."""
    gateway: ReferenceOrNone = ""
    """The gateway that you reach clusters from; bounds on the network are measured there."""
    replicas: Annotated[int, Field(ge=1, le=MAX_REPLICAS)] = 1
    """Number of replicas that run at the same time."""
    gang: bool = False
    """True if all replicas must start together or none."""
    template: Name = "job"
    """Kind of workload."""
    resources: ResourcesIn = ResourcesIn()
    """Resources of each replica."""
    network: UserNetworkIn = UserNetworkIn()
    """Bounds on the link from your gateway to the cluster."""
    between_replicas: NetworkIn = NetworkIn()
    """Bounds on the links between the clusters that replicas are spread over."""
    placement: PlacementIn = PlacementIn()
    """Constraints on the placement of replicas."""
    data: DataIn = DataIn()
    """Location of its data. Clusters near the data are preferred if they have capacity."""
    run: RunIn = RunIn()
    """Program of each replica."""
    expected_duration: Time | None = None
    """Expected duration. A short job may start before a waiting job if it ends in time."""
    time_limit: Limit | None = None
    """After how long it is stopped; never when left out."""
    retries: Annotated[int, Field(ge=0, le=MAX_RETRIES)] = 0
    """Maximum number of restarts after the job failed by itself. A deployment always restarts."""
    labels: Labels = no_pairs()
    """Passed on to the workload."""

    @classmethod
    def of(cls, spec: JobSpec) -> JobIn:
        """Write down a job that Seaway works with; reading it gives the same again."""
        return cls.model_validate(job_text(spec))

    def spec(self, own_tenant: str = DEFAULT) -> JobSpec:
        """Return what Seaway works with.

        Parameters
        ----------
        own_tenant
            Whose the job is when it does not say so.

        Raises
        ------
        RejectedError
            When fields do not go together.
        """
        request, network = _request(self.resources), _need(self.network)
        if network.any and not self.gateway:
            raise RejectedError("is needed, for bounds on the network are measured from it", where="gateway")
        return JobSpec(
            name=self.name,
            demand=Demand(request, _device_rules(self.resources), _node_rules(self.placement), self.gateway, network),
            replicas=self.replicas,
            gang=self.gang,
            between_replicas=_need(self.between_replicas),
            priority=self.priority,
            tenant=self.tenant or own_tenant,
            queue=self.queue,
            template=self.template,
            run=_run(self.run),
            expected_duration_s=None if self.expected_duration is None else fields.seconds(self.expected_duration),
            time_limit_s=None if self.time_limit is None else fields.limit_s(self.time_limit),
            retries=self.retries,
            labels=dict(self.labels),
            on_violation=OnViolation(self.network.on_violation),
            data=_data(self.data),
        )


class JobPatch(BaseModel):
    """Any fields of a job; null takes one back to its default."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"examples": [{"priority": 10}, {"labels": None}]})


def _request(given: ResourcesIn) -> ResourceRequest:
    if not given.gpus:
        for name in ("gpu_memory", "gpu_cores"):
            if getattr(given, name) is not None:
                raise RejectedError(
                    f"is given, but gpus is 0: set gpus, or leave {name} out", where=f"resources.{name}"
                )
    memory_mib, percent = (0, 0) if given.gpu_memory is None else fields.gpu_memory(given.gpu_memory)
    return ResourceRequest(
        fields.cpu_milli(given.cpu),
        fields.memory_mib(given.memory),
        given.gpus,
        memory_mib,
        percent,
        0 if given.gpu_cores is None else fields.gpu_milli(given.gpu_cores),
    )


_AMOUNTS = frozenset({"cpu", "memory", "gpus", "gpu_memory", "gpu_cores"})
"""Fields of `ResourcesIn` that say how much; the others say of which devices."""


def _device_rules(given: ResourcesIn) -> DeviceRules:
    if given.model_fields_set <= _AMOUNTS:
        return ANY_DEVICE
    rules = DeviceRules(
        models=frozenset(given.gpu_model),
        use_types=tuple(given.gpu_use_types),
        avoid_types=tuple(given.gpu_avoid_types),
        use_uuids=frozenset(given.gpu_uuids),
        avoid_uuids=frozenset(given.gpu_avoid_uuids),
        vendors=frozenset(given.gpu_vendor),
        modes=frozenset(map(DeviceMode, given.gpu_mode)),
        same_numa=given.same_numa,
        exclusive=given.exclusive,
    )
    return ANY_DEVICE if rules == ANY_DEVICE else rules


def _node_rules(given: PlacementIn) -> NodeRules:
    if not given.model_fields_set:
        return ANY_NODE
    return NodeRules(
        node_labels=tuple(sorted(given.node_labels.items())),
        tolerations=tuple(
            Toleration(each.key, each.value, None if each.effect is None else TaintEffect(each.effect))
            for each in given.tolerations
        ),
        clusters=frozenset(given.clusters),
        regions=frozenset(given.regions),
        hardware=frozenset(given.hardware),
    )


def _need(given: NetworkIn) -> NetworkNeed:
    if not given.model_fields_set:
        return NO_NEED
    return NetworkNeed(
        0 if given.max_latency is None else fields.bound_ns(given.max_latency),
        0 if given.max_jitter is None else fields.bound_ns(given.max_jitter),
        0 if given.max_loss is None else fields.bound_ppm(given.max_loss),
        fields.rate_mbps(given.min_bandwidth),
    )


def _data(given: DataIn) -> DataSource:
    if not given.model_fields_set:
        return NO_DATA
    size_mib = fields.memory_mib(given.size)
    if size_mib and not given.location:
        raise RejectedError("is needed: where is the data?", where="data.location")
    return DataSource(given.location, size_mib)


def _run(given: RunIn) -> Run:
    if not given.model_fields_set:
        return NOTHING
    return Run(given.image, tuple(given.command), tuple(given.args), tuple(given.env.items()), tuple(given.ports))
