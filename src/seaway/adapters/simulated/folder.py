"""The data folder of simulated clusters: one process at a time."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from seaway.domain.errors import RejectedError, UnavailableError


@contextmanager
def locked(data: Path | None) -> Iterator[None]:
    """Keep a data folder, which is made when it is not there, from other processes; None is no folder.

    Raises
    ------
    RejectedError
        When another process has it.
    UnavailableError
        When it cannot be made.
    """
    if data is None:
        yield
        return
    try:
        data.mkdir(parents=True, exist_ok=True)
        lock = (data / "lock").open("w")
    except OSError as error:
        raise UnavailableError(f"data folder {data}: {error.strerror}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RejectedError(f"data folder {data} is in use by another process") from None
        yield
