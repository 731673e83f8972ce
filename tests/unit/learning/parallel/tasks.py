"""Tasks of workers, in a module that workers can import."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from seaway.domain.errors import RejectedError


def drawn(seed: int) -> list[float]:
    """Return random numbers of a seed."""
    import numpy as np

    return list(map(float, np.random.default_rng(seed).random(3)))


def first_try_dies(path: Path) -> str:
    """Create the file and die if it does not exist."""
    if not path.exists():
        path.touch()
        die(path)
    return path.name


def die(_: Path) -> None:
    """Kill the worker."""
    os.kill(os.getpid(), signal.SIGKILL)


def refuse(name: str) -> None:
    """Raise an error for users."""
    raise RejectedError(f"{name} will not do", where="--name")


def a_waiting_user(role_and_pipe: tuple[str, Path]) -> int:
    """Write the number of this process into a pipe and wait for ever; or return the number that is present."""
    role, pipe = role_and_pipe
    if role == "reads":
        return int(pipe.read_text(encoding="utf-8"))
    pipe.write_text(str(os.getpid()), encoding="utf-8")
    signal.pause()
    return 0
