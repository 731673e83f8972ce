"""A job as people write it, in YAML, JSON or Python, and its way to what Seaway works with."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from seaway.domain.device import DeviceMode
from seaway.domain.errors import RejectedError
from seaway.domain.job import NO_DATA, DataPlace, Demand, DeviceRules, NodeRules, ResourceRequest
from seaway.domain.job_spec import JobSpec, Run
from seaway.domain.network import NO_NEED, NetworkNeed, OnBreach
from seaway.domain.node import TaintEffect, Toleration
from seaway.domain.tenancy import DEFAULT
from seaway.wire import fields
from seaway.wire.fields import Labels, Limit, Name, NameOrNone, ReferenceOrNone, Time, no_pairs
from seaway.wire.job_parts import DataIn, NetworkIn, PlacementIn, ResourcesIn, RunIn, UserNetworkIn
from seaway.wire.job_text import ANY_DEVICE, ANY_NODE, NOTHING, job_text
from seaway.wire.message import Incoming

MOST_REPLICAS = 10_000
MOST_PRIORITY = 1_000_000_000
MOST_RETRIES = 1000

EXAMPLES: list[dict[str, Any]] = [
    {
        "name": "train",
        "resources": {"cpu": 4, "memory": "32GB", "gpus": 1, "gpu_memory": "24GB", "gpu_cores": "50%"},
        "run": {"image": "pytorch:2.9", "command": ["python", "train.py"]},
        "runs": "10m",
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
    """What you call it. Several jobs may have one name; their ids tell them apart."""
    tenant: NameOrNone = ""
    """Whose it is; left out, your own tenant's, or `default` where you have none."""
    queue: Name = DEFAULT
    """Where it waits."""
    priority: Annotated[int, Field(ge=-MOST_PRIORITY, le=MOST_PRIORITY)] = 0
    """Higher goes first."""
    gateway: ReferenceOrNone = ""
    """The gateway that you reach clusters from; bounds on the network are measured there."""
    replicas: Annotated[int, Field(ge=1, le=MOST_REPLICAS)] = 1
    """How many copies run at once."""
    gang: bool = False
    """Whether all replicas have to start together or none."""
    template: Name = "job"
    """Which kind of workload it becomes."""
    resources: ResourcesIn = ResourcesIn()
    """What each replica needs."""
    network: UserNetworkIn = UserNetworkIn()
    """Bounds on the link from your gateway to the cluster."""
    between_replicas: NetworkIn = NetworkIn()
    """Bounds on the links between the clusters that replicas are spread over."""
    placement: PlacementIn = PlacementIn()
    """Where replicas may go."""
    data: DataIn = DataIn()
    """Where its data is. It goes to clusters that the data reaches soon, if they have room."""
    run: RunIn = RunIn()
    """What each replica runs."""
    runs: Time | None = None
    """How long you expect it to run. A short job may be let past one that waits, if it will be gone in time."""
    time_limit: Limit | None = None
    """After how long it is stopped; never when left out."""
    retries: Annotated[int, Field(ge=0, le=MOST_RETRIES)] = 0
    """How often it is started again after it failed by itself; a deployment always is."""
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
            runs_s=None if self.runs is None else fields.seconds(self.runs),
            time_limit_s=None if self.time_limit is None else fields.limit_s(self.time_limit),
            retries=self.retries,
            labels=dict(self.labels),
            on_breach=OnBreach(self.network.on_breach),
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


def _data(given: DataIn) -> DataPlace:
    if not given.model_fields_set:
        return NO_DATA
    size_mib = fields.memory_mib(given.size)
    if size_mib and not given.location:
        raise RejectedError("is needed: where is the data?", where="data.location")
    return DataPlace(given.location, size_mib)


def _run(given: RunIn) -> Run:
    if not given.model_fields_set:
        return NOTHING
    return Run(given.image, tuple(given.command), tuple(given.args), tuple(given.env.items()), tuple(given.ports))
