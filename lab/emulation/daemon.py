"""The emulator as a separate process: ``python -m lab.emulation.daemon CONTROL SEED``."""

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
"""Real-time priority, if the machine permits it."""

READY = "ready"
"""Line that it prints when it is ready for packets."""

PR_SET_TIMERSLACK = 29


def main(control: str, seed: str) -> None:
    """Emulate until SIGTERM."""
    emulator = Emulator(PacketQueue(), Holding(Random(int(seed))), Path(control))  # not a secret

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
    """Exit on a signal."""
    raise SystemExit


def be_punctual() -> None:
    """Reduce the latency of wake-ups, by real-time priority if permitted and by the finest timer slack."""
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
    gc.freeze()
    gc.disable()  # it creates no reference cycles per packet


if __name__ == "__main__":
    main(*sys.argv[1:])
