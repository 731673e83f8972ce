"""Tables after the newest migration.

If a row has exactly the fields of a record, its columns are in the same order. Statements name the columns. Job IDs
are stored as numbers (`seaway.domain.job_spec`), enums by value, and collections as JSON. Reasons are English texts,
which their codes and parameters follow (`seaway.adapters.sqlalchemy.codec.reason_text`).
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, MetaData, PrimaryKeyConstraint, String, Table, Text, text
from sqlalchemy.dialects.mysql import LONGTEXT
from sqlalchemy.types import TypeEngine

METADATA = MetaData()

NAME = 255
"""Maximum number of characters of a name in a key; a MariaDB index can contain three such names."""


def short(length: int = NAME) -> TypeEngine[str]:
    """Return the type of a text that every database compares and sorts by bytes."""
    return String(length).with_variant(String(length, collation="C"), "postgresql")


def long() -> TypeEngine[str]:
    """Return the type of a text of any length."""
    return Text().with_variant(LONGTEXT(), "mysql", "mariadb")


def _table(name: str, *parts: Column[str] | Column[int] | Index | PrimaryKeyConstraint, rowid: bool = True) -> Table:
    """Return a table. Without `rowid`, SQLite stores its rows in the primary key."""
    return Table(
        name,
        METADATA,
        *parts,
        sqlite_with_rowid=rowid,
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
    )


def _name(name: str) -> Column[str]:
    return Column(name, short(), nullable=False)


def _word(name: str) -> Column[str]:
    return Column(name, short(16), nullable=False)


def _text(name: str) -> Column[str]:
    return Column(name, long(), nullable=False)


def _number(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False)


def _maybe(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=True)


def _maybe_text(name: str) -> Column[str]:
    return Column(name, long(), nullable=True)


def _count(name: str) -> Column[int]:
    return Column(name, Integer, nullable=False)


def _key(*names: str) -> PrimaryKeyConstraint:
    return PrimaryKeyConstraint(*names)


def _id(name: str = "id") -> Column[int]:
    return Column(name, BigInteger().with_variant(Integer, "sqlite"), nullable=False, autoincrement=False)


LEASE = _table("lease", _id(), _number("epoch"), _name("owner"), _key("id"))
"""Lease: one row with the writing process and the number of its changes."""

JOBS = _table(
    "jobs",
    _id(),
    _name("tenant"),
    _name("queue"),
    _name("name"),
    _word("state"),
    _name("submitted_by"),
    _number("submitted_ns"),
    _number("changed_ns"),
    _maybe("started_ns"),
    _maybe("ended_ns"),
    _maybe("not_before_ns"),
    _number("version"),
    _count("attempt"),
    _count("failures"),
    _text("clusters"),
    _text("nodes"),
    _text("reason"),
    _count("completed"),
    _maybe_text("awaits"),
    _maybe_text("pair"),
    _number("array_id"),
    _maybe_text("unstarted"),
    _maybe("expires_ns"),
    _count("held_replicas"),
    _key("id"),
    Index("ix_jobs_state", "state", "id"),
    Index("ix_jobs_array", "array_id", "state", "id"),
    Index(
        "ix_jobs_ended",
        *("array_id", "state", "ended_ns", "id", "started_ns"),
        sqlite_where=text("ended_ns IS NOT NULL"),
        postgresql_where=text("ended_ns IS NOT NULL"),
    ),
    Index("ix_jobs_tenant", "array_id", "tenant", "state", "id"),
    Index("ix_jobs_queue", "array_id", "queue", "state", "id"),
    Index("ix_jobs_submitted_by", "array_id", "submitted_by", "id"),
    Index("ix_jobs_name", "array_id", "name", "id"),
)
"""Mutable fields of jobs, and fields for filters. Rows are small, because they are scanned and updated often.

