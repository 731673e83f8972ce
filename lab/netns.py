"""Network namespaces by name, as `ip netns` has them."""

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
"""How commands of Seaway are told the namespace that they work in."""
HEED = ("agent", "follow")
"""Those that heed the variable."""
MODULE_AT = 3
"""A command's name is among its first words: ``seaway``, ``python seaway`` or ``python -m seaway``."""

PATIENCE_S = 2.0
"""How long processes have for ending when they are asked to."""

Result = TypeVar("Result")

WITH_OWN_SYS = 'mount -t sysfs sysfs /sys 2>/dev/null; exec "$@"'
"""Shows /sys as the namespace has it, which tools read interfaces from."""


def make(name: str) -> None:
    """Make a namespace."""
    netns.create(name)


def remove(name: str) -> None:
    """Remove a namespace's name, and with the last process in it the namespace; none is needed there."""
    with suppress(FileNotFoundError):
        netns.remove(name)


def names() -> list[str]:
    """Return the names of all namespaces of this machine."""
    return sorted(each.name for each in FOLDER.iterdir()) if FOLDER.is_dir() else []


def inside(name: str, act: Callable[[], Result]) -> Result:
    """Run something in a namespace: in a thread, as a thread can be in another one than its process."""

    def enter_and_act() -> Result:
        netns.setns(str(FOLDER / name), flags=os.O_RDONLY)
        return act()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(enter_and_act).result()


def command_in(name: str, command: Sequence[str], *, own_sys: bool = True) -> list[str]:
    """Return the command that runs a command in a namespace."""
    enter = ["nsenter", f"--net={FOLDER / name}"]
    return [*enter, "unshare", "--mount", "sh", "-c", WITH_OWN_SYS, "sh", *command] if own_sys else [*enter, *command]


def processes(of: Iterable[str]) -> list[int]:
    """Return the processes of some namespaces: those with a thread inside, and Seaway's own that are to work there."""
    names = set(of)
    wanted = {found.st_ino for found in map(_stat, (FOLDER / name for name in names)) if found}
    pids = (int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit())
    return [pid for pid in pids if pid != os.getpid() and (_is_in(pid, wanted) or _works_in(pid, names))]


def _is_in(pid: int, inodes: set[int]) -> bool:
    """Tell whether a process has a thread in one of some namespaces: an agent has one, and is elsewhere itself."""
    try:
        found = [_stat(each / "ns/net") for each in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return False
    return any(each.st_ino in inodes for each in found if each)


def _works_in(pid: int, names: set[str]) -> bool:
    """Tell whether a process is a command of Seaway that was told one of some namespaces: it may yet have to enter."""
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
    """End the processes in some namespaces, those that do not heed SIGTERM by force."""
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
