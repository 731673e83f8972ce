"""Jobs as users write them in YAML, JSON or Python, and their conversion to `JobSpec`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

import orjson
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError, PydanticKnownError

from seaway.domain.arrays import TaskArray, task_array
from seaway.domain.dependencies import After, When
from seaway.domain.device import DeviceMode
from seaway.domain.errors import RejectedError
from seaway.domain.job import NO_DATA, DataSource, Demand, DeviceRules, GpuTopology, NodeRules, ResourceRequest
from seaway.domain.job_spec import NOT_EXPOSED, Checkpoint, Expose, JobSpec, ServiceType, Standby, StandbyMode
from seaway.domain.network import NO_NEED, NetworkNeed, OnViolation
from seaway.domain.node import TaintEffect, Toleration
from seaway.domain.notifications import DEFAULT_OCCASIONS, Notify, Occasion
from seaway.domain.numbers import whole_number
from seaway.domain.pod import program_place
from seaway.domain.reasons import Reason, both
from seaway.domain.runtime import (
    NO_RUNTIME,
    READ_ONLY,
    Container,
    ContainerPort,
    LimitWarning,
    PortProtocol,
    RestartPolicy,
    Run,
    Runtime,
    Volume,
    VolumeKind,
)
from seaway.domain.scaling import MAX_TRIGGERS
from seaway.domain.tenancy import DEFAULT
from seaway.wire import fields
from seaway.wire.facts import Price, microprice
from seaway.wire.fields import (
    ArchiveOrNone,
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
    Occasions,
    OneOrMore,
    Rate,
    Reference,
    ReferenceOrNone,
    References,
    Text,
    Time,
    Variable,
    mig_name,
    no_entries,
    no_pairs,
    several,
)
from seaway.wire.job_text import ANY_DEVICE, ANY_NODE, NOTHING, job_text
from seaway.wire.message import Incoming
from seaway.wire.scaling import ScaleIn

MAX_GPUS = 1024
"""Maximum number of devices of one replica; no node has more."""

MigName = Annotated[
    str, Field(max_length=32, examples=["3g.40gb", "1g.10gb+me"]), BeforeValidator(mig_name, json_schema_input_type=str)
]
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
    """Number of devices. Each device provides the same amounts; a slice does not span devices."""
    gpu_memory: GpuMemory | None = None
    """Memory of each device, with its unit or as a share. Default: all memory."""
    gpu_cores: Cores | None = None
    """Cores of each device, as a share. Default: none reserved, or all cores if the job gets all memory."""
    mig: MigName = ""
    """MIG profile of each instance, such as 3g.40gb, instead of memory and cores; `gpus` is the number of instances."""
    gpu_model: OneOrMore = no_entries()
    """Accepted models, by names such as A100 that cover products. Default: any."""
    gpu_vendor: OneOrMore = no_entries()
    """Accepted vendors, such as NVIDIA. Default: any."""
    gpu_use_types: References = no_entries()
    """Names of models, of which one must cover the device, as in `gpu_model`."""
    gpu_avoid_types: References = no_entries()
    """Names of models that must not cover the device."""
    gpu_uuids: References = no_entries()
    """UUIDs of the only devices to use."""
    gpu_avoid_uuids: References = no_entries()
    """UUIDs of devices to avoid."""
    gpu_mode: Modes = no_entries()
    """Accepted sharing modes.

    Default: any. ``whole`` means no sharing; ``shared`` means time-slicing without limits.
    """
    same_numa: bool = False
    """True if all devices must be on one NUMA node."""
    exclusive: bool = False
    """True if the devices must be idle."""
    gpu_topology: Literal["same-island", "best-effort"] | None = None
    """Connection between the devices of a replica: all in one NVLink island, or as close as possible. Default: any."""
    shm_size: Memory = 0
    """Maximum size of the shared memory in `/dev/shm`, with its unit. It is part of `memory`. Default: that of the
    template, which is 64 MiB except for `torchrun`.
    """


class NetworkIn(Incoming):
    """Bounds on a link. Omitted fields set no bound."""

    max_latency: Bound | None = None
    """Maximum round-trip time."""
    max_jitter: Bound | None = None
    """Maximum variation of the round-trip time."""
    max_loss: Loss | None = None
    """Maximum share of lost packets."""
    min_bandwidth: Rate = 0
    """Bandwidth reserved while the job runs; a plain number is Mbit/s."""


class UserNetworkIn(NetworkIn):
    """Bounds on the link from the user's gateway, and the action if any bound of the job is violated."""

    on_violation: Literal["report", "move"] = "report"
    """Action if a running job's links violate its bounds for too long: report the violation, or move the job."""


class DataIn(Incoming):
    """Location of the job's data: a preference, not a constraint."""

    location: ReferenceOrNone = ""
    """Name of a cluster, a gateway or a region."""
    size: Memory = 0
    """Amount of data, with its unit."""
    output: Memory = 0
    """Amount of data that the job leaves in its clusters for the jobs that come after it, with its unit."""


