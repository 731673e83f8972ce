"""Processes that end with the process that started them."""

from __future__ import annotations

import ctypes
import signal
import sys

PR_SET_PDEATHSIG = 1
"""Linux: the signal that a process gets when the thread ends that started it."""


def end_with_parent() -> None:
    """Have this process ended by SIGTERM when its parent dies, even by SIGKILL; Linux only, elsewhere do nothing."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
