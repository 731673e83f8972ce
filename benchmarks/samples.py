"""Samples of a process from the outside: memory, file descriptors, threads, CPU time, and readiness."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.api.server import cpu_s

KIB_PER_MIB = 1024
PROBE_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Sample:
    """State of a process.

    Attributes
    ----------
    at_s
        Monotonic time.
    rss_mib, pss_mib
        Resident memory; the same with shared pages divided among their users.
    files, threads
        Numbers of open file descriptors and of threads.
    """

    at_s: float
    rss_mib: float
    pss_mib: float
    files: int
    threads: int
    cpu_s: float


def sample(process: int) -> Sample:
    """Return the current state of a process.

    References
    ----------
    proc_pid_smaps_rollup(5) and proc_pid_status(5).
    """
    folder = Path(f"/proc/{process}")
    memory, status = _fields(folder / "smaps_rollup"), _fields(folder / "status")
    return Sample(
        at_s=time.monotonic(),
        rss_mib=memory["Rss"] / KIB_PER_MIB,
        pss_mib=memory["Pss"] / KIB_PER_MIB,
        files=sum(1 for _ in (folder / "fd").iterdir()),
        threads=status["Threads"],
        cpu_s=cpu_s(process),
    )


def _fields(path: Path) -> dict[str, int]:
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        number = value.split()[:1]
        if number and number[0].isdecimal():
            found[name] = int(number[0])
    return found


class Repeated(threading.Thread):
    """Thread that collects the results of a function at intervals, until `stop`.

    Parameters
    ----------
    interval_s
        Seconds between two calls. A call that takes longer delays the next one.
    """

    def __init__(self, do: Callable[[], object], interval_s: float) -> None:
        super().__init__(daemon=True)
        self._do, self._interval_s = do, interval_s
        self._stopping = threading.Event()

    def run(self) -> None:
        """Call the function until stopped."""
        due_s = time.monotonic()
        while not self._stopping.wait(max(0.0, due_s - time.monotonic())):
            self._do()
            due_s = max(due_s + self._interval_s, time.monotonic())

    def stop(self) -> None:
        """Stop, and wait for the last call."""
        self._stopping.set()
        self.join()


def readiness(url: str) -> tuple[float, str]:
    """Check readiness on a new connection; return the duration in seconds, infinite with the reason if not ready."""
    parts = urlsplit(url)
    began_s = time.monotonic()
    try:
        with socket.create_connection((parts.hostname, parts.port), PROBE_TIMEOUT_S) as client:
            client.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            answer = client.recv(4096)
    except OSError as error:
        return float("inf"), f"{type(error).__name__} after {time.monotonic() - began_s:.0f} s"
    if not answer.startswith(b"HTTP/1.1 200"):
        return float("inf"), answer.partition(b"\r\n\r\n")[2].decode() or "closed without a response"
    return time.monotonic() - began_s, ""
