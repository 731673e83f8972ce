"""The data folder: the database, backups, simulated clusters, and how local commands find the server."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import IO

from seaway.domain.errors import RejectedError


class DataFolder:
    """A folder that belongs to one running server.

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
        try:
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock: IO[str] = (path / "lock").open("a")
        except OSError as error:
            raise RejectedError(f"the data folder cannot be used: {error}", where=str(path)) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise RejectedError(
                "another seaway runs on this data folder; choose one with --data", where=str(path)
            ) from None

    @property
    def database_url(self) -> str:
        """The embedded database."""
        return f"sqlite:///{self.path.absolute() / 'seaway.db'}"

    @property
    def backups(self) -> Path:
        """Where backups go."""
        return self.path / "backups"

    @property
    def admin_token(self) -> Path:
        """File with the first token, for local commands."""
        return self.path / "admin-token"

    def write_token(self, secret: str) -> None:
        """Keep the first token for local commands, for the owner's eyes only."""
        _write_private(self.admin_token, f"{secret}\n")

    def announce(self, url: str) -> None:
        """Tell local commands where the server is."""
        _write_private(self.path / "server.json", json.dumps({"url": url, "pid": os.getpid()}) + "\n")

    def close(self) -> None:
        """Let another server use the folder."""
        (self.path / "server.json").unlink(missing_ok=True)
        self._lock.close()


def _write_private(path: Path, text: str) -> None:
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    fresh.replace(path)
