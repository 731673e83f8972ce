"""Which jobs are asked for, as SQL that an index answers."""

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
"""What is listed unless states are asked for."""


@lru_cache(maxsize=256)
def page(wanted: JobFilter, limit: int) -> Question:
    """Return a question for jobs with their specs, new to old; the same lists are asked for again and again."""
    found = _ids(wanted, limit).subquery("found")
    return (
        select(*JOBS.columns, JOB_SPECS.c.spec)
        .select_from(found)
        .join(JOBS, JOBS.c.id == found.c.id)
        .join(JOB_SPECS, JOB_SPECS.c.job_id == JOBS.c.id)
        .order_by(JOBS.c.id.desc())
    )


def counts(wanted: JobFilter) -> Question:
    """Return a question for the number of jobs in each state."""
    return _drawn(wanted, select(JOBS.c.state, func.count()), _conditions(wanted), _states(wanted)).group_by(
        JOBS.c.state
    )


def _ids(wanted: JobFilter, limit: int) -> Question:
    """Return a question for the ids.

    Indexes on what jobs have in common go by state before id. So that none must be read to its end and
    sorted, each state is asked for by itself: of each, `limit` jobs will do.
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
    """Add where jobs are looked up, and by what."""
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
    """Return the id in the table that is looked through first, whose index has the order."""
    if wanted.label:
        return JOB_LABELS.c.job_id
    return JOB_CLUSTERS.c.job_id if wanted.cluster else JOBS.c.id


def _states(wanted: JobFilter) -> Condition:
    """Return what the filter asks of the state."""
    if wanted.states:
        return JOBS.c.state.in_(sorted(state.value for state in wanted.states))
    return JOBS.c.state != JobState.DELETED.value


def _conditions(wanted: JobFilter) -> list[Condition]:
    """Return what the filter asks of a job's row, but for its state."""
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
        without = func.replace(JOBS.c.name, wanted.name, "")  # LIKE heeds case on some databases only
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
