"""The data folder: the database, backups, simulated clusters, and how local commands find the server."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from seaway.domain.errors import RejectedError

OURS = ("lock", "seaway.db", "seaway.db-wal", "seaway.db-shm", "seaway.db-journal", "backups", "clusters")
"""Files of older versions that other users may have been able to read."""


NOTE = "server.json"
"""File with the address of a running server for local commands."""


def clusters_driven(folder: Path) -> str:
    """Return which kind of clusters the server drives that runs on a data folder; empty when none runs there."""
    try:
        with (folder / "lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return ""
    except FileNotFoundError:
        return ""
    except OSError:  # it is held
        with suppress(OSError, ValueError, AttributeError):
            return str(json.loads((folder / NOTE).read_bytes()).get("clusters", ""))
        return ""


@contextmanager
def private() -> Iterator[None]:
    """See that what this process makes meanwhile is for its owner's eyes only."""
    mask = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(mask)


class DataFolder:
    """A folder that belongs to one running server.

    What this process makes is for its owner's eyes only from here to `close`, however open the folder is that
    another user made: environments of jobs are in there.

    Parameters
    ----------
    path
        The folder; made when it is not there, for the owner's eyes only.

    Raises
    ------
    RejectedError
        When the folder cannot be made, or another server uses it.
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
        """The embedded database."""
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
        """Keep the first token for local commands, for the owner's eyes only."""
        _write_private(self.admin_token, f"{secret}\n")

    def announce(self, url: str, clusters: str) -> None:
        """Tell local commands where the server is, and which kind of clusters it drives."""
        _write_private(self.path / NOTE, json.dumps({"url": url, "pid": os.getpid(), "clusters": clusters}) + "\n")

    def close(self) -> None:
        """Let another server use the folder."""
        (self.path / NOTE).unlink(missing_ok=True)
        self._opened.close()


def _close_to_others(folder: Path) -> None:
    """Take from others what they may do with Seaway's own files; those of another owner stay as they are."""
    for path in (folder / name for name in OURS):
        with suppress(FileNotFoundError, PermissionError):
            if path.stat().st_mode & 0o077:
                path.chmod(path.stat().st_mode & 0o700)


def _write_private(path: Path, text: str) -> None:
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    fresh.replace(path)
