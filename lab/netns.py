"""Named network namespaces, as in `ip netns`."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from pyroute2 import netns

FOLDER = Path("/run/netns")
OPTION, VARIABLE, PROGRAM = "--netns", "SEAWAY_AGENT_NETNS=", "seaway"
"""Option, environment variable and program by which commands of Seaway name their namespace."""
HEED = ("agent", "follow")
"""Commands that use the variable."""
MODULE_AT = 3
"""Maximum position of the command name: ``seaway``, ``python seaway`` or ``python -m seaway``."""

PATIENCE_S = 2.0
"""Grace period of processes after SIGTERM."""

Result = TypeVar("Result")

WITH_OWN_SYS = 'mount -t sysfs sysfs /sys 2>/dev/null; exec "$@"'
"""Mounts the /sys of the namespace, from which tools read interfaces."""


def make(name: str) -> None:
    """Create a namespace."""
    netns.create(name)


def remove(name: str) -> None:
    """Remove the name of a namespace. The namespace itself exists until its last process ends."""
    with suppress(FileNotFoundError):
        netns.remove(name)


def names() -> list[str]:
    """Return the names of all namespaces of this machine."""
    return sorted(each.name for each in FOLDER.iterdir()) if FOLDER.is_dir() else []


def inside(name: str, act: Callable[[], Result]) -> Result:
    """Run a function in a namespace, in a thread, since a thread can be in another namespace than its process."""

    def enter_and_act() -> Result:
        netns.setns(str(FOLDER / name), flags=os.O_RDONLY)
        return act()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(enter_and_act).result()


def command_in(name: str, command: Sequence[str], *, own_sys: bool = True) -> list[str]:
    """Return the command that runs another one in a namespace."""
    enter = ["nsenter", f"--net={FOLDER / name}"]
    return [*enter, "unshare", "--mount", "sh", "-c", WITH_OWN_SYS, "sh", *command] if own_sys else [*enter, *command]


def processes(of: Iterable[str]) -> list[int]:
    """Return the processes with a thread in some namespaces, and Seaway's own that are to work there."""
    names = set(of)
    wanted = {found.st_ino for found in map(_stat, (FOLDER / name for name in names)) if found}
    pids = (int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit())
    return [pid for pid in pids if pid != os.getpid() and (_is_in(pid, wanted) or _works_in(pid, names))]


def _is_in(pid: int, inodes: set[int]) -> bool:
    """Report whether a process has a thread in one of some namespaces; an agent's main thread is outside."""
    try:
        found = [_stat(each / "ns/net") for each in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return False
    return any(each.st_ino in inodes for each in found if each)


def _works_in(pid: int, names: set[str]) -> bool:
    """Report whether a process is a command of Seaway for one of some namespaces, which it may not have entered yet."""
    words = _words(pid, "cmdline")
    if not any(Path(word).name == PROGRAM for word in words[:MODULE_AT]):
        return False
    given = [value for option, value in pairwise(words) if option == OPTION]
    given += [word.removeprefix(f"{OPTION}=") for word in words if word.startswith(f"{OPTION}=")]
    if not given and any(each in words for each in HEED):
        given = [each.removeprefix(VARIABLE) for each in _words(pid, "environ") if each.startswith(VARIABLE)]
    return any(value in names for value in given)


def _words(pid: int, what: str) -> list[str]:
    try:
        return Path(f"/proc/{pid}/{what}").read_text(errors="replace").split("\0")
    except OSError:
        return []


def end_processes(of: Iterable[str]) -> None:
    """End the processes in some namespaces by SIGTERM, after a grace period by SIGKILL."""
    of = list(of)
    ends_s = time.monotonic() + PATIENCE_S
    sign = signal.SIGTERM
    while pids := processes(of):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, sign)
        while processes(of) and time.monotonic() < ends_s:
            time.sleep(0.01)
        if sign is signal.SIGKILL:
            return
        sign, ends_s = signal.SIGKILL, time.monotonic() + PATIENCE_S


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None
