"""Processes that end together with their parent."""

from __future__ import annotations

import ctypes
import signal
import sys

PR_SET_PDEATHSIG = 1
"""Option of prctl on Linux for the signal that a process gets when the thread that started it ends."""


def end_with_parent() -> None:
    """Request a SIGTERM for the death of the parent, even by SIGKILL. Only Linux supports this."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