def predecessors(value: object) -> object:
    """Wrap a single predecessor in a list, and IDs or names of jobs in mappings; return other values unchanged."""
    listed = [value] if isinstance(value, str | dict) else value
    return [{"job": each} if isinstance(each, str) else each for each in listed] if isinstance(listed, list) else listed


class AfterIn(Incoming):
    """A predecessor, and the condition on it."""

    job: Reference
    """ID or name of a job. A job of the same request takes precedence."""
    when: Literal["succeeded", "finished", "started", "failed"] = "succeeded"
    """Condition under which the job may start: the predecessor completed, ended in any way, ran, or failed."""


class TolerationIn(Incoming):
    """A tolerated taint, as in Kubernetes."""

    key: Annotated[str, Field(max_length=317)] = ""
    """Key of the taint; empty tolerates every taint."""
    value: LabelValue | None = None
    """Value of the taint. Default: any."""
    effect: Effect | None = None
    """Effect of the taint. Default: any."""


class PlacementIn(Incoming):
    """Constraints on the placement of replicas. Empty fields set no constraint."""

    clusters: References = no_entries()
    """Names of allowed clusters."""
    regions: References = no_entries()
    """Allowed regions."""
    hardware: References = no_entries()
    """Special hardware that the cluster must have; all entries are required."""
    cluster_labels: Annotated[dict[LabelKey, LabelValue], Field(max_length=64)] = no_pairs()
    """Required labels of the cluster."""
    max_price_per_gpu_hour: Price | None = None
    """Maximum price of a GPU per hour. Nodes of unknown price are not allowed. Null for no maximum."""
    node_labels: Annotated[dict[LabelKey, LabelValue], Field(max_length=64)] = no_pairs()
    """Required labels of the node."""
    tolerations: Annotated[list[TolerationIn], Field(max_length=64)] = no_entries()
    """Taints that the job tolerates."""


KeyReferences = Annotated[
    dict[Variable, Reference], Field(max_length=256, examples=[{"HF_TOKEN": "hf/token"}, {"LEVEL": "settings/log"}])
]


class RunIn(Incoming):
    """Program of each replica."""

    image: ReferenceOrNone = ""
    """Container image."""
    command: Annotated[list[Text], Field(max_length=256)] = no_entries()
    """Command. Default: the entry point of the image."""
    args: Annotated[list[Text], Field(max_length=256)] = no_entries()
    """Arguments. Default: those of the image."""
    env: Annotated[dict[Variable, Text], Field(max_length=256)] = no_pairs()
    """Environment variables."""
    env_from_secret: KeyReferences = no_pairs()
    """Environment variables with the value of a key of a Secret, like `HF_TOKEN: hf/token`. The Secret is in the
    namespace of the tenant, and the tenant may use it. Seaway stores the names only.
    """
    env_from_config_map: KeyReferences = no_pairs()
    """Environment variables with the value of a key of a ConfigMap of the tenant's namespace."""
    ports: Annotated[list[Annotated[int, Field(ge=1, le=65_535)]], Field(max_length=64)] = no_entries()
    """TCP ports on which the program listens."""
    pod: dict[str, Any] | None = None
    """Own fields of the pods: a pod spec of Kubernetes. Its container `main`, or else the first, is that of the
    program. Seaway adds nodes, devices, resources, variables and volumes. Fields that give access to nodes or objects
    of others are refused.
    """


LONGEST_EXAMPLE = 80


def run_of(value: object) -> object:
    """Reject a text, with the mapping for it; return other values unchanged."""
    if isinstance(value, str):
        text = orjson.dumps(value.strip()[:LONGEST_EXAMPLE]).decode()
        raise PydanticCustomError("run", "{why}", {"why": Reason("use_run_mapping", text=text)})
    return value


VOLUME = re.compile(r"(?:(claim|secret|config_map|empty_dir)=)?([^:=]+):(/[^:]*)(:ro)?")


def volume_of(value: object) -> object:
    """Read a volume like ``claim=imagenet:/data:ro``; return other values unchanged."""
    if not isinstance(value, str):
        return value
    if not (found := VOLUME.fullmatch(value.strip())):
        said = Reason("use_volume")
        raise PydanticCustomError("volume", said)
    return {"path": found[3], found[1] or "claim": found[2]} | ({"read_only": True} if found[4] else {})


class CsiIn(Incoming):
    """Object store that a CSI driver mounts, read-only."""

    driver: Reference
    """Name of the driver. The operator allows drivers by `clusters.csi_drivers`."""
    attributes: Annotated[dict[Reference, Text], Field(max_length=64)] = no_pairs()
    """Options of the driver, such as the name of the bucket."""
    secret: ReferenceOrNone = ""
    """Secret with the credentials for the driver."""