Tasks have the ID of their array, whose spec and labels they share; other jobs have 0. Lists have either.
"""

JOB_SPECS = _table("job_specs", _id("job_id"), _text("spec"), _key("job_id"))
"""Specs of jobs; large, and rarely updated."""

JOB_LABELS = _table(
    "job_labels",
    _name("name"),
    _name("value"),
    _id("job_id"),
    _key("name", "value", "job_id"),
    Index("ix_job_labels_job", "job_id"),
    rowid=False,
)
"""Labels of jobs for lookups. The spec contains them, too."""

JOB_CLUSTERS = _table(
    "job_clusters",
    _name("cluster"),
    _id("job_id"),
    _key("cluster", "job_id"),
    Index("ix_job_clusters_job", "job_id"),
    rowid=False,
)
"""Clusters of jobs for lookups. `JOBS` contains them, too."""

JOB_PREDECESSORS = _table(
    "job_predecessors",
    _number("predecessor"),
    _number("job_id"),
    _key("predecessor", "job_id"),
    Index("ix_job_predecessors_job", "job_id"),
    rowid=False,
)
"""Predecessors of jobs for lookups. The spec contains them, too."""

ATTEMPTS = _table(
    "attempts",
    _id("job_id"),
    _count("number"),
    _word("state"),
    _text("spec"),
    _name("policy"),
    _text("placements"),
    _number("created_ns"),
    _number("expires_ns"),
    _text("why"),
    _text("reason"),
    _maybe("running_ns"),
    _maybe("ended_ns"),
    _text("amounts"),
    _key("job_id", "number"),
    Index("ix_attempts_state", "state", "job_id", "number"),
    Index("ix_attempts_ended", "ended_ns", "job_id", "number"),
)

PENDING_COMMANDS = _table(
    "pending_commands",
    _id("job_id"),
    _count("attempt"),
    _name("cluster"),
    _word("verb"),
    _number("created_ns"),
    _key("job_id", "attempt", "cluster", "verb"),
    rowid=False,
)

EVENTS = _table(
    "events",
    _number("at_ns"),
    _word("kind"),
    _text("reason"),
    _name("actor"),
    _name("tenant"),
    _number("job_id"),
    _word("state"),
    _count("attempt"),
    _id(),
    _key("id"),
    Index("ix_events_job", "job_id", "id"),
)
"""Events. Events of the fleet have job 0."""

KEYS = _table(
    "idempotency_keys",
    _name("tenant"),
    _name("key"),
    _name("digest"),
    _number("job_id"),
    _number("created_ns"),
    _key("tenant", "key"),
    Index("ix_idempotency_keys_created", "created_ns"),
    rowid=False,
)

TOKENS = _table(
    "tokens",
    _name("id"),
    _name("name"),
    _name("digest"),
    _word("role"),
    _name("tenant"),
    _number("created_ns"),
    _name("created_by"),
    _maybe("expires_ns"),
    _maybe("revoked_ns"),
    _name("gateway"),
    _key("id"),
)

AUDIT = _table(
    "audit",
    _number("at_ns"),
    _name("actor"),
    _name("role"),
    _name("tenant"),
    _text("verb"),
    _text("target"),
    _count("status"),
    _name("address"),
    _name("token_id"),
    _name("issuer"),
    _count("requests"),
    _maybe_text("changes"),
    _id(),
    _key("id"),
    Index("ix_audit_at", "at_ns"),
)

CORDONS = _table(
    "cordons",
    _name("cluster"),
    _name("node"),
    _count("drain"),
    _text("reason"),
    _name("actor"),
    _number("at_ns"),
    _key("cluster", "node"),
)

RESERVATIONS = _table(
    "reservations",
    _name("name"),
    _number("starts_ns"),
    _number("ends_ns"),
    _name("tenant"),
    _name("queue"),
    _count("gpus"),
    _text("gpu_model"),
    _text("clusters"),
    _text("nodes"),
    _count("drain"),
    _text("description"),
    _key("name"),
)

NOTIFICATIONS = _table(
    "notifications",
    _name("tenant"),
    _name("name"),
    _word("channel"),
    _text("url"),
    _text("addresses"),
    _text("sealed"),
    _text("on"),
    _name("queue"),
    _name("job"),
    _count("wait_limit_s"),
    _name("created_by"),
    _number("changed_ns"),
    _key("tenant", "name"),
)
"""Notifications. Their secrets are encrypted."""

DELIVERIES = _table(
    "deliveries",
    _name("id"),
    _name("tenant"),
    _name("receiver"),
    _number("job_id"),
    _name("job_name"),
    _word("occasion"),
    _text("body"),
    _number("created_ns"),
    _number("next_ns"),
    _count("tries"),
    _word("state"),
    _text("error"),
    _key("id"),
    Index("ix_deliveries_receiver", "tenant", "receiver", "state"),
)
"""Messages of notifications: those that are not delivered, and the latest delivered ones."""

NOTIFIER = _table("notifier", _number("event"), _number("waits_ns"), _id(), _key("id"))
"""Progress of the notifier, in at most one row."""

WORKDIRS = _table(
    "workdirs",
    _name("tenant"),
    _name("digest"),
    _number("size_bytes"),
    _name("secret"),
    _name("created_by"),
    _number("created_ns"),
    _number("used_ns"),
    _name("bucket"),
    _key("tenant", "digest"),
)
"""Stored archives with working directories of jobs."""

WORKDIR_PARTS = _table(
    "workdir_parts",
    _name("tenant"),
    _name("digest"),
    _count("number"),
    _text("content"),
    _number("at_ns"),
    _key("tenant", "digest", "number"),
)
"""Parts of archives, as base64."""

LAST_USES = _table(
    "last_uses",
    _name("name"),
    _name("issuer"),
    _word("token_id"),
    _word("role"),
    _name("tenant"),
    _name("address"),
    _number("used_ns"),
    _key("name", "issuer", "token_id"),
)
"""Last requests with each token, and of each identity of a provider."""

SAVED_FILTERS = _table(
    "saved_filters", _name("owner"), _name("name"), _text("query"), _number("changed_ns"), _key("owner", "name")
)

ACKNOWLEDGEMENTS = _table(
    "acknowledgements",
    Column("name", short(63), nullable=False),
    Column("of", short(600), nullable=False),
    _name("actor"),
    _number("at_ns"),
    _key("name", "of"),
)
"""Acknowledgements of alerts that have not cleared."""

CLUSTER_FACTS = _table(
    "cluster_facts", _name("cluster"), _text("facts"), _name("actor"), _number("at_ns"), _key("cluster")
)
"""Facts of clusters that operators set, as JSON."""

CLUSTER_REPORTS = _table(
    "cluster_reports",
    _name("cluster"),
    _word("state"),
    _text("reason"),
    _number("reported_ns"),
    _number("at_ns"),
    _key("cluster"),
)
"""Connections to clusters, stored once a minute and when they change."""

CLUSTER_INVENTORIES = _table("cluster_inventories", _name("cluster"), _text("inventory"), _key("cluster"))
"""Last inventories of clusters, as compressed JSON in base64."""

FIRING_ALERTS = _table(
    "firing_alerts",
    Column("name", short(63), nullable=False),
    Column("of", short(600), nullable=False),
    _number("since_ns"),
    _key("name", "of"),
)
"""Firing alerts, with the time since which they do."""

SCALE_WINDOWS = _table("scale_windows", _id("job_id"), _count("replicas"), _text("numbers"), _key("job_id"))
"""Recent numbers of replicas of jobs that wait to shrink."""

JOB_USES = _table("job_uses", _id("job_id"), _text("content"), _key("job_id"))
"""Measured use of the GPUs of jobs, as base64."""

CLUSTER_NAMES = _table("cluster_names", _name("name"), _name("uid"), _name("server"), _key("name"))

CLUSTER_SAMPLES = _table(
    "cluster_samples",
    _id("at_ns"),
    _name("cluster"),
    _word("state"),
    _count("nodes"),
    _count("gpus"),
    _number("gpu_milli"),
    _number("gpu_milli_used"),
    _number("gpu_memory_mib"),
    _number("gpu_memory_mib_used"),
    _number("cpu_milli"),
    _number("cpu_milli_used"),
    _number("memory_mib"),
    _number("memory_mib_used"),
    _count("jobs"),
    _key("at_ns", "cluster"),
    Index("ix_cluster_samples_cluster", "cluster", "at_ns"),
    rowid=False,
)

LINK_SAMPLES = _table(
    "link_samples",
    _id("at_ns"),
    _name("source"),
    _name("target"),
    _maybe("latency_ns"),
    _number("jitter_ns"),
    _count("loss_ppm"),
    _number("bandwidth_mbps"),
    _number("used_mbps"),
    _name("path"),
    _key("at_ns", "source", "target"),
    Index("ix_link_samples_ends", "source", "target", "at_ns"),
    rowid=False,
)

USAGE_SAMPLES = _table(
    "usage_samples",
    _count("step_s"),
    _number("at_ns"),
    _word("kind"),
    _name("name"),
    _name("tenant"),
    _count("samples"),
    _number("gpu_milli"),
    _number("gpu_milli_used"),
    _count("measured"),
    _number("gpu_milli_measured"),
    _number("running"),
    _number("waiting"),
    _number("longest_wait_s"),
    _number("started"),
    _number("waited_s"),
    _key("step_s", "at_ns", "kind", "name", "tenant"),
    rowid=False,
)

NETWORK = _table("network", _text("text"), _number("version"), _name("actor"), _number("at_ns"), _id(), _key("id"))
"""Specification of the network between gateways, in at most one row."""

AGENTS = _table(
    "agents",
    _name("gateway"),
    _number("started_ns"),
    _number("number"),
    _number("at_ns"),
    _name("address"),
    _number("reports"),
    _number("rounds"),
    _number("dropped"),
    _number("discarded"),
    _key("gateway"),
)

PATHS = _table(
    "paths",
    _name("source"),
    _name("target"),
    _name("active"),
    _number("active_ns"),
    _name("applied"),
    _number("applied_ns"),
    _text("why"),
    _key("source", "target"),
)

POLICIES = _table(
    "policies", _name("name"), _name("digest"), _text("content"), _name("actor"), _number("at_ns"), _key("name")
)
"""Trained policies, with their files as base64."""

EVALUATIONS = _table("evaluations", _name("name"), _text("rows"), _name("actor"), _number("at_ns"), _key("name"))
"""Results of evaluations, as JSON."""

SHADOWS = _table(
    "shadows",
    _number("at_ns"),
    _name("queue"),
    _name("live"),
    _name("shadow"),
    _count("jobs"),
    _count("live_placed"),
    _count("shadow_placed"),
    _count("same_node"),
    _count("live_fragmentation_milli"),
    _count("shadow_fragmentation_milli"),
    _count("answered"),
    _count("fallbacks"),
    _count("tries"),
    _number("live_wait_ms"),
    _number("shadow_wait_ms"),
    _id(),
    _key("id"),
    Index("ix_shadows_queue", "queue", "id"),
    Index("ix_shadows_at", "at_ns"),
)

TENANTS = _table(
    "tenants",
    _name("name"),
    _text("description"),
    _count("weight"),
    _text("quotas"),
    _text("secrets"),
    _key("name"),
)

POOLS = _table("pools", _name("name"), _text("clusters"), _text("description"), _key("name"))

QUEUES = _table(
    "queues",
    _name("name"),
    _name("tenant"),
    _name("pool"),
    _name("policy"),
    _name("shadow"),
    _count("open"),
    _text("description"),
    _text("allowed_taints"),
    _text("allowed_node_labels"),
    _name("parent"),
    _count("weight"),
    _count("priority"),
    _text("guarantee"),
    _text("limit"),
    _word("order"),
    _word("backfill"),
    Column("preemption", short(32), nullable=False),
    _word("reclaim"),
    _count("preemptible"),
    _count("min_runtime_s"),
    _count("ageing_s"),
    _text("borrowing_limit"),
    _text("lending_limit"),
    _text("policy_options"),
    _count("start_timeout_s"),
    _count("grow_cooldown_s"),
    _word("elastic"),
    _word("preempts"),
    _key("name"),
)
