"""SQL queries for filtered jobs, written for the indexes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, func, select, union_all

from seaway.adapters.sqlalchemy import codec
from seaway.adapters.sqlalchemy.tables import JOB_CLUSTERS, JOB_LABELS, JOB_SPECS, JOBS
from seaway.application.ports.store import JobFilter
from seaway.domain.errors import RejectedError
from seaway.domain.job_state import JobState

Condition = ColumnElement[bool]
Question = Select[Any]

SHOWN = frozenset(JobState) - {JobState.DELETED}
"""Default states in lists."""


@lru_cache(maxsize=256)
def page(wanted: JobFilter, limit: int) -> Question:
    """Return the query for jobs with their specs, from new to old. Frequent queries are cached."""
    found = _ids(wanted, limit).subquery("found")
    return (
        select(*JOBS.columns, JOB_SPECS.c.spec)
        .select_from(found)
        .join(JOBS, JOBS.c.id == found.c.id)
        .join(JOB_SPECS, JOB_SPECS.c.job_id == JOBS.c.id)
        .order_by(JOBS.c.id.desc())
    )


def counts(wanted: JobFilter) -> Question:
    """Return the query for the number of jobs in each state."""
    return _drawn(wanted, select(JOBS.c.state, func.count()), _conditions(wanted), _states(wanted)).group_by(
        JOBS.c.state
    )


def _ids(wanted: JobFilter, limit: int) -> Question:
    """Return the query for job IDs.

    Most indexes order by state before ID. A separate query for each state, with `limit` jobs each, avoids that an index
    is
    read completely and sorted.
    """
    conditions = _conditions(wanted)
    by_state = (wanted.tenant or wanted.queue or wanted.states) and not (
        wanted.label or wanted.cluster or wanted.submitted_by or wanted.named
    )
    if not by_state:
        question = _drawn(wanted, select(JOBS.c.id), conditions, _states(wanted))
        return question.order_by(_order(wanted).desc()).limit(limit)
    parts = []
    for state in sorted(wanted.states or SHOWN, key=lambda each: each.value):
        part = select(JOBS.c.id).where(JOBS.c.state == state.value, *conditions)
        parts.append(select(part.order_by(JOBS.c.id.desc()).limit(limit).subquery(state.value).c.id))
    every = union_all(*parts).subquery("every")
    return select(every.c.id).order_by(every.c.id.desc()).limit(limit)


def _drawn(wanted: JobFilter, question: Question, conditions: list[Condition], states: Condition) -> Question:
    """Add the tables and conditions of a query."""
    if wanted.label:
        name, value = wanted.label
        question = question.select_from(JOB_LABELS.join(JOBS, JOBS.c.id == JOB_LABELS.c.job_id))
        question = question.where(JOB_LABELS.c.name == name, JOB_LABELS.c.value == value)
    if wanted.cluster:
        link = and_(JOBS.c.id == JOB_CLUSTERS.c.job_id, JOB_CLUSTERS.c.cluster == wanted.cluster)
        if wanted.label:
            question = question.where(select(1).where(link).exists())
        else:
            question = question.select_from(JOB_CLUSTERS.join(JOBS, link))
    return question.where(states, *conditions)


def _order(wanted: JobFilter) -> ColumnElement[int]:
    """Return the ID column of the first table, whose index has the order."""
    if wanted.label:
        return JOB_LABELS.c.job_id
    return JOB_CLUSTERS.c.job_id if wanted.cluster else JOBS.c.id


def _states(wanted: JobFilter) -> Condition:
    """Return the condition on the state."""
    if wanted.states:
        return JOBS.c.state.in_(sorted(state.value for state in wanted.states))
    return JOBS.c.state != JobState.DELETED.value


def _conditions(wanted: JobFilter) -> list[Condition]:
    """Return the conditions on a job's row, except that on its state."""
    found: list[Condition] = []
    if wanted.tenant:
        found.append(JOBS.c.tenant == wanted.tenant)
    if wanted.queue:
        found.append(JOBS.c.queue == wanted.queue)
    if wanted.submitted_by:
        found.append(JOBS.c.submitted_by == wanted.submitted_by)
    if wanted.named:
        found.append(JOBS.c.name == wanted.named)
    if wanted.name:
        without = func.replace(JOBS.c.name, wanted.name, "")  # LIKE is case-sensitive only on some databases
        found.append(without != JOBS.c.name)
    if wanted.submitted_from_ns is not None:
        found.append(JOBS.c.submitted_ns >= wanted.submitted_from_ns)
    if wanted.submitted_until_ns is not None:
        found.append(JOBS.c.submitted_ns < wanted.submitted_until_ns)
    if wanted.before:
        before = codec.number(wanted.before)
        if before is None:
            raise RejectedError(f"{wanted.before!r} is not an id of a job", where="before")
        found.append(_order(wanted) < before)
    return found