class VolumeIn(Incoming):
    """Volume of each replica, mounted in all its containers. It has one source.

    Sources are `claim`, `secret`, `config_map`, `empty_dir` or `csi`, which are in the namespace of the tenant.
    """

    path: Reference
    """Absolute path in the containers."""
    claim: ReferenceOrNone = ""
    """Name of a PersistentVolumeClaim."""
    secret: ReferenceOrNone = ""
    """Name of a Secret that the tenant may use. Each key is a file."""
    config_map: ReferenceOrNone = ""
    """Name of a ConfigMap. Each key is a file."""
    empty_dir: Memory = 0
    """Maximum size of an empty folder on the node, with its unit. It is removed with the pod."""
    csi: CsiIn | None = None
    """Object store that a CSI driver mounts."""
    sub_path: ReferenceOrNone = ""
    """Path within the volume that is mounted, such as one file. Default: all of it."""
    read_only: bool = False
    """True if programs can only read it. Only claims and empty folders can be written."""

    def volume(self) -> Volume:
        """Return the volume.

        Raises
        ------
        RejectedError
            If it has not exactly one source, or a name or path is invalid.
        """
        sources = [kind for kind in VolumeKind if getattr(self, kind.value)]
        if len(sources) != 1:
            given = both(*sources) if sources else Reason("none")
            raise RejectedError(Reason("one_source", sources=tuple(VolumeKind), given=given))
        (kind,) = sources
        name = {VolumeKind.EMPTY_DIR: "", VolumeKind.CSI: self.csi.driver if self.csi else ""}.get(kind)
        return Volume(
            self.path,
            kind,
            getattr(self, kind.value) if name is None else name,
            fields.memory_mib(self.empty_dir),
            self.read_only or kind in READ_ONLY,
            self.sub_path,
            tuple(self.csi.attributes.items()) if self.csi else (),
            self.csi.secret if self.csi else "",
        )


VolumeText = Annotated[str, Field(pattern=f"^{VOLUME.pattern}$", examples=["claim=imagenet:/data:ro"])]
Volumes = Annotated[
    list[Annotated[VolumeIn, BeforeValidator(volume_of, json_schema_input_type=VolumeText | VolumeIn)]],
    Field(max_length=64),
]


def port_of(value: object) -> object:
    """Read the number of a port as the port; return other values unchanged."""
    return {"port": value} if isinstance(value, int) and not isinstance(value, bool) else value


class ContainerPortFields(Incoming):
    """Port on which a container listens."""

    name: Annotated[str, Field(max_length=15, examples=["metrics"])] = ""
    """Name of the port, which the addresses of the job show."""
    port: Annotated[int, Field(ge=1, le=65_535)]
    """Number of the port."""
    protocol: Literal["TCP", "UDP"] = "TCP"
    """Protocol of the port."""

    def container_port(self, where: str, container: str) -> ContainerPort:
        """Return the port of a container."""
        try:
            return ContainerPort(self.port, self.name, PortProtocol(self.protocol), container)
        except RejectedError as error:
            raise RejectedError(error.message, where=f"{where}.{error.where}") from None


ContainerPortIn = Annotated[
    ContainerPortFields, BeforeValidator(port_of, json_schema_input_type=int | ContainerPortFields)
]


class ContainerIn(Incoming):
    """Container of each replica besides the one with its program. It has the volumes of the job, and no devices."""

    name: Reference
    """Name of the container."""
    image: ReferenceOrNone = ""
    """Container image. Default: that of the job."""
    command: Annotated[list[Text], Field(max_length=256)] = no_entries()
    """Command. Default: the entry point of the image."""
    args: Annotated[list[Text], Field(max_length=256)] = no_entries()
    """Arguments. Default: those of the image."""
    env: Annotated[dict[Variable, Text], Field(max_length=256)] = no_pairs()
    """Environment variables."""
    env_from_secret: KeyReferences = no_pairs()
    """Environment variables with the value of a key of a Secret."""
    env_from_config_map: KeyReferences = no_pairs()
    """Environment variables with the value of a key of a ConfigMap."""
    ports: Annotated[list[ContainerPortIn], Field(max_length=64)] = no_entries()
    """Ports on which it listens. Containers of a replica share its network, so their ports differ."""
    cpu: Cpu = 0
    """Its part of the CPU cores of the replica. It is needed if the replica has some and the container runs beside it.
    """
    memory: Memory = 0
    """Its part of the memory of the replica, as `cpu`."""

    def container(self, where: str, *, sidecar: bool = False) -> Container:
        """Return the container.

        Raises
        ------
        RejectedError
            If a name is invalid. The error names the field within `where`.
        """
        try:
            ports = [each.container_port(f"ports[{at}]", self.name) for at, each in enumerate(self.ports)]
            amounts = fields.cpu_milli(self.cpu), fields.memory_mib(self.memory)
            return Container(self.name, _run(self), *amounts, sidecar, tuple(ports))
        except RejectedError as error:
            raise RejectedError(error.message, where=f"{where}.{error.where.removeprefix('run.')}") from None


class InitContainerIn(ContainerIn):
    """Init container of each replica, which ends before the next one starts, or a sidecar."""

    restart_policy: Literal["Always"] | None = None
    """`Always` for a sidecar, which runs beside the program and ends with it."""


