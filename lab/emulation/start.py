"""Start of the emulator in the namespace of a lab's core, and diversion of packets to it."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from seaway.domain.errors import UnavailableError

ROOT = Path(__file__).resolve().parents[2]
"""Root of the repository, from which the emulator module can be imported."""

FILTERS = ("ip6tables", "iptables")
"""Programs that write netfilter rules: for IPv6, which is required, and for IPv4."""

TO_QUEUE = ("-w", "-A", "FORWARD", "-j", "NFQUEUE", "--queue-num", "0")
"""Rule that queues forwarded packets for the emulator. Without an emulator they are lost, not forwarded unchanged."""

START_S = 20.0

InCore = Callable[[Sequence[str]], list[str]]
"""Wraps a command to run in the core's namespace."""


def start(in_core: InCore, control: Path, log: Path, seed: int) -> None:
    """Start an emulator in the background; it ends on SIGTERM.

    Parameters
    ----------
    control
        Path of its control socket.
    log
        File for its errors.
    seed
        Seed of loss and jitter.

    Raises
    ------
    UnavailableError
        If it does not start, or packets cannot be diverted to it; names the cause.
    """
    command = [sys.executable, "-m", "lab.emulation.daemon", str(control), str(seed)]
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            ["setsid", "--fork", *in_core(command)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=ROOT,
        ) as process,
    ):
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], START_S)
        said = process.stdout.readline() if ready else b""
    if not said:
        raise UnavailableError(f"the emulator did not start: {_last_line(log)}")
    divert(in_core)


def divert(in_core: InCore) -> None:
    """Divert the packets that the core forwards to the emulator; IPv4 too if iptables is installed."""
    for each in filter(None, map(program, FILTERS)):
        done = subprocess.run(in_core([each, *TO_QUEUE]), capture_output=True, text=True, check=False)
        if done.returncode:
            raise UnavailableError(f"{each} cannot send packets to a queue: {done.stderr.strip()[-200:]}")


def program(name: str) -> str:
    """Return the path of a program, including those in sbin folders; empty if it is not installed."""
    return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin") or ""


def missing() -> str:
    """Return the missing program for emulating links; empty if none is missing."""
    return "" if program(FILTERS[0]) else f"{FILTERS[0]} (Debian: apt-get install iptables)"


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"it said nothing in {START_S:g} s"
