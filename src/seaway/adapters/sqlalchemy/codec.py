"""Conversion between records and rows. It is hand-written, because it runs for every row that is read or written.

A row is a tuple in the order of its table's columns.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any

import orjson
from pydantic import TypeAdapter

from seaway.application.records import (
    AuditEntry,
    ClusterFacts,
    ClusterInventory,
    ClusterReport,
    Cordon,
    Difference,
    Event,
    HeldUse,
    IdempotencyKey,
    JobUse,
    PendingCommand,
    PolicyRecord,
    Role,
    ScaleWindow,
    Token,
    Verb,
)
from seaway.domain import job_spec as ids
from seaway.domain.amounts import NO_AMOUNTS, Amounts
from seaway.domain.attempt import Attempt
from seaway.domain.cluster import Cluster
from seaway.domain.dependencies import After
from seaway.domain.errors import InvariantError
from seaway.domain.facts import Facts
from seaway.domain.job_record import JobRecord, Pair
from seaway.domain.job_spec import JobSpec
from seaway.domain.job_state import AttemptState, JobState
from seaway.domain.notifications import Channel, Delivery, DeliveryState, Notification, Occasion
from seaway.domain.placement import Placement
from seaway.domain.queues import Backfill, Elastic, Order, Preemption, Preempts, Queue, Reclaim
from seaway.domain.reasons import TEXTS, Params, Reason
from seaway.domain.reservations import AdvanceReservation
from seaway.domain.tenancy import Pool, Quota, Tenant

Row = tuple[Any, ...]

_SPEC = TypeAdapter(JobSpec)
_PLACEMENTS = TypeAdapter(tuple[Placement, ...])
_PAIR = TypeAdapter(Pair)
_FACTS = TypeAdapter(Facts)
_INVENTORY = TypeAdapter(Cluster)
_QUOTAS = TypeAdapter(Mapping[str, Quota])
_AWAITS = TypeAdapter(tuple[After, ...])

_JOB_STATES = {state.value: state for state in JobState}
_ATTEMPT_STATES = {state.value: state for state in AttemptState}
_VERBS = {verb.value: verb for verb in Verb}
_ROLES = {role.value: role for role in Role}


def number(job_id: str) -> int | None:
    """Return the number of a job ID; None if it is invalid."""
    return ids.decode(job_id) or None


@lru_cache(maxsize=4096)
def require_number(job_id: str) -> int:
    """Return the number of a job ID.

    Raises
    ------
    InvariantError
        When it is invalid.
    """
    found = number(job_id)
    if found is None:
        raise InvariantError(f"{job_id!r} is not an id of a job; draw it from seaway.domain.job_spec.JobIds")
    return found


def spec_text(spec: JobSpec) -> str:
    """Return a spec as JSON without default values."""
    return _SPEC.serializer.to_json(spec, exclude_defaults=True).decode()


LARGE_SPEC = 16 << 10
"""Length of a spec above which only the latest few are cached, characters."""


def read_spec(text: str) -> JobSpec:
    """Parse the output of `spec_text`."""
    return _large_spec(text) if len(text) > LARGE_SPEC else _small_spec(text)


_small_spec = lru_cache(maxsize=1024)(_SPEC.validate_json)
_large_spec = lru_cache(maxsize=8)(_SPEC.validate_json)


def names_text(names: Sequence[str]) -> str:
    """Return names as JSON."""
    return orjson.dumps(names).decode() if names else "[]"


def read_names(text: str) -> tuple[str, ...]:
    """Parse the output of `names_text`."""
    return () if text == "[]" else tuple(orjson.loads(text))


SEPARATOR = "\x1f"
"""ASCII unit separator."""


def reason_text(reason: str) -> str:
    """Return a reason as it is stored: the text, and after separators its code, and its parameters as JSON."""
    plain = reason.replace(SEPARATOR, " ")
    if not isinstance(reason, Reason):
        return plain
    coded = f"{plain}{SEPARATOR}{reason.code}"
    if not reason.params:
        return coded
    params = orjson.dumps(reason.params, _nested, orjson.OPT_PASSTHROUGH_SUBCLASS).decode()
    return f"{coded}{SEPARATOR}{params}"


def _nested(value: str) -> object:
    return {"code": value.code, "params": value.params} if isinstance(value, Reason) else str(value)


@lru_cache(maxsize=4096)
def read_reason(stored: str) -> str:
    """Parse the output of `reason_text`. A text without a code is one that a person or another program wrote."""
    plain, *coded = stored.split(SEPARATOR)
    if not coded:
        return plain
    return Reason.stored(plain, coded[0], _params(orjson.loads(coded[1])) if len(coded) > 1 else {})


def _params(stored: dict[str, Any]) -> Params:
    return {name: _param(value) for name, value in stored.items()}


def _param(value: Any) -> Any:  # noqa: ANN401  # parsed JSON
    if isinstance(value, list):
        return tuple(map(_param, value))
    if not isinstance(value, dict):
        return value
    code, params = value["code"], _params(value["params"])
    return Reason(code, **params) if code in TEXTS else code  # a newer version may have stored it


def job_row(job: JobRecord) -> Row:
    """Encode a job without its spec."""
    spec = job.spec
    return (
        require_number(job.id),
        spec.tenant,
        spec.queue,
        spec.name,
        job.state.value,
        job.submitted_by,
        job.submitted_ns,
        job.changed_ns,
        job.started_ns,
        job.ended_ns,
        job.not_before_ns,
        job.version,
        job.attempt,
        job.failures,
        names_text(job.clusters),
        names_text(job.nodes),
        reason_text(job.reason),
        job.completed,
        _AWAITS.dump_json(job.awaits).decode() if job.awaits else None,
        None if job.pair is None else _PAIR.dump_json(job.pair, exclude_defaults=True).decode(),
        require_number(job.array) if job.array else 0,
        job.unstarted or None,
        job.expires_ns,
        job.held_replicas,
    )


def read_job(row: Sequence[Any]) -> JobRecord:
    """Decode a job from its row, whose last value is the text of its spec."""
    (number, _, _, _, state, submitted_by, submitted_ns, changed_ns, started_ns, ended_ns, not_before_ns, *more) = row
    version, attempt, failures, clusters, nodes, reason, completed, awaits, pair, array, unstarted, *last = more
    expires_ns, held_replicas, spec = last
    return JobRecord(
        ids.encode(number),
        read_spec(spec),
        _JOB_STATES[state],
        submitted_ns,
        changed_ns,
        submitted_by,
        read_reason(reason),
        version,
        attempt,
        failures,
        read_names(clusters),
        read_names(nodes),
        started_ns,
        ended_ns,
        not_before_ns,
        completed,
        _AWAITS.validate_json(awaits) if awaits else (),
        None if pair is None else _PAIR.validate_json(pair),
        ids.encode(array) if array else "",
        unstarted or "",
        expires_ns,
        held_replicas,
    )


def attempt_row(attempt: Attempt, spec: str) -> Row:
    """Encode an attempt; `spec` is the text of its spec."""
    return (
        require_number(attempt.job_id),
        attempt.number,
        attempt.state.value,
        spec,
        attempt.policy,
        _PLACEMENTS.serializer.to_json(attempt.placements, exclude_defaults=True).decode(),
        attempt.created_ns,
        attempt.expires_ns,
        reason_text(attempt.why),
        reason_text(attempt.reason),
        attempt.running_ns,
        attempt.ended_ns,
        orjson.dumps(attempt.amounts).decode(),
    )


def read_attempt(row: Sequence[Any]) -> Attempt:
    """Decode an attempt."""
    job_id, number, state, text, policy, placements, created_ns, expires_ns, why, reason, *more = row
    running_ns, ended_ns, amounts = more
    return Attempt(
        ids.encode(job_id),
        number,
        _ATTEMPT_STATES[state],
        read_spec(text),
        policy,
        _PLACEMENTS.validate_json(placements),
        created_ns,
        expires_ns,
        read_reason(why),
        read_reason(reason),
        running_ns,
        ended_ns,
        orjson.loads(amounts),
    )


def read_held_use(row: Sequence[Any]) -> HeldUse:
    """Decode the columns of `statements.held_uses`."""
    owner, job, number, queue, tenant, amounts, placements, created_ns, ended_ns = row
    where, found = (ids.encode(owner), queue, tenant), _PLACEMENTS.validate_json(placements)
    task = "" if job == owner else ids.encode(job)
    return HeldUse(*where, read_amounts(amounts), found, created_ns, ended_ns, task, (job, number))


def pending_command_row(row: PendingCommand) -> Row:
    """Encode a pending command."""
    job_id = require_number(row.job_id)
    return (job_id, row.attempt, row.cluster, row.verb.value, row.created_ns)


def read_pending_command(row: Sequence[Any]) -> PendingCommand:
    """Decode a pending command."""
    job_id, attempt, cluster, verb, created_ns = row
    return PendingCommand(ids.encode(job_id), attempt, cluster, _VERBS[verb], created_ns)


def audit_row(row: AuditEntry) -> Row:
    """Encode an audit entry."""
    changes = orjson.dumps([[*each] for each in row.changes]).decode() if row.changes else None
    return (*(getattr(row, each.name) for each in fields(row)[:-2]), changes, row.id)


def read_audit(row: Sequence[Any]) -> AuditEntry:
    """Decode an audit entry."""
    changes = tuple(Difference(*each) for each in orjson.loads(row[-2])) if row[-2] else ()
    return AuditEntry(*[*row[:-2], changes, row[-1]])


def event_row(row: Event) -> Row:
    """Encode an event. An event of the fleet has job 0."""
    job_id = require_number(row.job_id) if row.job_id else 0
    reason = reason_text(row.reason)
    return (row.at_ns, row.kind, reason, row.actor, row.tenant, job_id, row.state, row.attempt, row.id)


def read_event(row: Sequence[Any]) -> Event:
    """Decode an event."""
    at_ns, kind, reason, actor, tenant, job_id, *more = row
    return Event(at_ns, kind, read_reason(reason), actor, tenant, ids.encode(job_id) if job_id else "", *more)


def key_row(row: IdempotencyKey) -> Row:
    """Encode an idempotency key."""
    return (row.tenant, row.key, row.digest, require_number(row.job_id), row.created_ns)


def read_key(row: Sequence[Any]) -> IdempotencyKey:
    """Decode an idempotency key."""
    tenant, key, digest, job_id, created_ns = row
    return IdempotencyKey(tenant, key, digest, ids.encode(job_id), created_ns)


def token_row(row: Token) -> Row:
    """Encode a token."""
    head = (row.id, row.name, row.digest, row.role.value, row.tenant)
    return (*head, row.created_ns, row.created_by, row.expires_ns, row.revoked_ns, row.gateway)


def read_token(row: Sequence[Any]) -> Token:
    """Decode a token."""
    token_id, name, digest, role, *more = row
    return Token(token_id, name, digest, _ROLES[role], *more)


def cordon_row(row: Cordon) -> Row:
    """Encode a cordon."""
    return (row.cluster, row.node, int(row.drain), row.reason, row.actor, row.at_ns)


def read_cordon(row: Sequence[Any]) -> Cordon:
    """Decode a cordon."""
    cluster, node, drain, *more = row
    return Cordon(cluster, node, bool(drain), *more)


def reservation_row(row: AdvanceReservation) -> Row:
    """Encode an advance reservation."""
    places = names_text(sorted(row.clusters)), names_text(sorted(row.nodes))
    holder = row.tenant, row.queue, row.gpus, row.gpu_model
    return (row.name, row.starts_ns, row.ends_ns, *holder, *places, int(row.drain), row.description)


def read_reservation(row: Sequence[Any]) -> AdvanceReservation:
    """Decode an advance reservation."""
    name, starts_ns, ends_ns, tenant, queue, gpus, model, clusters, nodes, drain, description = row
    places = frozenset(read_names(clusters)), frozenset(read_names(nodes))
    return AdvanceReservation(name, starts_ns, ends_ns, tenant, queue, gpus, model, *places, bool(drain), description)


def notification_row(row: Notification) -> Row:
    """Encode a notification."""
    head = (row.tenant, row.name, row.channel.value, row.url, names_text(row.addresses), row.sealed)
    return (*head, names_text(row.on), row.queue, row.job, row.wait_limit_s, row.created_by, row.changed_ns)


def read_notification(row: Sequence[Any]) -> Notification:
    """Decode a notification."""
    tenant, name, channel, url, addresses, sealed, on, *more = row
    occasions = tuple(map(Occasion, read_names(on)))
    receiver = Channel(channel), url, read_names(addresses), sealed
    return Notification(tenant, name, *receiver, occasions, *more)


def delivery_row(row: Delivery) -> Row:
    """Encode a message of a notification."""
    job = require_number(row.job_id), row.job_name
    return (
        *(row.id, row.tenant, row.receiver, *job, row.occasion.value, row.body, row.created_ns, row.next_ns),
        *(row.tries, row.state.value, row.error),
    )


def read_delivery(row: Sequence[Any]) -> Delivery:
    """Decode a message of a notification."""
    delivery_id, tenant, receiver, job_id, job_name, occasion, body, *times, tries, state, error = row
    created_ns, next_ns = times
    job, about = (ids.encode(job_id), job_name), Occasion(occasion)
    return Delivery(
        delivery_id, tenant, receiver, *job, about, body, created_ns, next_ns, tries, DeliveryState(state), error
    )


def cluster_facts_row(row: ClusterFacts) -> Row:
    """Encode the facts of a cluster."""
    return (row.cluster, _FACTS.dump_json(row.facts, exclude_defaults=True).decode(), row.actor, row.at_ns)


def read_cluster_facts(row: Sequence[Any]) -> ClusterFacts:
    """Decode the facts of a cluster."""
    cluster, facts, *more = row
    return ClusterFacts(cluster, _FACTS.validate_json(facts), *more)


def cluster_report_row(row: ClusterReport) -> Row:
    """Encode the connection to a cluster."""
    return row.cluster, row.state, reason_text(row.reason), row.reported_ns, row.at_ns


def read_cluster_report(row: Sequence[Any]) -> ClusterReport:
    """Decode the connection to a cluster."""
    cluster, state, reason, *times = row
    return ClusterReport(cluster, state, read_reason(reason), *times)


def cluster_inventory_row(row: ClusterInventory) -> Row:
    """Encode an inventory."""
    content = _INVENTORY.serializer.to_json(row.inventory, exclude_defaults=True)
    return row.cluster, b64encode(zlib.compress(content)).decode("ascii")


def read_cluster_inventory(row: Sequence[Any]) -> ClusterInventory:
    """Decode an inventory."""
    cluster, content = row
    return ClusterInventory(cluster, _INVENTORY.validate_json(zlib.decompress(b64decode(content))))


def scale_window_row(row: ScaleWindow) -> Row:
    """Encode the numbers of replicas of a job."""
    return require_number(row.job_id), row.replicas, row.numbers


def read_scale_window(row: Sequence[Any]) -> ScaleWindow:
    """Decode the numbers of replicas of a job."""
    job_id, *more = row
    return ScaleWindow(ids.encode(job_id), *more)


def job_use_row(row: JobUse) -> Row:
    """Encode the measured use of a job."""
    return require_number(row.job_id), b64encode(row.content).decode("ascii")


def read_job_use(row: Sequence[Any]) -> JobUse:
    """Decode the measured use of a job."""
    return JobUse(ids.encode(row[0]), b64decode(row[1]))


def policy_row(row: PolicyRecord) -> Row:
    """Encode a trained policy."""
    return (row.name, row.digest, b64encode(row.content).decode("ascii"), row.actor, row.at_ns)


def read_policy(row: Sequence[Any]) -> PolicyRecord:
    """Decode a trained policy."""
    name, digest, content, *more = row
    return PolicyRecord(name, digest, b64decode(content), *more)


def pool_row(row: Pool) -> Row:
    """Encode a pool."""
    return (row.name, names_text(sorted(row.clusters)), row.description)


def read_pool(row: Sequence[Any]) -> Pool:
    """Decode a pool."""
    name, clusters, description = row
    return Pool(name, frozenset(read_names(clusters)), description)


def amounts_json(amounts: Amounts) -> str:
    """Return amounts as JSON, with the resources in alphabetical order."""
    return orjson.dumps(dict(amounts), option=orjson.OPT_SORT_KEYS).decode() if amounts else "{}"


def read_amounts(text: str) -> Amounts:
    """Parse the output of `amounts_json`."""
    return NO_AMOUNTS if text == "{}" else orjson.loads(text)


def tenant_row(row: Tenant) -> Row:
    """Encode a tenant."""
    quotas = _QUOTAS.dump_json(row.quotas, exclude_defaults=True).decode()
    return row.name, row.description, row.weight, quotas, names_text(row.secrets)


def read_tenant(row: Sequence[Any]) -> Tenant:
    """Decode a tenant."""
    name, description, weight, quotas, secrets = row
    return Tenant(name, description, weight, _QUOTAS.validate_json(quotas), read_names(secrets))


def queue_row(row: Queue) -> Row:
    """Encode a queue."""
    return (
        row.name,
        row.tenant,
        row.pool,
        row.policy,
        row.shadow,
        int(row.open),
        row.description,
        names_text(row.allowed_taints),
        names_text(row.allowed_node_labels),
        row.parent,
        row.weight,
        row.priority,
        amounts_json(row.guarantee),
        amounts_json(row.limit),
        row.order.value,
        row.backfill.value,
        row.preemption.value,
        row.reclaim.value,
        int(row.preemptible),
        row.min_runtime_s,
        row.ageing_s,
        amounts_json(row.borrowing_limit),
        amounts_json(row.lending_limit),
        orjson.dumps(dict(row.policy_options), option=orjson.OPT_SORT_KEYS).decode(),
        row.start_timeout_s,
        row.grow_cooldown_s,
        row.elastic.value,
        row.preempts.value,
    )


def read_queue(row: Sequence[Any]) -> Queue:
    """Decode a queue."""
    name, tenant, pool, policy, shadow, is_open, description, taints, labels, *more = row
    parent, weight, priority, guarantee, limit, order, backfill, preemption, reclaim, preemptible, *more = more
    min_runtime_s, ageing_s, borrowing_limit, lending_limit, policy_options, *more = more
    start_timeout_s, grow_cooldown_s, elastic, preempts = more
    return Queue(
        name,
        tenant,
        pool,
        policy,
        shadow,
        bool(is_open),
        description,
        read_names(taints),
        read_names(labels),
        parent,
        weight,
        priority,
        read_amounts(guarantee),
        read_amounts(limit),
        Order(order),
        Backfill(backfill),
        Preemption(preemption),
        Reclaim(reclaim),
        bool(preemptible),
        min_runtime_s,
        ageing_s,
        read_amounts(borrowing_limit),
        read_amounts(lending_limit),
        orjson.loads(policy_options),
        start_timeout_s,
        grow_cooldown_s,
        Elastic(elastic),
        Preempts(preempts),
    )
