"""Validated specification of a job, with all defaults."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from enum import StrEnum
from random import Random
from typing import Any

from seaway.domain.arrays import TaskArray
from seaway.domain.dependencies import After
from seaway.domain.errors import RejectedError
from seaway.domain.job import NO_DATA, DataSource, Demand, Job
from seaway.domain.network import NO_NEED, NetworkNeed, OnViolation
from seaway.domain.notifications import Notify
from seaway.domain.pod import parts_of
from seaway.domain.reasons import Reason
from seaway.domain.runtime import (
    NO_PROGRAM,
    NO_RUNTIME,
    SIGNALS,
    ContainerPort,
    RestartPolicy,
    Run,
    Runtime,
    ports_of,
)
from seaway.domain.scaling import Trigger, require_triggers
from seaway.domain.tenancy import DEFAULT, require_name

NO_CLUSTER = frozenset({""})
"""Value of `NodeRules.clusters` that matches no cluster."""


MAX_GRACE_S = 3600

MAX_PORTS = 64
"""Maximum number of ports of a job."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Way in which a program saves its work before it is stopped.

    Attributes
    ----------
    signal
        Signal that it gets first.
    grace_s
        Seconds until it is killed.
    """

    signal: str = "SIGTERM"
    grace_s: int = 30

    def __post_init__(self) -> None:
        """Check the values."""
        if self.signal not in SIGNALS:
            raise RejectedError(
                Reason("is_not_use", value=self.signal, names=tuple(SIGNALS)), where="checkpoint.signal"
            )
        if not 1 <= self.grace_s <= MAX_GRACE_S:
            raise RejectedError(Reason("seconds_between", most=MAX_GRACE_S), where="checkpoint.grace")


class ServiceType(StrEnum):
    """Way in which clients reach the ports of a job, by the names of Kubernetes."""

    CLUSTER_IP = "ClusterIP"
    """A name and address for pods of its cluster only."""
    NODE_PORT = "NodePort"
    """A port of each node."""
    LOAD_BALANCER = "LoadBalancer"
    """A load balancer of the cluster."""
    INGRESS = "Ingress"
    """A host name, served by an Ingress controller."""
    HTTP_ROUTE = "HTTPRoute"
    """A host name, served by a Gateway of the Gateway API."""

    @property
    def by_host(self) -> bool:
        """True if HTTP clients reach it by a host name."""
        return self in (ServiceType.INGRESS, ServiceType.HTTP_ROUTE)


_HOST = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)+")
"""A DNS name of at least two labels (RFC 1123, section 2.1)."""


POD = "Pod"
"""Address of rank 0 of a ring that is that of its pod, where networks of pods are routed between clusters."""

RING_TYPES = (ServiceType.NODE_PORT.value, ServiceType.LOAD_BALANCER.value, POD)
"""Ways to reach rank 0 of a ring from other clusters."""


@dataclass(frozen=True, slots=True)
class Expose:
    """Way in which clients outside a job's cluster reach its ports.

    Attributes
    ----------
    type
        Type of its service; None for the default of its template or of the operator.
    host
        Host name for HTTP; empty for a name that Seaway makes from the ID of the job.
    node_ports
        Ports of nodes, for the ports of the job in their order. The cluster selects the others.
    """

    type: ServiceType | None = None
    host: str = ""
    node_ports: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Check the host name and the ports of nodes."""
        if self.node_ports and self.type not in (ServiceType.NODE_PORT, ServiceType.LOAD_BALANCER):
            raise RejectedError(Reason("node_ports_types"), where="expose.node_ports")
        if len({*self.node_ports}) < len(self.node_ports):
            raise RejectedError(Reason("port_twice"), where="expose.node_ports")
        if self.host and not (self.type and self.type.by_host):
            raise RejectedError(Reason("host_types"), where="expose.host")
        if self.host and not _HOST.fullmatch(self.host):
            raise RejectedError(Reason("use_host", value=self.host), where="expose.host")


NOT_EXPOSED = Expose()


class StandbyMode(StrEnum):
    """Preparation of the standby of a service."""

    WARM = "warm"
    """A second copy runs and holds devices."""
    COLD = "cold"
    """A place for it is verified, but nothing is reserved."""


@dataclass(frozen=True, slots=True)
class Standby:
    """Standby of a service: a copy in another cluster, which becomes active when the active one stops.

    Attributes
    ----------
    clusters
        Number of other clusters with a standby.
    """

    mode: StandbyMode = StandbyMode.WARM
    clusters: int = 1

    def __post_init__(self) -> None:
        """Check the number of clusters."""
        if self.clusters != 1:
            raise RejectedError(Reason("one_standby", count=self.clusters), where="standby.clusters")


