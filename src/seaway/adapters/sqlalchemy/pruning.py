"""Removal of expired rows in small transactions, so that other writes need not wait."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Column, Connection, Engine, Select, Table, and_, delete, func, or_, select, tuple_

from seaway.adapters.sqlalchemy.tables import (
    ATTEMPTS,
    AUDIT,
    CLUSTER_SAMPLES,
    EVENTS,
    JOB_CLUSTERS,
    JOB_LABELS,
    JOB_SPECS,
    JOBS,
    KEYS,
    LINK_SAMPLES,
    PENDING_COMMANDS,
    SHADOWS,
)
from seaway.application.ports.store import Retention
from seaway.domain.job_state import FINAL, AttemptState, JobState

AT_ONCE = 200
"""Maximum number of rows, or of jobs with their dependent rows, in one transaction."""


def prune(engine: Engine, retention: Retention, now_ns: int) -> dict[str, int]:
    """Remove expired rows; see `seaway.application.ports.store.Store.prune`."""
    gone = dict.fromkeys(("jobs", "attempts", "events", "audit", "keys", *_SAMPLES), 0)
    for jobs in _pages(engine, _jobs_over(retention.jobs_ns, now_ns), JOBS.c.id):
        for name, count in _remove_jobs(engine, jobs).items():
            gone[name] += count
    plain = [
        ("events", EVENTS, EVENTS.c.at_ns, retention.jobs_ns),
        ("audit", AUDIT, AUDIT.c.at_ns, retention.audit_ns),
        ("keys", KEYS, KEYS.c.created_ns, retention.keys_ns),
        *((name, table, table.c.at_ns, retention.samples_ns) for name, table in _SAMPLES.items()),
    ]
    for name, table, at_ns, keep_ns in plain:
        if keep_ns is not None:
            gone[name] += _remove_old(engine, table, at_ns, now_ns - keep_ns)
    return gone


_SAMPLES = {"cluster_samples": CLUSTER_SAMPLES, "link_samples": LINK_SAMPLES, "shadows": SHADOWS}


def _jobs_over(keep_ns: int | None, now_ns: int) -> Select[Any]:
    """Return the query for removable jobs: final jobs without reserved devices and without pending commands."""
    deleted = JOBS.c.state == JobState.DELETED.value
    old = and_(
        JOBS.c.state.in_(sorted(state.value for state in FINAL)),
        func.coalesce(JOBS.c.ended_ns, JOBS.c.changed_ns) < now_ns - (keep_ns or 0),
    )
    held = select(1).where(ATTEMPTS.c.job_id == JOBS.c.id, ATTEMPTS.c.state != AttemptState.ENDED.value)
    reported = select(1).where(PENDING_COMMANDS.c.job_id == JOBS.c.id)
    falls = deleted if keep_ns is None else or_(deleted, old)
    return select(JOBS.c.id).where(falls, ~held.exists(), ~reported.exists())


def _pages(engine: Engine, question: Select[Any], key: Column[int]) -> Iterator[list[int]]:
    """Yield IDs in order, in pages of `AT_ONCE`."""
    last = -1
    while True:
        with engine.connect() as connection:
            found = list(connection.execute(question.where(key > last).order_by(key).limit(AT_ONCE)).scalars())
        if not found:
            return
        last = found[-1]
        yield found


def _remove_jobs(engine: Engine, jobs: list[int]) -> dict[str, int]:
    """Remove jobs and their dependent rows in one transaction, unless they are live again."""
    final = sorted(state.value for state in FINAL)
    with engine.begin() as connection:
        still = select(JOBS.c.id).where(JOBS.c.id.in_(jobs), JOBS.c.state.in_(final)).with_for_update()
        jobs = list(connection.execute(still).scalars())
        for table in (JOB_SPECS, JOB_LABELS, JOB_CLUSTERS):
            connection.execute(delete(table).where(table.c.job_id.in_(jobs)))
        events = delete(EVENTS).where(EVENTS.c.job_id.in_(jobs), EVENTS.c.id < _newest_event(connection))
        return {
            "attempts": connection.execute(delete(ATTEMPTS).where(ATTEMPTS.c.job_id.in_(jobs))).rowcount,
            "events": connection.execute(events).rowcount,
            "jobs": connection.execute(delete(JOBS).where(JOBS.c.id.in_(jobs))).rowcount,
        }


def _newest_event(connection: Connection) -> int:
    """Return the ID of the latest event. This event is never removed, because the next ID depends on it."""
    return int(connection.execute(select(func.coalesce(func.max(EVENTS.c.id), 0))).scalar_one())


def _remove_old(engine: Engine, table: Table, at_ns: Column[int], before_ns: int) -> int:
    """Remove rows older than a time. Remove only those events that belong to no job."""
    key = list(table.primary_key.columns)
    question = select(*key).where(at_ns < before_ns).limit(AT_ONCE)
    gone = 0
    while True:
        with engine.begin() as connection:
            asked = question
            if table is EVENTS:
                asked = question.where(EVENTS.c.job_id == 0, EVENTS.c.id < _newest_event(connection))
            rows = [tuple(row) for row in connection.execute(asked)]
            if not rows:
                return gone
            gone += connection.execute(delete(table).where(tuple_(*key).in_(rows))).rowcount
