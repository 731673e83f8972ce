"""Processes of this machine."""

from __future__ import annotations

from pathlib import Path


def runs(pid: int) -> bool:
    """Report whether a process runs; a zombie does not."""
    try:
        said = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return said.rpartition(")")[2].split()[0] not in ("Z", "X")
