"""Consistency checks of a database and its contents."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error
from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy import Connection, Select, and_, func, or_, select, text

from seaway.adapters.sqlalchemy.backup_file import Progress
from seaway.adapters.sqlalchemy.engines import answering, open_engines, snapshot
from seaway.adapters.sqlalchemy.schema import NEWEST, revision
from seaway.adapters.sqlalchemy.tables import ATTEMPTS, JOB_SPECS, JOBS, METADATA, PENDING_COMMANDS, POLICIES
from seaway.domain import job_spec as ids
from seaway.domain.errors import RejectedError
from seaway.domain.job_state import FINAL, LIVE
from seaway.learning.policies.file import unpack

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
        _sound,
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


def _sound(connection: Connection) -> Iterator[str]:
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
    question = select(JOBS.c.id).where(~select(1).where(JOB_SPECS.c.job_id == JOBS.c.id).exists()).limit(SHOWN)
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
