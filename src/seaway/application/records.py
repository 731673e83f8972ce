"""What is kept: one frozen value for each row, whatever the database.

Times are nanoseconds since 1970 by the wall clock; None where something has not happened.
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
        What was asked for, with all changes since.
    state, reason
        Where it is on its way, and why: a sentence for people.
    version
        Counts up with every change that is stored; who changes a job says which version it saw.
    attempt
        Number of the latest attempt; 0 before the first.
    failures
        How many attempts failed by themselves, not because what they ran on did.
    clusters, nodes
        Where its latest attempt went, each name once; empty before the first.
    submitted_by
        Who submitted it: the name of a token, or ``anonymous``.
    not_before_ns
        When it may be tried next, after a failure.
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
    """What a cluster is told to do with a deployment."""

    CREATE = "create"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class PendingCommand:
    """Something that a cluster is to be told, until it confirmed it."""

    job_id: str
    attempt: int
    cluster: str
    verb: Verb
    created_ns: int


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, for whoever looks at a timeline or follows live.

    Attributes
    ----------
    id
        Counts up over all events; 0 until it is stored.
    tenant
        Whose event it is; empty for the fleet's own, which everybody may see.
    job_id
        Which job it is about; empty for the fleet's own.
    kind
        What happened, one word of the list in docs/events.md, like ``state``, ``drift`` or ``cluster``.
    state
        The job's state after it; empty for other kinds.
    attempt
        Which attempt; 0 for none.
    actor
        Who did it: the name of a token, or the part of Seaway that did.
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
    """What a token allows; each includes what stands before it, but for an agent's: others do not report."""

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
    """Who asked for what, and what came of it; kept for every request that changes something.

    Attributes
    ----------
    verb
        HTTP method and the route's name, or the command.
    target
        What it was done to, like a path.
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
    """Which cluster a name was given to; no other gets it before that one is forgotten.

    Attributes
    ----------
    uid
        What tells the cluster from all others for as long as it lives; empty where that may not be read.
    server
        By what its API server is known where that is so, and before it answers; empty once another cluster is there.
    """

    name: str
    uid: str
    server: str


@dataclass(frozen=True, slots=True)
class ClusterSample:
    """How full a cluster was at one moment.

    Attributes
    ----------
    state
        ``up``, ``stale`` or ``lost``.
    gpu_milli, gpu_memory_mib, cpu_milli, memory_mib
        What it has, and with ``_used`` what of that is taken.
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
    """What was measured of a link at one moment; figures as in `seaway.domain.network.Link`.

    Attributes
    ----------
    latency_ns
        None when nothing answered.
    path
        Which path the link took; empty for the way that routes lead.
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
    """How the network between gateways is meant to be; there is one of it, or none.

    Attributes
    ----------
    text
        The document as JSON; empty after it was removed, so that versions go on counting.
    version
        Counts up with every change.
    actor
        Who changed it last: the name of a token.
    """

    text: str
    version: int
    actor: str
    at_ns: int
    id: int = 1


@dataclass(frozen=True, slots=True)
class AgentRecord:
    """What is known of the agent of a gateway since it reported first.

    Attributes
    ----------
    started_ns, number
        Of its latest report: when the agent started, by its own clock, and which of its reports since that was.
        What is not behind them is a replay.
    at_ns, address
        When that came, and from where.
    reports, rounds
        How many were taken, over all its starts.
    dropped
        Rounds that it gave up because too many waited, over all its starts.
    discarded
        Impossible answers that it told of, over all its starts.
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
    """Which path traffic from one gateway to another takes, where that was chosen or confirmed.

    Attributes
    ----------
    active, active_ns
        Which it is to take, and since when; empty where no one chose: then what is configured decides.
    applied, applied_ns
        Which one the gateway said that it wrote last, and when it said so; empty before it did.
    why
        Why this one, a sentence for people.
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
    """What `seaway evaluate` found, kept by somebody.

    Attributes
    ----------
    name
        What it is called.
    rows
        Its rows (`seaway.learning.evaluation.row.Row`), as a list in JSON.
    actor, at_ns
        Who brought it, and when.
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
    """How a challenger decided where the live policy decided.

    Attributes
    ----------
    queue, live, shadow
        Which queue, its policy, and the challenger; trained ones with ``@`` and the beginning of their model's digest.
    jobs
        How many jobs were decided.
    live_placed, shadow_placed
        How many each placed.
    same_node
        How many both put on the same nodes.
    live_fragmentation_milli, shadow_fragmentation_milli
        Fragmentation of the fleet after each, thousandths.
    answered
        How many of the jobs the challenger decided itself, also to have them wait; it is not asked where nothing fits.
    fallbacks
        How many something else decided in the challenger's place, wholly or in part.
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
