"""Stored records: one frozen value per row, for every database.

Times are nanoseconds since 1970 by the wall clock; None if something has not happened.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from seaway.domain.job_spec import JobSpec
from seaway.domain.job_state import AttemptState, JobState
from seaway.domain.placement import Placement


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job.

    Attributes
    ----------
    id
        See `seaway.domain.job_spec`.
    spec
        The request, with all later changes.
    state, reason
        Its state, and why: a sentence for people.
    version
        Counter of stored changes. A caller that changes a job can name the version that it saw.
    attempt
        Number of the latest attempt; 0 before the first.
    failures
        Number of attempts that failed by themselves, not because of their node or device.
    clusters, nodes
        Placement of its latest attempt, each name once; empty before the first.
    submitted_by
        Name of the token, or ``anonymous``.
    not_before_ns
        Time of the next attempt after a failure.
    """

    id: str
    spec: JobSpec
    state: JobState
    submitted_ns: int
    changed_ns: int
    submitted_by: str
    reason: str = ""
    version: int = 1
    attempt: int = 0
    failures: int = 0
    clusters: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    started_ns: int | None = None
    ended_ns: int | None = None
    not_before_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One placement of a job, and what became of it.

    Attributes
    ----------
    number
        From 1; the latest attempt's number is the job's.
    spec
        What it was placed and started by; a later change of the job does not touch it.
    policy
        Which policy chose.
    placements
        Node and devices of each replica.
    why
        One sentence on the choice.
    expires_ns
        While assumed: until when a cluster has to confirm it.
    reason
        Why it ended.
    """

    job_id: str
    number: int
    state: AttemptState
    spec: JobSpec
    policy: str
    placements: tuple[Placement, ...]
    created_ns: int
    expires_ns: int
    why: str = ""
    reason: str = ""
    running_ns: int | None = None
    ended_ns: int | None = None

    @property
    def clusters(self) -> tuple[str, ...]:
        """The clusters it is in, each once, in the order of its replicas."""
        if len(self.placements) == 1:
            return (self.placements[0].cluster,)
        return tuple(dict.fromkeys(placement.cluster for placement in self.placements))


class Verb(Enum):
    """Commands for a deployment."""

    CREATE = "create"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class PendingCommand:
    """A command that its cluster has not confirmed."""

    job_id: str
    attempt: int
    cluster: str
    verb: Verb
    created_ns: int


@dataclass(frozen=True, slots=True)
class Event:
    """An event for timelines and live streams.

    Attributes
    ----------
    id
        Counter over all events; 0 until it is stored.
    tenant
        Tenant that can see it; empty for events of the fleet, which all callers can see.
    job_id
        Its job; empty for events of the fleet.
    kind
        One of the kinds in docs/events.md, such as ``state``, ``drift`` or ``cluster``.
    state
        The job's state after it; empty for other kinds.
    attempt
        Number of the attempt; 0 for none.
    actor
        Name of the token, or the part of Seaway that caused it.
    reason
        Why, a sentence for people.
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
    """A key that a client sent with a submit, so that sending it again does nothing.

    Attributes
    ----------
    digest
        Of the request's body: the same key with another body is an error.
    """

    tenant: str
    key: str
    digest: str
    job_id: str
    created_ns: int


class Role(Enum):
    """Permissions of a token. Each role includes those before it, except that only agents report measurements."""

    AGENT = "agent"
    """Report what the agent of one gateway measured, and ask what to measure."""
    VIEWER = "viewer"
    """Look at the jobs of its tenant, and at the fleet."""
    USER = "user"
    """Submit and change jobs of its tenant."""
    OPERATOR = "operator"
    """All tenants' jobs; cordon, drain, queues, pools, policies."""
    ADMIN = "admin"
    """Tokens, tenants, the audit log, the database."""

    @property
    def rank(self) -> int:
        """Position in the order of power, from 0."""
        return list(Role).index(self)


@dataclass(frozen=True, slots=True)
class Token:
    """Leave to use the API. The secret itself is shown once and never kept.

    Attributes
    ----------
    digest
        SHA-256 of the secret, hexadecimal. Secrets are long and random, so that no slow hash is needed.
    tenant
        Whose; empty for operators and admins, who are of no tenant, and for agents.
    gateway
        For which gateway an agent speaks; empty for others.
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
class AuditEntry:
    """Entry of the audit log, stored for each request that changes something.

    Attributes
    ----------
    verb
        HTTP method and name of the route, or the command.
    target
        Affected object, such as a path.
    status
        HTTP status of the answer.
    """

    at_ns: int
    actor: str
    role: str
    tenant: str
    verb: str
    target: str
    status: int
    address: str = ""
    id: int = 0


@dataclass(frozen=True, slots=True)
class Cordon:
    """A cluster, or one node of it, that takes no new work.

    Attributes
    ----------
    node
        Empty for the whole cluster.
    drain
        Whether what runs there is moved away as well.
    """

    cluster: str
    node: str
    drain: bool
    reason: str
    actor: str
    at_ns: int


@dataclass(frozen=True, slots=True)
class ClusterName:
    """Name of a cluster. No other cluster gets it before it is removed.

    Attributes
    ----------
    uid
        Permanent identity of the cluster; empty if it cannot be read.
    server
        Known address of its API server, used before it answers; empty once another cluster has that address.
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
        Its totals; with ``_used``, the allocated part.
    jobs
        Live attempts in it.
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
class LinkSample:
    """Measurement of a link at one time; figures as in `seaway.domain.network.Link`.

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
        Start of the agent by its own clock, and number of its latest report. Older reports are replays.
    at_ns, address
        Time and source address of that report.
    reports, rounds
        Accepted so far, over all its starts.
    dropped
        Rounds that it dropped because its queue was full, over all its starts.
    discarded
        Invalid answers that it reported, over all its starts.
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
    """Selected or confirmed path from one gateway to another.

    Attributes
    ----------
    active, active_ns
        The selected path and its time; empty without a selection, when the configured order decides.
    applied, applied_ns
        The path that the gateway last confirmed, and when; empty before that.
    why
        Why this path, a sentence for people.
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
        Its name.
    rows
        Its rows (`seaway.learning.evaluation.row.Row`), as a list in JSON.
    actor, at_ns
        Name of the token that stored it, and when.
    """

    name: str
    rows: str
    actor: str
    at_ns: int


@dataclass(frozen=True, slots=True)
class PolicyRecord:
    """A trained policy that a user brought.

    Attributes
    ----------
    name
        As queues name it, and as its file does.
    digest
        SHA-256 of what it says of itself, which has the digest of its model; hexadecimal.
    content
        The policy file.
    actor, at_ns
        Who brought it, and when.
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
        The queue, its policy, and the shadow policy; trained ones with ``@`` and the beginning of their model's digest.
    jobs
        Number of decided jobs.
    live_placed, shadow_placed
        Placed jobs of each.
    same_node
        Jobs that both placed on the same nodes.
    live_fragmentation_milli, shadow_fragmentation_milli
        Fragmentation of the fleet after each, thousandths.
    answered
        Jobs that the shadow policy decided itself, including deferrals. It is not asked if nothing fits.
    fallbacks
        Jobs that the fallback decided, wholly or in part.
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
    id: int = 0
