"""The emulator as a process of its own: ``python -m lab.emulation.daemon CONTROL SEED``."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from random import Random

from lab.emulation.emulator import Emulator
from lab.emulation.queue_socket import PacketQueue
from lab.holding import Holding

PRIORITY = 50
"""Among processes in real time, where the machine lets it be one."""

READY = "ready"
"""What it prints when packets may come."""

PR_SET_TIMERSLACK = 29


def main(control: str, seed: str) -> None:
    """Emulate until SIGTERM."""
    emulator = Emulator(PacketQueue(), Holding(Random(int(seed))), Path(control))  # nothing here is a secret

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    be_punctual()
    sys.stdout.write(f"{READY}\n")
    sys.stdout.flush()
    try:
        while True:
            emulator.turn()
    finally:
        emulator.close()


def end(*_: object) -> None:
    """Stop at a signal."""
    raise SystemExit


def be_punctual() -> None:
    """Wake up when it is time: before other processes where that is allowed, and with timers as fine as they go."""
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
    gc.freeze()
    gc.disable()  # nothing that it makes for a packet is garbage in a circle


if __name__ == "__main__":
    main(*sys.argv[1:])
