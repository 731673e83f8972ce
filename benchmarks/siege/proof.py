"""Check of the data after the siege: every accepted job is there, ended once, and is in the audit log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set
from pathlib import Path

from sqlalchemy import Engine, create_engine, select

from seaway.adapters.simulated.ledger import read_journals, violations
from seaway.adapters.sqlalchemy.maintenance import check
from seaway.adapters.sqlalchemy.tables import AUDIT, EVENTS, JOBS
from seaway.domain import job_spec as ids
from seaway.domain.cluster import Fleet
from seaway.domain.job_state import FINAL

SHOWN = 5
"""Number of examples of each finding."""


def find_violations(url: str, accepted: Set[str], fleet: Fleet, journals: Path) -> list[str]:
    """Return what is wrong with the accepted jobs; empty if nothing is.

    Parameters
    ----------
    url
        URL of the database.
    journals
        Folder with the journals of the simulated clusters.
    """
    engine = create_engine(url)
    try:
        found = [*_lost(engine, accepted), *_ended_twice(engine, accepted), *_unaudited(engine, accepted)]
    finally:
        engine.dispose()
    return [*found, *violations(fleet, read_journals(fleet, journals)), *check(url)]


def _lost(engine: Engine, accepted: Set[str]) -> list[str]:
    final = {state.value for state in FINAL}
    with engine.connect() as connection:
        states = {ids.encode(job): state for job, state in connection.execute(select(JOBS.c.id, JOBS.c.state))}
    missing = [job for job in accepted if job not in states]
    unfinished = [job for job in accepted if states.get(job, "completed") not in final]
    return [*_finding("are not there", missing), *_finding("are unfinished", unfinished)]


def _ended_twice(engine: Engine, accepted: Set[str]) -> list[str]:
    ends: Counter[str] = Counter()
    question = select(EVENTS.c.job_id).where(EVENTS.c.state.in_(sorted(state.value for state in FINAL)))
    with engine.connect() as connection:
        ends.update(ids.encode(job) for job in connection.execute(question).scalars() if job)
    never, twice = [job for job in accepted if not ends[job]], [job for job in accepted if ends[job] > 1]
    return [*_finding("have no event of their end", never), *_finding("ended twice", twice)]


def _unaudited(engine: Engine, accepted: Set[str]) -> list[str]:
    question = select(AUDIT.c.target).where(AUDIT.c.verb == "POST submit_job")
    with engine.connect() as connection:
        audited = {target.rpartition("/")[2] for target in connection.execute(question).scalars()}
    return _finding("are not in the audit log", [job for job in accepted if job not in audited])


def _finding(what: str, jobs: list[str]) -> list[str]:
    return [f"{len(jobs)} accepted jobs {what}, such as {', '.join(sorted(jobs)[:SHOWN])}"] if jobs else []
