"""Removal of expired rows in small transactions, and checks of the stored data."""

from __future__ import annotations

import time
from base64 import b64decode
from binascii import Error
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Engine,
    Select,
    Table,
    and_,
    delete,
    func,
    or_,
    select,
    text,
    tuple_,
)

from seaway.adapters.sqlalchemy.backup_file import Progress
from seaway.adapters.sqlalchemy.engines import Engines, answering, open_engines, snapshot
from seaway.adapters.sqlalchemy.schema import NEWEST, revision
from seaway.adapters.sqlalchemy.statements import SPEC_ID
from seaway.adapters.sqlalchemy.tables import (
    ATTEMPTS,
    AUDIT,
    CLUSTER_SAMPLES,
    DELIVERIES,
    EVENTS,
    JOB_CLUSTERS,
    JOB_LABELS,
    JOB_PREDECESSORS,
    JOB_SPECS,
    JOB_USES,
    JOBS,
    KEYS,
    LAST_USES,
    LINK_SAMPLES,
    METADATA,
    PENDING_COMMANDS,
    POLICIES,
    SHADOWS,
    USAGE_SAMPLES,
)
from seaway.application.ports.store import USAGE_STEPS_S, Retention
from seaway.application.records import NS_PER_S
from seaway.domain import job_spec as ids
from seaway.domain.errors import RejectedError
from seaway.domain.job_state import FINAL, LIVE, AttemptState, JobState
from seaway.learning.policies.file import unpack

AT_ONCE = 200
"""Maximum number of rows, or of jobs with their dependent rows, in one transaction."""

PAUSE_S = 0.01
"""Minimum pause between two transactions, seconds. A pause is at least as long as the transaction before it.

SQLite does not queue processes or threads that wait for its lock, so without a pause, other changes wait for long.
"""


def prune(engines: Engines, retention: Retention, now_ns: int) -> dict[str, int]:
    """Remove expired rows; see `seaway.application.ports.store.Store.prune`.

    The rows are found outside the transactions that remove them, so these are short however many rows there are.
    """
    names = ("jobs", "attempts", "events", "audit", "last_uses", "deliveries", "keys", *_SAMPLES, "usage_samples")
    gone = dict.fromkeys(names, 0)
    for tasks in (True, False):
        for jobs in _pages(engines.read, _jobs_over(retention.jobs_ns, now_ns, tasks=tasks), JOBS.c.id):
            with _paused():
                removed = _remove_jobs(engines.write, jobs)
            for name, count in removed.items():
                gone[name] += count
    plain = [
        ("events", EVENTS, EVENTS.c.at_ns, retention.jobs_ns),
        ("audit", AUDIT, AUDIT.c.at_ns, retention.audit_ns),
        ("last_uses", LAST_USES, LAST_USES.c.used_ns, retention.audit_ns),
        ("deliveries", DELIVERIES, DELIVERIES.c.created_ns, retention.jobs_ns),
        ("keys", KEYS, KEYS.c.created_ns, retention.keys_ns),
        *((name, table, table.c.at_ns, retention.samples_ns) for name, table in _SAMPLES.items()),
    ]
    for name, table, at_ns, keep_ns in plain:
        if keep_ns is not None:
            gone[name] += _remove_old(engines, table, at_ns, now_ns - keep_ns)
    for step_s, keep_s in USAGE_STEPS_S.items():
        of_step, before_ns = USAGE_SAMPLES.c.step_s == step_s, now_ns - keep_s * NS_PER_S
        gone["usage_samples"] += _remove_old(engines, USAGE_SAMPLES, USAGE_SAMPLES.c.at_ns, before_ns, of_step)
    return gone


_SAMPLES = {"cluster_samples": CLUSTER_SAMPLES, "link_samples": LINK_SAMPLES, "shadows": SHADOWS}


def _jobs_over(keep_ns: int | None, now_ns: int, *, tasks: bool) -> Select[Any]:
    """Return the query for removable jobs: final jobs without reserved devices and without pending commands.

    Tasks are removable when their array is, and an array without tasks, so that it is complete as long as it is stored.
    """
    whole = JOBS.alias("arrays") if tasks else JOBS
    deleted = whole.c.state == JobState.DELETED.value
    old = and_(
        whole.c.state.in_(sorted(state.value for state in FINAL)),
        func.coalesce(whole.c.ended_ns, whole.c.changed_ns) < now_ns - (keep_ns or 0),
    )
    held = select(1).where(ATTEMPTS.c.job_id == JOBS.c.id, ATTEMPTS.c.state != AttemptState.ENDED.value)
    reported = select(1).where(PENDING_COMMANDS.c.job_id == JOBS.c.id)
    falls = deleted if keep_ns is None else or_(deleted, old)
    if tasks:
        ended = JOBS.c.state.in_(sorted(state.value for state in FINAL))
        falls = and_(JOBS.c.array_id > 0, ended, select(1).where(whole.c.id == JOBS.c.array_id, falls).exists())
    else:
        parts = JOBS.alias("tasks")
        falls = and_(JOBS.c.array_id == 0, falls, ~select(1).where(parts.c.array_id == JOBS.c.id).exists())
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
        for table in (JOB_SPECS, JOB_LABELS, JOB_CLUSTERS, JOB_PREDECESSORS, JOB_USES):
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


def _remove_old(
    engines: Engines, table: Table, at_ns: Column[int], before_ns: int, *conditions: ColumnElement[bool]
) -> int:
    """Remove rows older than a time. Remove only those events that belong to no job."""
    key = list(table.primary_key.columns)
    old = [*conditions, at_ns < before_ns]
    if table is EVENTS:
        with engines.read.connect() as connection:
            old += [EVENTS.c.job_id == 0, EVENTS.c.id < _newest_event(connection)]
    gone = 0
    while True:
        with engines.read.connect() as connection:
            rows = [tuple(row) for row in connection.execute(select(*key).where(*old).limit(AT_ONCE))]
        if not rows:
            return gone
        with _paused(), engines.write.begin() as connection:
            gone += connection.execute(delete(table).where(*old, tuple_(*key).in_(rows))).rowcount