SIGNAL_BEFORE = re.compile(r"(?:SIG)?([A-Z0-9]+)@(.+)")


def warning_of(value: object) -> object:
    """Read a warning like ``USR1@300``; return other values unchanged."""
    if isinstance(value, str) and (found := SIGNAL_BEFORE.fullmatch(value.strip())):
        return {
            "signal": f"SIG{found[1]}",
            "before": found[2] if (number := whole_number(found[2])) is None else number,
        }
    return value


class WarningIn(Incoming):
    """Signal that the program gets before the time limit."""

    signal: Literal["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] = "SIGUSR1"
    """Signal of the first process of the container, which is the program."""
    before: Time = "60s"
    """Time between the signal and the limit."""


LimitWarningIn = Annotated[
    WarningIn,
    BeforeValidator(warning_of, json_schema_input_type=Annotated[str, Field(examples=["USR1@300"])] | WarningIn),
]
MAX_REPLICAS = 10_000
RANGE = r"\d{1,9}-\d{1,9}"
Number = Annotated[int, Field(ge=1, le=MAX_REPLICAS)]


class ReplicasIn(Incoming):
    """Number of replicas of an elastic job, which changes while it runs."""

    min: Annotated[int, Field(ge=0, le=MAX_REPLICAS)]
    """Number with which it starts, and which it always has while it runs. With `scale`, 0 suspends the job while
    its triggers want no replica; it starts with 1.
    """
    max: Number
    """Largest number."""
    wanted: Annotated[int, Field(ge=0, le=MAX_REPLICAS)] | None = None
    """Number that it has if there is room. Default: `max`, and with `scale` the number with which it starts."""


@lru_cache(maxsize=256)
def _fixed(number: int) -> ReplicasIn:
    return ReplicasIn(min=number, max=number)


def replicas_of(value: object) -> object:
    """Read a number of replicas, or a range like ``2-16``."""
    if isinstance(value, str) and re.fullmatch(RANGE, value.strip()):
        least, _, most = value.strip().partition("-")
        value = {"min": int(least), "max": int(most)}
    if isinstance(value, ReplicasIn | dict):
        return value
    if isinstance(value, str):
        raise PydanticCustomError("replicas", "{why}", {"why": Reason("not_replicas")})
    if not isinstance(value, int) or isinstance(value, bool):
        raise PydanticKnownError("int_type")
    if value < 1:
        raise PydanticKnownError("greater_than_equal", {"ge": 1})
    if value > MAX_REPLICAS:
        raise PydanticKnownError("less_than_equal", {"le": MAX_REPLICAS})
    return _fixed(value)


RangeText = Annotated[str, Field(pattern=f"^{RANGE}$", examples=["2-16"])]
Replicas = Annotated[ReplicasIn, BeforeValidator(replicas_of, json_schema_input_type=Number | RangeText | ReplicasIn)]
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


class CheckpointIn(Incoming):
    """Way in which a program saves its work before it is stopped."""

    signal: Literal["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] = "SIGTERM"
    """Signal that the program gets first."""
    grace: Time = "30s"
    """Time until it is killed, at most 1 h."""


class ExposeIn(Incoming):
    """Way in which clients outside the job's cluster reach its ports."""

    type: Literal["ClusterIP", "NodePort", "LoadBalancer", "Ingress", "HTTPRoute"] | None = None
    """Type of its service; null for the default of the template or the operator.

    ``Ingress`` and ``HTTPRoute`` lead HTTP clients of a host name to the first port.
    """
    host: Annotated[str, Field(max_length=253)] = ""
    """Host name for ``Ingress`` and ``HTTPRoute``. Default: the ID of the job within the operator's domain."""
    node_ports: Annotated[list[Annotated[int, Field(ge=1, le=65535)]], Field(max_length=64)] = no_entries()
    """Ports of nodes for ``NodePort`` and ``LoadBalancer``, in the order of ``run.ports``.

    They are the same in each attempt, if the cluster has them free and in its range. Default: any.
    """


Predecessors = Annotated[
    list[AfterIn],
    Field(max_length=256),
    BeforeValidator(predecessors, json_schema_input_type=str | AfterIn | list[str | AfterIn]),
]


NOTIFY = re.compile(r"(.+?)(?:=([a-z_, ]+))?")
"""A receiver of messages, like ``ops`` or ``ops=started,failed``."""


def receivers(value: object) -> object:
    """Wrap a single receiver of messages in a list, and read texts; return other values unchanged."""
    listed = [value] if isinstance(value, str | dict) else value
    return [_receiver(each) for each in listed] if isinstance(listed, list) else listed


def _receiver(value: object) -> object:
    if not isinstance(value, str) or not (found := NOTIFY.fullmatch(value.strip())):
        return {"to": value} if isinstance(value, str) else value
    when = {"when": [word for each in found[2].split(",") if (word := each.strip())]} if found[2] else {}
    return {"to": found[1], **when}


class ReceiverIn(Incoming):
    """Receiver of messages about the job."""

    to: Annotated[str, Field(min_length=1, max_length=254)]
    """Name of a notification of the job's tenant, or an e-mail address."""
    when: Occasions = Field(default=[each.value for each in DEFAULT_OCCASIONS])
    """Occasions of messages."""


NotifyText = Annotated[str, Field(examples=["ops=started,failed"])]
Receivers = Annotated[
    list[ReceiverIn],
    Field(max_length=16),
    BeforeValidator(receivers, json_schema_input_type=NotifyText | ReceiverIn | list[NotifyText | ReceiverIn]),
]


class StandbyIn(Incoming):
    """Standby of a service: a copy in another cluster, which becomes active when the active one stops."""

    clusters: Annotated[int, Field(ge=1, le=1)] = 1
    """Number of other clusters with a standby."""
    mode: Literal["warm", "cold"] = "warm"
    """``warm``: a second copy runs and holds devices. ``cold``: a place is verified, and nothing is reserved."""


def standby_of(value: object) -> object:
    """Write the mode of a standby as a standby, as the option of commands does; return other values unchanged."""
    return {"mode": value} if isinstance(value, str) else value


def texts(value: object) -> object:
    """Write numbers and truth values in lists as texts; return other values unchanged."""
    if not isinstance(value, dict):
        return value
    return {
        name: [_text(each) for each in listed] if isinstance(listed, list) else listed for name, listed in value.items()
    }


def _text(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


ArrayText = Annotated[
    str,
    Field(max_length=10_000, examples=["0-9999%50"]),
    BeforeValidator(_text, json_schema_input_type=str | int),
]
Matrix = Annotated[
    dict[Variable, Annotated[list[Text], Field(min_length=1, max_length=10_000)]],
    Field(max_length=16, examples=[{"LEARNING_RATE": ["0.1", "0.01"], "SEED": ["1", "2", "3"]}]),
    BeforeValidator(texts),
]


Triggers = Annotated[
    list[ScaleIn],
    Field(max_length=MAX_TRIGGERS, examples=[[{"metric": "requests", "target": 20}]]),
    BeforeValidator(
        lambda value: [value] if isinstance(value, dict) else value, json_schema_input_type=ScaleIn | list[ScaleIn]
    ),
]
Commands = Annotated[
    list[Text], Field(max_length=256), BeforeValidator(several, json_schema_input_type=Text | list[Text])
]


class JobIn(Incoming):
    """A job: one or more identical replicas."""

    model_config = ConfigDict(json_schema_extra={"examples": EXAMPLES})  # type: ignore[dict-item]
    FOREIGN: ClassVar[Mapping[str, Sequence[str]]] = {
        **dict.fromkeys(("limits", "requests"), ("resources.cpu", "resources.memory", "resources.gpus")),
        **dict.fromkeys(("nvidia.com/gpu", "gpu", "gpuCount", "accelerators"), ("resources.gpus",)),
        **dict.fromkeys(("nvidia.com/gpumem", "gpumem", "vram"), ("resources.gpu_memory",)),
        **dict.fromkeys(("nodeSelector", "node_selector", "constraint"), ("placement.node_labels",)),
        **dict.fromkeys(("entrypoint", "cmd", "script"), ("run.command",)),
        **dict.fromkeys(("environment", "envs"), ("run.env",)),
        **dict.fromkeys(("parallelism", "completions", "nodes", "num_nodes"), ("replicas",)),
        **dict.fromkeys(("activeDeadlineSeconds", "timeout", "walltime"), ("time_limit",)),
        **dict.fromkeys(("depends_on", "dependency", "dependencies"), ("after",)),
        **dict.fromkeys(("volumeMounts", "mounts"), ("volumes",)),
        **dict.fromkeys(("minAvailable", "minMember"), ("gang", "replicas.min")),
        "spec": ("run", "resources", "replicas"),
        "metadata": ("name", "labels"),
        "backoffLimit": ("retries",),
        "priorityClassName": ("priority",),
        "partition": ("queue",),
        "namespace": ("tenant",),
    }

    name: Name
    """Name of the job. It need not be unique; jobs are identified by their IDs."""
    tenant: NameOrNone = ""
    """Tenant of the job. Default: your own tenant, or `default` if you have none."""
    queue: Name = DEFAULT
    """Queue of the job."""
    priority: Annotated[int, Field(ge=-MAX_PRIORITY, le=MAX_PRIORITY)] = 0
    """Priority. Jobs with a higher priority go first. Users may set at most `control.max_user_priority`."""
    gateway: ReferenceOrNone = ""
    """Gateway from which you access clusters. Network bounds apply to the links from this gateway."""
    replicas: Replicas = Field(_fixed(1), json_schema_extra={"default": 1})
    """Number of replicas that run in parallel. With `min` and `max`, or a range like `2-16`, the job is elastic. It
    starts with the minimum, grows when there is room, and shrinks to the minimum before jobs are preempted.
    """
    scale: Triggers = no_entries()
    """Triggers that set the number of replicas of an elastic job: metrics with targets, and time windows. It gets the
    largest number that one of them asks for, within `replicas`. One trigger need not be in a list.
    """
    gang: bool | None = None
    """True if either all replicas start together or none. False if they start one by one: the job starts with those
    that fit, and the others follow when these have completed; only for the templates `job` and `kueue`. Null if they
    are placed at the same time.
    """
    spread: Literal["clusters"] | None = None
    """`clusters`: the replicas start together, in one cluster or as a ring over several, in which each sends to the
    next. The bounds between replicas then apply to the links between consecutive replicas only, and ranks follow the
    ring. Only for templates that give ranks, such as `job`, `torchrun` and `pytorchjob`.
    """
    template: Name = "job"
    """Name of the workload template."""
    resources: ResourcesIn = ResourcesIn()
    """Resources of each replica."""
    network: UserNetworkIn = UserNetworkIn()
    """Bounds on the link from your gateway to the cluster."""
    between_replicas: NetworkIn = NetworkIn()
    """Bounds on the links between the clusters that run replicas."""
    placement: PlacementIn = PlacementIn()
    """Constraints on the placement of replicas."""
    data: DataIn = DataIn()
    """Location of the data. Placement prefers clusters close to it."""
    run: Annotated[RunIn, BeforeValidator(run_of, json_schema_input_type=RunIn)] = RunIn()
    """Program of each replica."""
    volumes: Volumes = no_entries()
    """Volumes of each replica. A text like `claim=imagenet:/data:ro` is a volume too."""
    workdir: ArchiveOrNone = ""
    """Digest of the archive with the content of the working directory, like `sha256:` and 64 digits. `seaway submit`
    takes a folder instead, and sends it first.
    """
    setup: Commands = no_entries()
    """Shell commands that run before the program, in its container. The program gets the variables that they export."""
    init_containers: Annotated[list[InitContainerIn], Field(max_length=16)] = no_entries()
    """Containers that end, one after the other, before the program starts; and sidecars."""
    containers: Annotated[list[ContainerIn], Field(max_length=16)] = no_entries()
    """Containers that run beside the program. The replica ends when all have ended."""
    restart_policy: Literal["Never", "OnFailure"] = "Never"
    """`OnFailure`: a program that fails is started again in its place, and keeps its devices. Services always restart.
    """
    max_restarts: Annotated[int, Field(ge=0, le=MAX_RETRIES)] | None = None
    """Maximum number of restarts of the containers of a replica in its place. Then the replica fails, and `retries` or
    the restart of a service applies. Null for no maximum.
    """
    expected_duration: Time | None = None
    """Expected duration. A job that ends in time may start before a waiting job."""
    time_limit: Limit | None = None
    """Time after which a running job is stopped. Default: no limit."""
    lease: Limit | None = None
    """Time for which it holds its devices from its start or its last renewal. Default: no lease."""
    time_limit_warning: LimitWarningIn | None = None
    """Signal that the program gets before the time limit; null for none. A text like `USR1@300` is possible too. The
    time counts from the start of each replica.
    """
    retries: Annotated[int, Field(ge=0, le=MAX_RETRIES)] = 0
    """Maximum number of restarts after failures of the job itself. A deployment always restarts."""
    labels: Labels = no_pairs()
    """Labels of the workload."""
    preemptible: bool | None = None
    """True if waiting jobs may displace it while it runs; null for the default of its queue."""
    checkpoint: CheckpointIn | None = None
    """Way in which the program saves its work before it is stopped; null if it does not.

    An empty mapping means that it saves its work on SIGTERM, within 30 s.
    """
    expose: ExposeIn = ExposeIn()
    """Way in which clients outside the job's cluster reach its ports."""
    array: ArrayText = ""
    """Indexes of the tasks of an array, each of which is a job like this, in Slurm's syntax: 0-99, 1,3,5 or 0-90:10.

    %N bounds the number of tasks at once, like 0-99%5. The environment of a task has its index, SEAWAY_ARRAY_TASK_ID.
    """
    matrix: Matrix = no_pairs()
    """Values of parameters. The array has a task for each combination, with the parameters in its environment.

    `array` may bound the number at once, like %5, or select some of the combinations.
    """
    after: Predecessors = no_entries()
    """Jobs that must start or end before. The job is held until then, and skipped if that can never be.

    A text is the ID or name of a job that must complete.
    """
    standby: Annotated[
        StandbyIn | None,
        Field(examples=["warm", {"mode": "cold"}]),
        BeforeValidator(standby_of, json_schema_input_type=StandbyIn | Literal["warm", "cold"] | None),
    ] = None
    """Standby of a service in another cluster; null for none. All replicas of a copy are then in one cluster."""
    notify: Receivers = no_entries()
    """Receivers of messages about the job: notifications of its tenant by name, and e-mail addresses.

    A text like `ops=started,failed` is a receiver with its occasions.
    """

    @classmethod
    def of(cls, spec: JobSpec) -> JobIn:
        """Return the message of a job; `spec` converts it back to the same job."""
        return cls.model_validate(job_text(spec))

    def spec(self, own_tenant: str = DEFAULT) -> JobSpec:
        """Return the specification of the job.

        Parameters
        ----------
        own_tenant
            Default tenant.

        Raises
        ------
        RejectedError
            If fields contradict each other.
        """
        request, network = _request(self.resources), _need(self.network)
        if network.any and not self.gateway:
            raise RejectedError(Reason("gateway_needed"), where="gateway")
        if self.placement.max_price_per_gpu_hour is not None and not request.gpus:
            raise RejectedError(Reason("given_without_gpus"), where="placement.max_price_per_gpu_hour")
        elastic = self.replicas.min != self.replicas.max or self.replicas.wanted is not None
        if self.expose.type and not self.run.ports:
            raise RejectedError(Reason("port_needed"), where="expose.type")
        if len(self.expose.node_ports) > len({*self.run.ports}):
            said = Reason("more_ports", count=len({*self.run.ports}))
            raise RejectedError(said, where="expose.node_ports")
        return JobSpec(
            name=self.name,
            demand=Demand(request, _device_rules(self.resources), _node_rules(self.placement), self.gateway, network),
            replicas=_wanted(self),
            scale=tuple(each.trigger() for each in self.scale),
            min_replicas=self.replicas.min if elastic else 0,
            max_replicas=self.replicas.max if elastic else 0,
            gang=bool(self.gang),
            one_by_one=self.gang is False,
            ring=self.spread is not None,
            between_replicas=_need(self.between_replicas),
            priority=self.priority,
            tenant=self.tenant or own_tenant,
            queue=self.queue,
            template=self.template,
            run=_run(self.run),
            expected_duration_s=None if self.expected_duration is None else fields.seconds(self.expected_duration),
            time_limit_s=None if self.time_limit is None else fields.limit_s(self.time_limit),
            lease_s=None if self.lease is None else fields.limit_s(self.lease),
            retries=self.retries,
            labels=dict(self.labels),
            on_violation=OnViolation(self.network.on_violation),
            data=_data(self.data),
            output_mib=fields.memory_mib(self.data.output),
            after=tuple(After(each.job, When(each.when)) for each in self.after),
            array=_array(self),
            preemptible=self.preemptible,
            checkpoint=_checkpoint(self.checkpoint),
            expose=_expose(self.expose),
            standby=_standby(self.standby),
            runtime=_runtime(self),
            notify=_notify(self.notify),
        )


MAX_JOBS = 1000


class JobBatchIn(Incoming):
    """Jobs that are stored together or not at all. They may come after each other, by name."""

    jobs: Annotated[list[JobIn], Field(min_length=1, max_length=MAX_JOBS)]


class JobPatch(BaseModel):
    """Fields of a job to change; null resets a field to its default."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"examples": [{"priority": 10}, {"labels": None}]})


def _wanted(given: JobIn) -> int:
    """Return the number of replicas that a job has if there is room. With triggers, it starts with the fewest."""
    bounds = given.replicas
    if bounds.wanted is not None:
        return bounds.wanted
    return max(bounds.min, 1) if given.scale else bounds.max


def _array(given: JobIn) -> TaskArray | None:
    if not given.array and not given.matrix:
        return None
    if twice := sorted(given.matrix.keys() & given.run.env.keys()):
        raise RejectedError(Reason("variable_twice", name=twice[0]), where="matrix")
    return task_array(given.array, tuple((name, tuple(values)) for name, values in given.matrix.items()))


def _checkpoint(given: CheckpointIn | None) -> Checkpoint | None:
    if given is None:
        return None
    return Checkpoint(given.signal, fields.seconds(given.grace))


def _expose(given: ExposeIn) -> Expose:
    if not given.model_fields_set:
        return NOT_EXPOSED
    return Expose(None if given.type is None else ServiceType(given.type), given.host, tuple(given.node_ports))


def _standby(given: StandbyIn | None) -> Standby | None:
    return None if given is None else Standby(StandbyMode(given.mode), given.clusters)


def _notify(given: list[ReceiverIn]) -> tuple[Notify, ...]:
    found = []
    for at, each in enumerate(given):
        try:
            found.append(Notify(each.to, tuple(one for one in Occasion if one in each.when)))
        except RejectedError as error:
            raise RejectedError(error.message, where=f"notify[{at}].{error.where}") from None
    return tuple(found)


def _request(given: ResourcesIn) -> ResourceRequest:
    if not given.gpus:
        for name in ("gpu_memory", "gpu_cores"):
            if getattr(given, name) is not None:
                raise RejectedError(Reason("given_with_no_gpus", name=name), where=f"resources.{name}")
    if given.mig:
        _check_mig(given)
    memory_mib, percent = (0, 0) if given.gpu_memory is None else fields.gpu_memory(given.gpu_memory)
    return ResourceRequest(
        fields.cpu_milli(given.cpu),
        fields.memory_mib(given.memory),
        given.gpus,
        memory_mib,
        percent,
        0 if given.gpu_cores is None else fields.gpu_milli(given.gpu_cores),
        given.mig,
    )


def _check_mig(given: ResourcesIn) -> None:
    """Reject a MIG profile with fields that contradict it."""
    if not given.gpus:
        raise RejectedError(Reason("given_with_no_gpus", name="mig"), where="resources.mig")
    for name in ("gpu_memory", "gpu_cores"):
        if getattr(given, name) is not None:
            raise RejectedError(Reason("mig_sets_it", name=name), where=f"resources.{name}")
    if given.gpu_mode and DeviceMode.MIG.value not in given.gpu_mode:
        raise RejectedError(Reason("mode_without_mig"), where="resources.gpu_mode")


_AMOUNTS = frozenset({"cpu", "memory", "gpus", "gpu_memory", "gpu_cores", "mig", "shm_size"})
"""Fields of `ResourcesIn` with amounts. The other fields select devices."""


def _device_rules(given: ResourcesIn) -> DeviceRules:
    if given.model_fields_set <= _AMOUNTS:
        return ANY_DEVICE
    if given.gpu_topology and given.gpus < 2:
        raise RejectedError(Reason("topology_needs_gpus"), where="resources.gpu_topology")
    if given.gpu_topology and given.same_numa:
        raise RejectedError(Reason("topology_and_numa"), where="resources.gpu_topology")
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
        topology=GpuTopology(given.gpu_topology or ""),
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
        cluster_labels=tuple(sorted(given.cluster_labels.items())),
        max_microprice=None if given.max_price_per_gpu_hour is None else microprice(given.max_price_per_gpu_hour),
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
        raise RejectedError(Reason("needed_with_data_size"), where="data.location")
    return DataSource(given.location, size_mib)


def _run(given: RunIn | ContainerIn) -> Run:
    if not given.model_fields_set:
        return NOTHING
    if isinstance(given, RunIn) and given.pod:
        return _run_of_pod(given, given.pod)
    return Run(
        given.image,
        tuple(given.command),
        tuple(given.args),
        tuple(given.env.items()),
        tuple(given.ports) if isinstance(given, RunIn) else (),
        tuple(given.env_from_secret.items()),
        tuple(given.env_from_config_map.items()),
    )


def _run_of_pod(given: RunIn, pod: dict[str, Any]) -> Run:
    """Return a program with own fields of its pods, whose container has defaults for image, command and ports."""
    plain = _run(given.model_copy(update={"pod": None}))
    Run(pod=_json(pod))  # checks it
    containers = [dict(each) for each in pod["containers"]]
    main = containers[program_place(pod)]
    own = {name: main.pop(name, None) or [] for name in ("image", "command", "args", "ports")}
    tcp = [each.get("containerPort") for each in own["ports"] if each.get("protocol", "TCP") == "TCP"]
    program = {
        "image": plain.image or own["image"] or "",
        "command": [*plain.command] or own["command"],
        "args": [*plain.args] or ([] if plain.command else own["args"]),
        "ports": [*plain.ports, *tcp],
    }
    try:
        filled = RunIn.model_validate(program)
    except ValueError:
        raise RejectedError(Reason("pod_program"), where="run.pod.containers") from None
    return replace(
        plain,
        image=filled.image,
        command=tuple(filled.command),
        args=tuple(filled.args),
        ports=tuple(dict.fromkeys(filled.ports)),
        pod=_json({**pod, "containers": containers}),
    )


def _json(pod: dict[str, Any]) -> str:
    try:
        return orjson.dumps(pod, option=orjson.OPT_SORT_KEYS).decode()
    except (TypeError, ValueError):
        raise RejectedError(Reason("pod_not_json"), where="run.pod") from None


def _runtime(given: JobIn) -> Runtime:
    shm_mib, memory_mib = (fields.memory_mib(each) for each in (given.resources.shm_size, given.resources.memory))
    if memory_mib and shm_mib > memory_mib:
        raise RejectedError(Reason("larger_than_memory"), where="resources.shm_size")
    volumes = []
    for at, each in enumerate(given.volumes):
        try:
            volumes.append(each.volume())
        except RejectedError as error:
            raise RejectedError(error.message, where=f"volumes[{at}].{error.where}".rstrip(".")) from None
    warning = given.time_limit_warning
    runtime = Runtime(
        tuple(volumes),
        shm_mib,
        tuple(given.setup),
        tuple(
            each.container(f"init_containers[{at}]", sidecar=each.restart_policy is not None)
            for at, each in enumerate(given.init_containers)
        ),
        tuple(each.container(f"containers[{at}]") for at, each in enumerate(given.containers)),
        RestartPolicy(given.restart_policy),
        given.max_restarts,
        None if warning is None else LimitWarning(warning.signal, fields.seconds(warning.before)),
        given.workdir,
    )
    return NO_RUNTIME if runtime == NO_RUNTIME else runtime
