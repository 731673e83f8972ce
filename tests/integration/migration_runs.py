"""Migrations in processes that are killed at a given statement.

``python -m tests.integration.migration_runs`` reads runs from its input, one in a line, and prints the exit status of
each process. It forks, so that a run does not have to import anything.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from alembic import command
from pymysql.connections import Connection as MysqlConnection  # type: ignore[import-untyped]
from sqlalchemy import Engine, event

from seaway.adapters.sqlalchemy import schema
from seaway.adapters.sqlalchemy.migrations import resumable

PRELOADED = (command, resumable)
"""Modules that a migration imports."""

CHANGES = re.compile(r"\s*(alter|create|delete|drop|insert|rename|update)\b", re.IGNORECASE)


class Moment(StrEnum):
    """Time of a kill, relative to a statement that changes something."""

    SENT = "sent"
    """The server of MySQL has the statement. The process does not read the answer."""

    ANSWERED = "answered"
    """The server has answered."""

    COMMIT = "commit"
    """All statements are answered, and the commit is not sent."""


@dataclass(frozen=True)
class Run:
    """A migration.

    Attributes
    ----------
    url
        URL of the database.
    at
        Number of the statement at which the process is killed, from 1; 0 for none.
    moment
        When it is killed.
    processes
        Number of processes that start together.
    versions, newest
        Folder of other migrations and their last version; empty for those of Seaway.
    """

    url: str
    at: int = 0
    moment: Moment = Moment.ANSWERED
    processes: int = 1
    versions: str = ""
    newest: str = ""


@contextmanager
def migrations() -> Iterator[Migrations]:
    """Yield the process that forks others."""
    command = [sys.executable, "-m", "tests.integration.migration_runs"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield Migrations(process)
    finally:
        process.communicate()


class Migrations:
    """Process that forks others."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, run: Run) -> bool:
        """Migrate; return whether the process was killed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(run)) + "\n")
        self._process.stdin.flush()
        codes = json.loads(self._process.stdout.readline())
        assert set(codes) <= {0, -signal.SIGKILL}, f"a migration failed: {codes} {run}"
        return any(codes)


def _migrate(run: Run) -> None:
    if run.versions:
        schema.VERSIONS, schema.NEWEST = Path(run.versions), run.newest
    if run.moment is Moment.COMMIT:
        event.listen(Engine, "commit", lambda _connection: _die())
    elif run.at:
        _kill_at(run)
    schema.migrate(run.url)


def _kill_at(run: Run) -> None:
    count = 0

    @event.listens_for(Engine, "before_cursor_execute" if run.moment is Moment.SENT else "after_cursor_execute")
    def _executed(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        nonlocal count
        if not CHANGES.match(statement) or schema.JOURNAL.name in statement:
            return
        count += 1
        if count != run.at:
            return
        if run.moment is Moment.SENT:
            MysqlConnection._read_query_result = _die  # noqa: SLF001
        else:
            _die()


def _die(*_args: Any, **_kwargs: Any) -> None:  # noqa: ANN401  # in place of any function
    os.kill(os.getpid(), signal.SIGKILL)


def _fork(run: Run) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        _migrate(run)
        code = 0
    except BaseException:  # noqa: BLE001  # the exit status reports it
        traceback.print_exc()
    finally:
        os._exit(code)


def main() -> None:
    """Run what the input says."""
    for line in sys.stdin:
        values = json.loads(line)
        run = Run(**{**values, "moment": Moment(values["moment"])})
        children = [_fork(run) for _ in range(run.processes)]
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        sys.stdout.write(json.dumps(codes) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
