"""Stored records: one frozen value per row, independent of the database.

Times are nanoseconds since 1970 by the wall clock; None for an event that has not happened.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from seaway.domain.amounts import NO_AMOUNTS, Amounts
from seaway.domain.cluster import Cluster
from seaway.domain.facts import Facts
from seaway.domain.placement import Placement

NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class EndedUse:
    """Amounts that an ended attempt held.

    Attributes
    ----------
    queue, tenant
        Those of its job.
    """

    queue: str
    tenant: str
    amounts: Amounts
    created_ns: int
    ended_ns: int


@dataclass(frozen=True, slots=True)
class HeldUse:
    """Amounts that an attempt of a job holds or held, and where.

    Attributes
    ----------
    job_id
        ID of the job; of a task, that of its array.
    queue, tenant
        Those of the job.
    ended_ns
        None while it holds them.
    task
        ID of the task of an array; empty for other jobs.
    attempt
        Numbers of the job, of a task its own, and of the attempt.
    """

    job_id: str
    queue: str
    tenant: str
    amounts: Amounts = field(default_factory=lambda: NO_AMOUNTS)
    placements: tuple[Placement, ...] = ()
    created_ns: int = 0
    ended_ns: int | None = None
    task: str = ""
    attempt: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class CompletedRun:
    """Last attempt of a completed job.

    Attributes
    ----------
    tenant, user, name
        Those of its job.
    """

    tenant: str
    user: str
    name: str
    running_ns: int
    ended_ns: int


class Verb(Enum):
    """Commands for a deployment."""

    CREATE = "create"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class PendingCommand:
    """Command that the cluster has not confirmed."""

    job_id: str
    attempt: int
    cluster: str
    verb: Verb
    created_ns: int


@dataclass(frozen=True, slots=True)
class Event:
    """Event for timelines and live streams.

    Attributes
    ----------
    id
        Counter over all events; 0 until it is stored.
    tenant
        Tenant that can see the event; empty for events of the fleet, which all callers can see.
    job_id
        ID of the job; empty for events of the fleet.
    kind
        One of the kinds in docs/events.md, such as ``state``, ``drift`` or ``cluster``.
    state
        State of the job after the event; empty for other kinds.
    attempt
        Number of the attempt; 0 for none.
    actor
        Name of the token, or the component of Seaway that caused the event.
    reason
        Reason, a sentence for people.
    """

    at_ns: int
    kind: str
    reason: str
    actor: str
    tenant: str = ""
    job_id: str = ""
    state: str = ""
    attempt: int = 0
    id: int = 0


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """Key that a client sent with a submit, so that a repeated request has no effect.

    Attributes
    ----------
    digest
        Digest of the request body. The same key with another body is an error.
    """

    tenant: str
    key: str
    digest: str
    job_id: str
    created_ns: int


class Role(Enum):
    """Permissions of a token.

    Each role includes the previous ones, with three exceptions: only agents report measurements, a user reads its
    own tenant only, and a monitor reads no logs and manifests of jobs.
    """

    AGENT = "agent"
    """Report the measurements of one gateway, and read its targets."""
    VIEWER = "viewer"
    """Read the jobs of its tenant, and the fleet."""
    MONITOR = "monitor"
    """Read the jobs of all tenants, the fleet and all metrics."""
    USER = "user"
    """Submit and change jobs of its tenant."""
    OPERATOR = "operator"
    """Manage the jobs of all tenants, cordons, drains, queues, pools and policies."""
    ADMIN = "admin"
    """Manage tokens, tenants, the audit log and the database."""

    @property
    def of_tenant(self) -> bool:
        """True if its tokens belong to a tenant."""
        return self in (Role.VIEWER, Role.USER)

    @property
    def rank(self) -> int:
        """Position in the order of permissions, from 0."""
        return list(Role).index(self)


@dataclass(frozen=True, slots=True)
class Token:
    """Permission to use the API. The secret is shown once and never stored.

    Attributes
    ----------
    digest
        SHA-256 of the secret, hexadecimal. Secrets are long and random, so no slow hash is needed.
    tenant
        Tenant of a viewer or user; empty for other roles.
    gateway
        Gateway of an agent; empty for other roles.
    """

    id: str
    name: str
    digest: str
    role: Role
    tenant: str
    created_ns: int
    created_by: str
    expires_ns: int | None = None
    revoked_ns: int | None = None
    gateway: str = ""


@dataclass(frozen=True, slots=True)
class LastUse:
    """Last request with a credential.

    Attributes
    ----------
    name
        Name of the user or program.
    issuer
        Issuer of the credential; empty for Seaway's own tokens.
    token_id
        ID of the token; empty for another issuer.
    address
        Network address of the client.
    """

    name: str
    issuer: str
    token_id: str
    role: str
    tenant: str
    address: str
    used_ns: int


class Difference(NamedTuple):
    """Changed field of a record.

    Attributes
    ----------
    kind, name
        Kind of the record, such as ``queue``, and its name.
    field
        Path of the field, such as ``limit.gpus``.
    before, after
        Values as text; empty without one.
    """

    kind: str
    name: str
    field: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """Entry of the audit log, one for each request that changes something.

    Attributes
    ----------
    verb
        HTTP method and name of the route, or the command.
    target
        Affected object, such as a path.
    status
        HTTP status of the response.
    token_id
        ID of the token; empty for other credentials and for none.
    issuer
        Issuer of the credential; empty for Seaway's own tokens and for none.
    requests
        Number of requests that the entry stands for; more than 1 only for requests without a valid credential.
    changes
        Fields that the request changed, of the records that `differences` compares.
    """

    at_ns: int
    actor: str
    role: str
    tenant: str
    verb: str
    target: str
    status: int
    address: str = ""
    token_id: str = ""
    issuer: str = ""
    requests: int = 1
    changes: tuple[Difference, ...] = ()
    id: int = 0


@dataclass(frozen=True, slots=True)
class Cordon:
    """Cluster or node that accepts no new work.

    Attributes
    ----------
    node
        Name of the node; empty for the whole cluster.
    drain
        Whether its jobs are moved away as well.
    """

    cluster: str
    node: str
    drain: bool
    reason: str
    actor: str
    at_ns: int


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """A firing alert that someone takes care of.

    Attributes
    ----------
    name, of
        Rule of the alert, and its queue, cluster, gateway, task or link.
    actor
        Name of the token or user.
    """

    name: str
    of: str
    actor: str
    at_ns: int


@dataclass(frozen=True, slots=True)
class SavedFilter:
    """View of the list of jobs that a user stored under a name.

    Attributes
    ----------
    owner
        Name of the user, after the issuer if there is one.
    query
        Query parameters of the page, such as ``state=failed&sort=-ended``.
    """

    owner: str
    name: str
    query: str
    changed_ns: int


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """Facts of a cluster that an operator set."""

    cluster: str
    facts: Facts
    actor: str
    at_ns: int


@dataclass(frozen=True, slots=True)
class ClusterReport:
    """Connection to a cluster, as of a time.

    Attributes
    ----------
    state
        ``up``, ``stale`` or ``lost``.
    reason
        Reason why it does not respond; empty while it is up, or if unknown.
    reported_ns
        Wall-clock time of its last complete response.
    at_ns
        Time of this record.
    """

    cluster: str
    state: str
    reason: str
    reported_ns: int
    at_ns: int


@dataclass(frozen=True, slots=True)
class ClusterInventory:
    """Last reported nodes and facts of a cluster."""

    cluster: str
    inventory: Cluster


@dataclass(frozen=True, slots=True)
class FiringAlert:
    """An alert that fires.

    Attributes
    ----------
    name, of
        As in `Acknowledgement`.
    since_ns
        Wall-clock time at which the figure exceeded the threshold.
    """

    name: str
    of: str
    since_ns: int


@dataclass(frozen=True, slots=True)
class ScaleWindow:
    """Numbers of replicas that triggers of a job wanted lately, while it waits to shrink.

    Attributes
    ----------
    replicas
        Number of replicas of the job that they belong to.
    numbers
        Position of a trigger, time, and number, each, as JSON: ``[[0, 1767225600000000000, 5], ...]``.
    """

    job_id: str
    replicas: int
    numbers: str


@dataclass(frozen=True, slots=True)
class JobUse:
    """Measured use of the GPUs of a job over its life.

    Attributes
    ----------
    content
        Samples, as `seaway.application.fleet.gpu_use` packs them.
    """

    job_id: str
    content: bytes


@dataclass(frozen=True, slots=True)
class ClusterName:
    """Name of a cluster. No other cluster gets the name until the cluster is removed.

    Attributes
    ----------
    uid
        Permanent identity of the cluster; empty if it cannot be read.
    server
        Known address of the API server, used before the cluster responds. Empty once another cluster has that address.
    """

    name: str
    uid: str
    server: str


@dataclass(frozen=True, slots=True)
class ClusterSample:
    """Use of a cluster at one time.

    Attributes
    ----------
    state
        ``up``, ``stale`` or ``lost``.
    gpu_milli, gpu_memory_mib, cpu_milli, memory_mib
        Totals; with ``_used``, the allocated part.
    jobs
        Number of live attempts in the cluster.
    """

    at_ns: int
    cluster: str
    state: str
    nodes: int
    gpus: int
    gpu_milli: int
    gpu_milli_used: int
    gpu_memory_mib: int
    gpu_memory_mib_used: int
    cpu_milli: int
    cpu_milli_used: int
    memory_mib: int
    memory_mib_used: int
    jobs: int


@dataclass(frozen=True, slots=True)
class UsageSample:
    """Samples of the use of GPUs, and of jobs that wait, summed up over a step of time.

    Attributes
    ----------
    step_s
        Length of the step; one of `USAGE_STEPS_S`. The shortest steps have one sample each.
    at_ns
        Start of the step; the time of a single sample.
    kind
        ``fleet``, ``cluster``, or ``queue`` for the jobs of a tenant in a queue.
    name, tenant
        Name of the cluster or queue, and the tenant; empty if they do not apply.
    samples
        Number of samples of which the following amounts are the sums.
    gpu_milli, gpu_milli_used
        GPUs, thousandths: those that exist, and the allocated part. A slice counts as its larger share of cores and
        memory. Queues have no own ones.
    measured, gpu_milli_measured
        Number of samples with a measured use, and the sum of that use.
    running, waiting
        Jobs with an allocation, and waiting jobs.
    longest_wait_s
        Longest wait in any sample.
    started, waited_s
        Number of jobs that were placed in the step, and the sum of their waits.
    """

    step_s: int
    at_ns: int
    kind: str
    name: str = ""
    tenant: str = ""
    samples: int = 1
    gpu_milli: int = 0
    gpu_milli_used: int = 0
    measured: int = 0
    gpu_milli_measured: int = 0
    running: int = 0
    waiting: int = 0
    longest_wait_s: int = 0
    started: int = 0
    waited_s: int = 0


@dataclass(frozen=True, slots=True)
class LinkSample:
    """Measurement of a link at one time; values as in `seaway.domain.network.Link`.

    Attributes
    ----------
    latency_ns
        None if no probe was answered.
    path
        The active path; empty for the route of the underlying network.
    """

    at_ns: int
    source: str
    target: str
    latency_ns: int | None
    jitter_ns: int
    loss_ppm: int
    bandwidth_mbps: int
    used_mbps: int
    path: str = ""


@dataclass(frozen=True, slots=True)
class NetworkRecord:
    """Configuration of the network between gateways; one record at most.

    Attributes
    ----------
    text
        The document as JSON; empty after its removal, so that versions continue.
    version
        Counter of changes.
    actor
        Name of the token that last changed it.
    """

    text: str
    version: int
    actor: str
    at_ns: int
    id: int = 1


@dataclass(frozen=True, slots=True)
class AgentRecord:
    """State of the agent of a gateway since its first report.

    Attributes
    ----------
    started_ns, number
        Start time of the agent by its own clock, and number of its latest report. Older reports are replays.
    at_ns, address
        Time and source address of that report.
    reports, rounds
        Number of accepted reports and rounds, over all starts of the agent.
    dropped
        Number of rounds that the agent dropped because its queue was full, over all starts.
    discarded
        Number of invalid answers that the agent reported, over all starts.
    """

    gateway: str
    started_ns: int
    number: int
    at_ns: int
    address: str
    reports: int = 0
    rounds: int = 0
    dropped: int = 0
    discarded: int = 0


@dataclass(frozen=True, slots=True)
class PathRecord:
    """Selected and confirmed path from one gateway to another, or the gateway that carries the traffic of a cluster.

    Attributes
    ----------
    source, target
        The gateways. For the gateway of a cluster, `source` is empty, `target` the cluster and `active` the gateway.
    active, active_ns
        The selected path and the time of the selection. Empty without a selection: the configured order decides.
    applied, applied_ns
        The path that the gateway last confirmed, and the time; empty before the first confirmation.
    why
        Reason for the selection, a sentence for people.
    """

    source: str
    target: str
    active: str = ""
    active_ns: int = 0
    applied: str = ""
    applied_ns: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True)
class EvaluationRecord:
    """Stored result of `seaway evaluate`.

    Attributes
    ----------
    name
        Name of the evaluation.
    rows
        Rows (`seaway.learning.evaluation.summary.Row`), as a JSON list.
    actor, at_ns
        Name of the token that stored it, and the time.
    """

    name: str
    rows: str
    actor: str
    at_ns: int


@dataclass(frozen=True, slots=True)
class PolicyRecord:
    """Uploaded trained policy.

    Attributes
    ----------
    name
        Name of the policy, in queues and in its file.
    digest
        SHA-256 of its manifest, which contains the digest of its model; hexadecimal.
    content
        The policy file.
    actor, at_ns
        User and time of the upload.
    """

    name: str
    digest: str
    content: bytes
    actor: str
    at_ns: int


@dataclass(frozen=True, slots=True)
class ShadowResult:
    """Comparison of a shadow policy with the live policy.

    Attributes
    ----------
    queue, live, shadow
        The queue, its live policy and its shadow policy. Names of trained policies end with ``@`` and the beginning of
        the digest of the model.
    jobs
        Number of decided jobs. Here and in the other counts, a job that earlier comparisons include does not count.
    live_placed, shadow_placed
        Number of jobs that each policy placed.
    same_node
        Number of jobs that both policies placed on the same nodes.
    live_fragmentation_milli, shadow_fragmentation_milli
        Fragmentation of the fleet after the decisions of each policy, thousandths.
    answered
        Number of jobs that the shadow policy decided itself, including deferrals. It is not queried if nothing fits.
    fallbacks
        Number of jobs that the fallback decided, wholly or in part.
    tries
        Number of decided jobs, with those that earlier comparisons include; 0 if unknown.
    live_wait_ms, shadow_wait_ms
        Sum of the waits of the jobs that each policy placed, milliseconds.
    """

    at_ns: int
    queue: str
    live: str
    shadow: str
    jobs: int
    live_placed: int
    shadow_placed: int
    same_node: int
    live_fragmentation_milli: int
    shadow_fragmentation_milli: int
    answered: int = 0
    fallbacks: int = 0
    tries: int = 0
    live_wait_ms: int = 0
    shadow_wait_ms: int = 0
    id: int = 0


PART_BYTES = 512 << 10
"""Size of all parts of an archive but the last one, bytes. A part fits in a request and in a statement."""

BUCKET_PART_BYTES = 16 << 20
"""The same for archives in a bucket. A smaller archive is sent as a whole."""


@dataclass(frozen=True, slots=True)
class WorkdirLimits:
    """Limits of archives.

    Attributes
    ----------
    archive_bytes
        Maximum size of an archive.
    tenant_bytes
        Maximum size of all archives of a tenant.
    retention_ns
        Time after its last use at which an archive is removed.
    """

    archive_bytes: int = 100 << 20
    tenant_bytes: int = 2 << 30
    retention_ns: int = 72 * 3600 * NS_PER_S


@dataclass(frozen=True, slots=True)
class WorkdirRecord:
    """Stored archive with the working directory of jobs of a tenant.

    Attributes
    ----------
    digest
        ``sha256:`` and the digest of its content.
    secret
        Key of the tokens with which pods fetch it.
    used_ns
        Last time at which it was sent, or at which a job was known to need it.
    bucket
        Address of the bucket that has it; empty for the database.
    """

    tenant: str
    digest: str
    size_bytes: int
    secret: str
    created_by: str
    created_ns: int
    used_ns: int
    bucket: str = ""

    @property
    def parts(self) -> range:
        """Numbers of its parts in the database."""
        return range(0 if self.bucket else -(-self.size_bytes // PART_BYTES))


@dataclass(frozen=True, slots=True)
class WorkdirPart:
    """Part of an archive, whose record is stored after all parts.

    Attributes
    ----------
    content
        Content as base64; empty in lists.
    """

    tenant: str
    digest: str
    number: int
    content: str
    at_ns: int
