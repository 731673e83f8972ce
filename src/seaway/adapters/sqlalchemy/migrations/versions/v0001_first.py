"""Migration 1: the first tables."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TABLE: dict[str, Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": "utf8mb4_bin"}


def _short(length: int) -> sa.types.TypeEngine[str]:
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def _name(name: str) -> sa.Column[str]:
    return sa.Column(name, _short(255), nullable=False)


def _word(name: str) -> sa.Column[str]:
    return sa.Column(name, _short(16), nullable=False)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb"), nullable=False)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False)


def _maybe(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=True)


def _count(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False)


def _id(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False, autoincrement=False)


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
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
        sa.PrimaryKeyConstraint("job_id", "number"),
        **TABLE,
    )
    op.create_index("ix_attempts_state", "attempts", ["state", "job_id", "number"])
    op.create_table(
        "audit",
        _number("at_ns"),
        _name("actor"),
        _name("role"),
        _name("tenant"),
        _text("verb"),
        _text("target"),
        _count("status"),
        _name("address"),
        _id("id"),
        sa.PrimaryKeyConstraint("id"),
        **TABLE,
    )
    op.create_table(
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
        sa.PrimaryKeyConstraint("at_ns", "cluster"),
        **TABLE,
        sqlite_with_rowid=False,
    )
    op.create_index("ix_cluster_samples_cluster", "cluster_samples", ["cluster", "at_ns"])
    op.create_table(
        "cordons",
        _name("cluster"),
        _name("node"),
        _count("drain"),
        _text("reason"),
        _name("actor"),
        _number("at_ns"),
        sa.PrimaryKeyConstraint("cluster", "node"),
        **TABLE,
    )
    op.create_table(
        "events",
        _number("at_ns"),
        _word("kind"),
        _text("reason"),
        _name("actor"),
        _name("tenant"),
        _number("job_id"),
        _word("state"),
        _count("attempt"),
        _id("id"),
        sa.PrimaryKeyConstraint("id"),
        **TABLE,
    )
    op.create_index("ix_events_job", "events", ["job_id", "id"])
    op.create_table(
        "idempotency_keys",
        _name("tenant"),
        _name("key"),
        _name("digest"),
        _number("job_id"),
        _number("created_ns"),
        sa.PrimaryKeyConstraint("tenant", "key"),
        **TABLE,
        sqlite_with_rowid=False,
    )
    op.create_table(
        "job_clusters",
        _name("cluster"),
        _id("job_id"),
        sa.PrimaryKeyConstraint("cluster", "job_id"),
        **TABLE,
        sqlite_with_rowid=False,
    )
    op.create_index("ix_job_clusters_job", "job_clusters", ["job_id"])
    op.create_table(
        "job_labels",
        _name("name"),
        _name("value"),
        _id("job_id"),
        sa.PrimaryKeyConstraint("name", "value", "job_id"),
        **TABLE,
        sqlite_with_rowid=False,
    )
    op.create_index("ix_job_labels_job", "job_labels", ["job_id"])
    op.create_table(
        "job_specs",
        _id("job_id"),
        _text("spec"),
        sa.PrimaryKeyConstraint("job_id"),
        **TABLE,
    )
    op.create_table(
        "jobs",
        _id("id"),
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
        sa.PrimaryKeyConstraint("id"),
        **TABLE,
    )
    op.create_index("ix_jobs_queue", "jobs", ["queue", "state", "id"])
    op.create_index("ix_jobs_state", "jobs", ["state", "id"])
    op.create_index("ix_jobs_submitted_by", "jobs", ["submitted_by", "id"])
    op.create_index("ix_jobs_tenant", "jobs", ["tenant", "state", "id"])
    op.create_table(
        "lease",
        _id("id"),
        _number("epoch"),
        _name("owner"),
        sa.PrimaryKeyConstraint("id"),
        **TABLE,
    )
    op.create_table(
        "link_samples",
        _id("at_ns"),
        _name("source"),
        _name("target"),
        _number("latency_ns"),
        _number("jitter_ns"),
        _count("loss_ppm"),
        _number("bandwidth_mbps"),
        _number("used_mbps"),
        sa.PrimaryKeyConstraint("at_ns", "source", "target"),
        **TABLE,
        sqlite_with_rowid=False,
    )
    op.create_index("ix_link_samples_ends", "link_samples", ["source", "target", "at_ns"])
    op.create_table(
        "outgoing",
        _id("job_id"),
        _count("attempt"),
        _name("cluster"),
        _word("verb"),
        _number("created_ns"),
        _count("tries"),
        _text("error"),
        sa.PrimaryKeyConstraint("job_id", "attempt", "cluster", "verb"),
        **TABLE,
        sqlite_with_rowid=False,
    )
    op.create_table(
        "pools",
        _name("name"),
        _text("clusters"),
        _text("description"),
        sa.PrimaryKeyConstraint("name"),
        **TABLE,
    )
    op.create_table(
        "queues",
        _name("name"),
        _name("tenant"),
        _name("pool"),
        _name("policy"),
        _name("shadow"),
        _count("open"),
        _text("description"),
        sa.PrimaryKeyConstraint("name"),
        **TABLE,
    )
    op.create_table(
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
        _id("id"),
        sa.PrimaryKeyConstraint("id"),
        **TABLE,
    )
    op.create_index("ix_shadows_queue", "shadows", ["queue", "id"])
    op.create_table(
        "tenants",
        _name("name"),
        _text("description"),
        sa.PrimaryKeyConstraint("name"),
        **TABLE,
    )
    op.create_table(
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
        sa.PrimaryKeyConstraint("id"),
        **TABLE,
    )
    op.execute("INSERT INTO lease (id, epoch, owner) VALUES (1, 0, '')")
