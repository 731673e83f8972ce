"""Starts the emulator in the namespace of a lab's core, and sends packets its way."""

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
"""Folder from which the module of the emulator can be imported."""

FILTERS = ("ip6tables", "iptables")
"""Programs that write the kernel's filter rules: for IPv6, which is needed, and for IPv4."""

TO_QUEUE = ("-w", "-A", "FORWARD", "-j", "NFQUEUE", "--queue-num", "0")
"""What is forwarded waits for the emulator. Without one it is lost, rather than quietly fast."""

START_S = 20.0

InCore = Callable[[Sequence[str]], list[str]]
"""Makes of a command the one that runs it in the core's namespace."""


def start(in_core: InCore, control: Path, log: Path, seed: int) -> None:
    """Start an emulator in the background; it ends at SIGTERM.

    Parameters
    ----------
    control
        The socket to ask it by.
    log
        Where it writes what goes wrong.
    seed
        Of whom it loses, and of its jitter.

    Raises
    ------
    UnavailableError
        When it does not start, or packets cannot be sent its way; says what is missing.
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
    """Send what the core forwards to the emulator; IPv4 too, where there is a program to say so with."""
    for each in filter(None, map(program, FILTERS)):
        done = subprocess.run(in_core([each, *TO_QUEUE]), capture_output=True, text=True, check=False)
        if done.returncode:
            raise UnavailableError(f"{each} cannot send packets to a queue: {done.stderr.strip()[-200:]}")


def program(name: str) -> str:
    """Return the path of a program, also where only root looks for it; empty when it is not there."""
    return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin") or ""


def missing() -> str:
    """Return what this machine lacks for emulating links; empty when nothing is known to."""
    return "" if program(FILTERS[0]) else f"{FILTERS[0]} (Debian: apt-get install iptables)"


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"it said nothing in {START_S:g} s"