INDEPENDENT = frozenset({"job", "kueue"})
"""Templates whose replicas end by themselves and do not know each other."""

RESIZABLE = frozenset({"job", "deployment", "pytorchjob", "raycluster", "volcanojob"})
"""Templates whose workloads can get more or fewer replicas while they run."""

HEADED = frozenset({"pytorchjob", "raycluster"})
"""Resizable templates whose replica 0 serves the others, and is never removed."""

ONE_TEMPLATE = frozenset({"pytorchjob"})
"""Resizable templates with one pod template for all workers, so that these leave from the last one on."""

ONE_OBJECT = frozenset({"pytorchjob", "volcanojob"})
"""Templates of jobs with one object for all replicas in a cluster, which is only created again as a whole."""

ENDS_IN_PARTS = INDEPENDENT | ONE_OBJECT | {"torchrun"}
"""Built-in templates whose completed replicas never run again while their objects exist."""


_LEAST = {"replicas": 1, "expected_duration_s": 0, "time_limit_s": 1, "lease_s": 1, "retries": 0}
"""Minimum of each number."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class JobSpec:
    """A submitted job.

    Attributes
    ----------
    name
        Display name. Several jobs may share it; IDs distinguish them.
    demand
        Demand of each replica.
    replicas, gang, between_replicas, priority, tenant, queue
        As in `seaway.domain.job.Job`.
    template
        Kind of workload.
    run
        Program of each replica.
    expected_duration_s
        Expected duration, seconds; None if unknown. A short job may start before a waiting one if it ends in time.
        Simulated clusters run it for exactly this time.
    time_limit_s
        Maximum run time, seconds; None for no limit.
    lease_s
        Time for which it holds its devices from its start or its last renewal, seconds; None without a lease.
    retries
        Maximum number of restarts after the program fails. Failures of the infrastructure do not count. Ignored for
        jobs that always restart.
    labels
        Labels of the workload. A running workload keeps its labels until its next attempt.
    single_cluster
        Whether all replicas must be in one cluster, as a gang; set by the template.
    restarts
        Whether it is a service, which always restarts; set by the template.
    ends_in_parts
        Whether its completed replicas release their devices before the others end; set by an operator's own template.
        See `releases_early`.
    on_violation
        Action if its links violate its bounds while it runs.
    data
        Location of its data. A change does not move a running job.
    preemptible
        Whether other jobs may displace it while it runs; None for the default of its queue.
    checkpoint
        How its program saves its work before it is stopped; None if it does not.
    expose
        How clients outside its cluster reach its ports.
    one_by_one
        Whether its replicas are independent, so that it starts with those that fit. See `starts_in_part`.
    after
        Predecessors that it waits for.
    output_mib
        Amount of data that it leaves in its clusters for its followers, MiB.
    standby
        Standby of a service; None without one. All replicas of a copy are then in one cluster.
    copy_of
        ID of the job that it is the second copy of; set by Seaway. Both copies have the same name in their cluster.
    ring
        Whether its replicas may be in several clusters, as a ring in the order of their numbers.
    array
        Tasks, each of which is a job like this; None for a single job.
    min_replicas, max_replicas
        Bounds of the number of replicas of an elastic job, which starts with the minimum; 0 for other jobs.
    scale
        Triggers that set the number of replicas of an elastic job. With them, the minimum can be 0: while the number
        is 0, the job is suspended.
    runtime
        Environment of each replica, such as its volumes.
    notify
        Receivers of messages about it.
    """

    name: str
    demand: Demand
    replicas: int = 1
    gang: bool = False
    between_replicas: NetworkNeed = NO_NEED
    priority: int = 0
    tenant: str = DEFAULT
    queue: str = DEFAULT
    template: str = "job"
    run: Run = NO_PROGRAM
    expected_duration_s: int | None = None
    time_limit_s: int | None = None
    retries: int = 0
    labels: dict[str, str] = field(default_factory=dict)
    single_cluster: bool = False
    restarts: bool = False
    ends_in_parts: bool = False
    on_violation: OnViolation = OnViolation.REPORT
    data: DataSource = NO_DATA
    preemptible: bool | None = None
    checkpoint: Checkpoint | None = None
    expose: Expose = NOT_EXPOSED
    one_by_one: bool = False
    after: tuple[After, ...] = ()
    output_mib: int = 0
    standby: Standby | None = None
    copy_of: str = ""
    ring: bool = False
    array: TaskArray | None = None
    min_replicas: int = 0
    max_replicas: int = 0
    lease_s: int | None = None
    scale: tuple[Trigger, ...] = ()
    runtime: Runtime = NO_RUNTIME
    notify: tuple[Notify, ...] = ()

    def __post_init__(self) -> None:
        """Check the name and the numbers."""
        require_name("job", self.name)
        if self.elastic:
            self._check_bounds()
        elif self.scale:
            raise RejectedError(Reason("needs_range"), where="scale")
        for figure, least in {**_LEAST, "replicas": 0 if self.scale else 1}.items():
            value = getattr(self, figure)
            if value is not None and value < least:
                raise RejectedError(Reason("is_too_small", value=value, least=least), where=figure)
        if self.ring:
            self._check_ring()
        receivers = [each.to for each in self.notify]
        if len(receivers) > len({*receivers}):
            twice = next(each for each in receivers if receivers.count(each) > 1)
            raise RejectedError(Reason("receiver_twice", name=twice), where="notify")
        if self.lease_s is not None and self.array:
            raise RejectedError(Reason("lease_of_array"), where="lease")
        if self.runtime != NO_RUNTIME or self.run.pod:
            self._check_runtime()

    def _check_runtime(self) -> None:
        """Check that the environment of replicas agrees with their program, resources and time limit."""
        runtime = self.runtime
        for name, given in (("setup", runtime.setup), ("time_limit_warning", runtime.warning)):
            if given and not self.run.command and self.template != "raycluster":
                raise RejectedError(Reason("command_needed", name=name), where="run.command")
        if runtime.warning and (self.time_limit_s is None or runtime.warning.before_s >= self.time_limit_s):
            raise RejectedError(Reason("below_time_limit"), where="time_limit_warning.before")
        request = self.demand.request
        self._check_ports()
        self._check_parts("cpu", request.cpu_milli, "cpu_milli")
        self._check_parts("memory", request.memory_mib, "memory_mib")

    @property
    def ports(self) -> tuple[ContainerPort, ...]:
        """Ports of all containers, each once: those of the program, then those of the others."""
        found: dict[int, ContainerPort] = {}
        for _, each in ports_of(self.run, self.runtime):
            found.setdefault(each.number, each)
        return tuple(found.values())

    def _check_ports(self) -> None:
        """Check that the ports of the containers of a replica differ, because they share its network."""
        numbers, names = set(self.run.ports), set[str]()
        for where, each in list(ports_of(self.run, self.runtime))[len(self.run.ports) :]:
            if each.number in numbers:
                raise RejectedError(Reason("port_in_use", port=each.number), where=f"{where}.port")
            if each.name and each.name in names:
                raise RejectedError(Reason("name_in_use", value=each.name), where=f"{where}.name")
            numbers.add(each.number)
            names.add(each.name)
        if len(numbers) > MAX_PORTS:
            raise RejectedError(Reason("ports_too_many", count=len(numbers), most=MAX_PORTS), where="run.ports")

    def _check_parts(self, name: str, whole: int, figure: str) -> None:
        """Check that the containers beside the program leave it some CPU and memory."""
        left = whole
        if self.run.pod:
            left -= parts_of(json.loads(self.run.pod))[figure == "memory_mib"]
            if left < bool(whole):
                raise RejectedError(Reason("part_too_large", name=name), where="run.pod.containers")
        for kind in ("init_containers", "containers"):
            for at, each in enumerate(getattr(self.runtime, kind)):
                where, part = f"{kind}[{at}].{name}", getattr(each, figure)
                beside = each.sidecar or kind == "containers"
                if beside and whole and not part:
                    raise RejectedError(Reason("part_needed", name=name), where=where)
                left -= part if beside else 0
                if part > whole or left < bool(whole):
                    raise RejectedError(Reason("part_too_large", name=name), where=where)

    def _check_ring(self) -> None:
        if self.replicas < 2:
            raise RejectedError(Reason("ring_needs_two"), where="spread")
        if self.one_by_one:
            raise RejectedError(Reason("ring_starts_together"), where="spread")

    def _check_bounds(self) -> None:
        """Check the number of replicas of an elastic job."""
        fewest = 0 if self.scale else 1
        if not fewest <= self.min_replicas <= self.max_replicas:
            said = Reason("range_invalid", least=self.min_replicas, most=self.max_replicas)
            raise RejectedError(said, where="replicas")
        if not self.min_replicas <= self.replicas <= self.max_replicas:
            said = Reason("replicas_outside", value=self.replicas, least=self.min_replicas, most=self.max_replicas)
            raise RejectedError(said, where="replicas")
        if self.ring:
            raise RejectedError(Reason("ring_is_fixed"), where="replicas")
        if self.template not in RESIZABLE:
            said = Reason("not_resizable", template=self.template, names=tuple(sorted(RESIZABLE)))
            raise RejectedError(said, where="replicas")
        if self.scale:
            if self.array:
                raise RejectedError(Reason("scale_of_array"), where="scale")
            require_triggers(self.scale, self.min_replicas, self.max_replicas)

    def with_template_traits(self, *, single_cluster: bool, restarts: bool, ends_in_parts: bool = False) -> JobSpec:
        """Return the job with the traits of its template; the same object if it has them.

        Raises
        ------
        RejectedError
            If it is an array of services, or its restarts do not agree with its template.
        """
        if self.array and restarts:
            raise RejectedError(Reason("array_of_service"), where="array")
        never = self.runtime.restart_policy is RestartPolicy.NEVER
        if restarts and not never:
            raise RejectedError(Reason("restart_of_service"), where="restart_policy")
        if not restarts and never and self.runtime.max_restarts is not None:
            raise RejectedError(Reason("restarts_policy"), where="max_restarts")
        if (single_cluster, restarts, ends_in_parts) == (self.single_cluster, self.restarts, self.ends_in_parts):
            return self
        return replace(self, single_cluster=single_cluster, restarts=restarts, ends_in_parts=ends_in_parts)

    def job(self, job_id: str, clusters: frozenset[str] = frozenset()) -> Job:
        """Return the job in the scheduler's form.

        Parameters
        ----------
        job_id
            ID, used as the name, because names of jobs are not unique.
        clusters
            Clusters of its queue's pool; empty for all.
        """
        demand = self.demand
        if clusters:
            allowed = demand.nodes.clusters & clusters if demand.nodes.clusters else clusters
            demand = replace(demand, nodes=replace(demand.nodes, clusters=allowed or NO_CLUSTER, pool=clusters))
        return Job(
            job_id,
            demand,
            self.least_replicas,
            self.gang or self.in_one_cluster or self.ring,
            self.between_replicas,
            self.priority,
            self.tenant,
            self.queue,
            expected_duration_s=self.expected_duration_s,
            labels=self.labels,
            single_cluster=self.in_one_cluster,
            data=self.data,
            partial=self.starts_in_part,
            ring=self.ring,
        )

    @property
    def in_one_cluster(self) -> bool:
        """True if all replicas must be in one cluster, as a gang."""
        return self.single_cluster or self.standby is not None

    @property
    def meets(self) -> bool:
        """True if its replicas get the address of replica 0, also in other clusters: a ring, or ranks of a template."""
        ranked = self.template == "torchrun" or (self.gang and self.template in INDEPENDENT)
        return self.ring or (ranked and self.replicas > 1 and not self.elastic and bool(self.run.command))

    @property
    def has_warm_standby(self) -> bool:
        """True if a second copy runs as its standby."""
        return self.standby is not None and self.standby.mode is StandbyMode.WARM

    @property
    def starts_in_part(self) -> bool:
        """True if it starts with the replicas that fit, and the others follow when these have completed.

        Replicas of services, and of templates that connect replicas, start together.
        """
        alone = self.template in INDEPENDENT and not (
            self.gang or self.single_cluster or self.ring or self.between_replicas.any
        )
        return self.one_by_one and alone and self.replicas > 1 and not self.elastic

    @property
    def releases_early(self) -> bool:
        """True if replicas that have completed never run again, so that they release their devices at once."""
        return self.template in ENDS_IN_PARTS or self.ends_in_parts

    @property
    def elastic(self) -> bool:
        """True if its number of replicas changes with the room in the fleet."""
        return bool(self.min_replicas or self.max_replicas)

    @property
    def least_replicas(self) -> int:
        """Number of replicas that start together, except for a job that starts in part."""
        return max(self.min_replicas, 1) if self.elastic else self.replicas

    @property
    def scaled_to_zero(self) -> bool:
        """True if its triggers want no replica. The job is then suspended until they want one."""
        return not self.replicas

    @property
    def resizable(self) -> bool:
        """True if it gets more or fewer replicas without a restart.

        Replicas of other jobs know their number. Those of services do not, or learn it from their own controller.
        """
        if self.ring or self.template not in RESIZABLE:  # their number is fixed
            return False
        alone = self.template in INDEPENDENT and not (self.gang or self.single_cluster)
        return self.elastic or self.restarts or alone

    def with_replicas(self, number: int) -> JobSpec:
        """Return the job with another number of replicas, which may be outside its bounds."""
        if not self.elastic:
            return replace(self, replicas=number)
        least, most = min(self.min_replicas, number), max(self.max_replicas, number)
        return replace(self, replicas=number, min_replicas=least, max_replicas=most)

    def task(self, array_id: str, index: int) -> JobSpec:
        """Return the specification of a task of an array, with its index and parameters in the environment."""
        if self.array is None:
            return self
        env = (*self.run.env, *self.array.variables(array_id, index))
        return replace(self, run=replace(self.run, env=env), array=None, after=())

    def requires_restart(self, other: JobSpec) -> bool:
        """Report whether a running job must restart to change to another specification."""
        in_place = self.resizable and other.resizable and self.elastic == other.elastic
        if in_place and self.template == "pytorchjob":  # its pods know the bounds
            in_place = (self.min_replicas, self.max_replicas) == (other.min_replicas, other.max_replicas)
        sizes = ((each.replicas, each.min_replicas, each.max_replicas) for each in (self, other))
        return _workload_fields(self) != _workload_fields(other) or (not in_place and len({*sizes}) > 1)

    @property
    def has_bounds(self) -> bool:
        """True if the job has bounds on its network."""
        return self.demand.network.any or self.between_replicas.any

    @property
    def max_duration_s(self) -> int | None:
        """Time limit or expected duration in seconds, the shorter one; None if both are unknown."""
        expected_s, limit_s = self.expected_duration_s, self.time_limit_s
        if expected_s is None or limit_s is None:
            return limit_s if expected_s is None else expected_s
        return min(expected_s, limit_s)


def _workload_fields(spec: JobSpec) -> tuple[Any, ...]:
    """Return the fields that running workloads depend on.

    These are not: name, labels, priority, queue, duration, limits, data and the action for SLO violations,
    whether it is preemptible, whether its replicas start one by one, its predecessors, and its standby. Its receivers
    of messages are not either.
    """
    return (
        spec.demand,
        spec.gang,
        spec.between_replicas,
        spec.template,
        spec.run,
        spec.checkpoint,
        spec.expose,
        spec.ring,
        spec.runtime,
        spec.runtime.warning and spec.time_limit_s,
    )


ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base 32, without letters that are easily confused: i, l, o and u."""