@contextmanager
def _paused() -> Iterator[None]:
    """Run a transaction, then let others run theirs."""
    began_s = time.perf_counter()
    yield
    time.sleep(max(PAUSE_S, time.perf_counter() - began_s))


SHOWN = 20
"""Maximum number of reported findings per check."""

_LIVE = sorted(state.value for state in LIVE)
_FINAL = sorted(state.value for state in FINAL)


def check(url: str, progress: Progress | None = None) -> list[str]:
    """Check a database for errors, without blocking other processes.

    Parameters
    ----------
    url
        URL of the database.
    progress
        Called with the number of completed checks and the total.

    Returns
    -------
    list[str]
        Findings; empty if there are none.

    Raises
    ------
    RejectedError
        When the URL is invalid.
    UnavailableError
        When the database does not answer.
    """
    engines = open_engines(url)
    found: list[str] = []
    checks: tuple[Callable[[Connection], Iterator[str]], ...] = (
        _check_integrity,
        _live_attempts,
        _one_live,
        _pending_commands,
        _specs,
        _policies,
    )
    try:
        with answering(), snapshot(engines) as connection:
            found += _state(connection)
            for at, each in enumerate(() if found else checks, 1):
                found += each(connection)
                if progress:
                    progress(at, len(checks))
    finally:
        engines.dispose()
    return found


def _state(connection: Connection) -> Iterator[str]:
    """Check that the schema version matches this Seaway."""
    state = revision(connection)
    if state != NEWEST:
        yield f"the tables are at state {state or 'none'}, this Seaway needs {NEWEST}: run seaway db migrate"


def _check_integrity(connection: Connection) -> Iterator[str]:
    """Run the database's own integrity check."""
    kind = connection.dialect.name
    if kind == "sqlite":
        for (line,) in connection.execute(text(f"PRAGMA integrity_check({SHOWN})")):
            if line != "ok":
                yield f"SQLite finds damage: {line}; restore a backup"
    elif kind == "mysql":
        names = ", ".join(table.name for table in METADATA.sorted_tables)
        for name, _, sort, message in connection.execute(text(f"CHECK TABLE {names}")):
            if sort in {"error", "warning"}:
                yield f"the server finds damage in {name}: {message}; restore a backup"


def _live_attempts(connection: Connection) -> Iterator[str]:
    """Find live attempts that are not the latest attempt of a live job."""
    question = (
        select(ATTEMPTS.c.job_id, ATTEMPTS.c.number, ATTEMPTS.c.state, JOBS.c.state, JOBS.c.attempt)
        .join_from(ATTEMPTS, JOBS, JOBS.c.id == ATTEMPTS.c.job_id, isouter=True)
        .where(ATTEMPTS.c.state.in_(_LIVE))
        .where(or_(JOBS.c.id.is_(None), JOBS.c.state.in_(_FINAL), JOBS.c.attempt != ATTEMPTS.c.number))
        .limit(SHOWN)
    )
    for job_id, number, state, job_state, latest in connection.execute(question):
        name = f"attempt {number} of job {ids.encode(job_id)} is {state}"
        if job_state is None:
            yield f"{name}, but that job does not exist"
        else:
            yield f"{name}, but the job is {job_state} at attempt {latest}"


def _one_live(connection: Connection) -> Iterator[str]:
    """Find jobs with two live attempts."""
    question = select(ATTEMPTS.c.job_id, func.count()).where(ATTEMPTS.c.state.in_(_LIVE))
    question = question.group_by(ATTEMPTS.c.job_id).having(func.count() > 1).limit(SHOWN)
    for job_id, count in connection.execute(question):
        yield f"job {ids.encode(job_id)} has {count} live attempts, but may have one at most"


def _pending_commands(connection: Connection) -> Iterator[str]:
    """Find pending commands for missing attempts."""
    match = and_(ATTEMPTS.c.job_id == PENDING_COMMANDS.c.job_id, ATTEMPTS.c.number == PENDING_COMMANDS.c.attempt)
    question: Select[Any] = (
        select(PENDING_COMMANDS.c.job_id, PENDING_COMMANDS.c.attempt, PENDING_COMMANDS.c.cluster)
        .where(~select(1).where(match).exists())
        .limit(SHOWN)
    )
    for job_id, attempt, cluster in connection.execute(question):
        name = f"attempt {attempt} of job {ids.encode(job_id)}"
        yield f"cluster {cluster} has a pending command for {name}, which does not exist"


def _specs(connection: Connection) -> Iterator[str]:
    """Find jobs without a spec."""
    question = select(JOBS.c.id).where(~select(1).where(JOB_SPECS.c.job_id == SPEC_ID).exists()).limit(SHOWN)
    for (job_id,) in connection.execute(question):
        yield f"job {ids.encode(job_id)} has no spec"


def _policies(connection: Connection) -> Iterator[str]:
    """Find trained policies with damaged files."""
    question = select(POLICIES.c.name, POLICIES.c.digest, POLICIES.c.content).order_by(POLICIES.c.name)
    found = 0
    for name, digest, content in connection.execute(question):
        try:
            why = "" if unpack(b64decode(content, validate=True)).digest == digest else "it is another by its digest"
        except (Error, RejectedError) as error:
            why = str(error)
        if why and found < SHOWN:
            found += 1
            yield f"policy {name} is damaged: {why}; import it again"
