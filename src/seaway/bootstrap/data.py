"""Data folder: database, backups, simulated clusters, and the address of the server for local commands."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from seaway.domain.errors import RejectedError

DATA_FILES = ("lock", "seaway.db", "seaway.db-wal", "seaway.db-shm", "seaway.db-journal", "backups", "clusters", "logs")
"""Files that a start closes to other users, because they may have been copied here."""


SERVER_FILE = "server.json"
"""File with the address of a running server for local commands."""


def running_server(folder: Path) -> dict[str, str]:
    """Return what the server on a data folder announced, see `DataFolder.announce`; empty if none runs."""
    try:
        with (folder / "lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return {}
    except FileNotFoundError:
        return {}
    except OSError:  # the lock is taken: a server runs
        with suppress(OSError, ValueError, AttributeError):
            return {name: str(value) for name, value in json.loads((folder / SERVER_FILE).read_bytes()).items()}
        return {}


def clusters_driven(folder: Path) -> str:
    """Return the kind of clusters of the server that runs on a data folder; empty if no server runs."""
    return running_server(folder).get("clusters", "")


@contextmanager
def private() -> Iterator[None]:
    """Create files for the owner only."""
    mask = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(mask)


class DataFolder:
    """Data folder of one running server.

    Until `close`, the process creates files for the owner only, since they contain environment variables of jobs.

    Parameters
    ----------
    path
        Path of the folder. A missing folder is created for the owner only.

    Raises
    ------
    RejectedError
        If the folder cannot be created, or another server uses it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with ExitStack() as opened:
            try:
                path.mkdir(parents=True, exist_ok=True, mode=0o700)
                opened.enter_context(private())
                lock = opened.enter_context((path / "lock").open("a"))
                _close_to_others(path)
            except OSError as error:
                raise RejectedError(f"the data folder cannot be used: {error}", where=str(path)) from error
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise RejectedError(
                    "another seaway runs on this data folder; choose one with --data", where=str(path)
                ) from None
            self._opened = opened.pop_all()

    @property
    def database_url(self) -> str:
        """URL of the embedded database."""
        return f"sqlite:///{self.path.absolute() / 'seaway.db'}"

    @property
    def backups(self) -> Path:
        """Folder of backups."""
        return self.path / "backups"

    @property
    def admin_token(self) -> Path:
        """File with the first token, for local commands."""
        return self.path / "admin-token"

    def write_token(self, secret: str) -> None:
        """Store the first token for local commands, for the owner only."""
        write_private(self.admin_token, f"{secret}\n")

    def announce(self, url: str, clusters: str, config: str = "", database: str = "") -> None:
        """Store the address of the server for local commands.

        Parameters
        ----------
        clusters
            Kind of its clusters.
        config
            Path of its settings file; empty for none.
        database
            URL of its database without the password; empty for the embedded one.
        """
        announced = {"url": url, "pid": os.getpid(), "clusters": clusters, "config": config, "database": database}
        write_private(self.path / SERVER_FILE, json.dumps(announced) + "\n")

    def close(self) -> None:
        """Release the folder for another server."""
        (self.path / SERVER_FILE).unlink(missing_ok=True)
        self._opened.close()


def _close_to_others(folder: Path) -> None:
    """Remove permissions of other users from Seaway's files; skip files of another owner."""
    for path in (folder / name for name in DATA_FILES):
        with suppress(FileNotFoundError, PermissionError):
            if path.stat().st_mode & 0o077:
                path.chmod(path.stat().st_mode & 0o700)


def write_private(path: Path, text: str) -> None:
    """Write a file for the owner only, atomically: after a crash or on a full disk, the old content is there.

    `seaway up` reads folders while others write to them, and ignores files that begin with a dot.
    """
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
    fresh.replace(path)