_PAIRS = tuple(first + second for first in ALPHABET for second in ALPHABET)
"""Pairs of letters, which speed up encoding."""

_DIGITS = bytes(b"0123456789abcdefghijklmnopqrstuv!"[ALPHABET.find(chr(each))] for each in range(256))
"""Python's base-32 digit for each letter of an ID; an invalid digit for other characters."""

LENGTH = 13
RANDOM_BITS = 22
NS_PER_MS = 1_000_000


class JobIds:
    """Generator of IDs: 42 bits of milliseconds since 1970, then 22 bits that start at random and count up.

    Parameters
    ----------
    random
        Source of the random bits.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._last = 0

    def generate(self, now_ns: int, count: int = 1) -> str:
        """Return an ID that sorts after all earlier ones, even if the clock was set back.

        Parameters
        ----------
        count
            Number of IDs to reserve, which follow each other; the first one is returned.
        """
        fresh = (now_ns // NS_PER_MS << RANDOM_BITS) | self._random.getrandbits(RANDOM_BITS)
        first = fresh if fresh >> RANDOM_BITS > self._last >> RANDOM_BITS else self._last + 1
        self._last = first + count - 1
        return encode(first)


def encode(number: int) -> str:
    """Encode a 64-bit number as 13 letters and digits that sort like the number."""
    pairs = _PAIRS
    return (
        ALPHABET[number >> 60 & 31]
        + pairs[number >> 50 & 1023]
        + pairs[number >> 40 & 1023]
        + pairs[number >> 30 & 1023]
        + pairs[number >> 20 & 1023]
        + pairs[number >> 10 & 1023]
        + pairs[number & 1023]
    )


def following_id(first: str, distance: int) -> str:
    """Return the ID at a distance after another one."""
    return encode((decode(first) or 0) + distance)


def id_distance(first: str, last: str) -> int:
    """Return the distance of an ID from another one."""
    return (decode(last) or 0) - (decode(first) or 0)


def decode(text: str) -> int | None:
    """Decode an ID; None if `text` is not a valid ID."""
    if len(text) != LENGTH:
        return None
    try:
        number = int(text.encode("ascii").translate(_DIGITS), 32)
    except ValueError:
        return None
    return number if number < 1 << 63 else None
