"""Results of benchmarks, and the circumstances of measurements."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numba
import numpy as np

import seaway

ROOT = Path(__file__).resolve().parent.parent
MIB = 1024


@dataclass(frozen=True, slots=True)
class Result:
    """Result of one case.

    Attributes
    ----------
    case
        Its name.
    rows
        Measurements, each a mapping of names to figures.
    notes
        Method of measurement.
    missed
        Missed bounds.
    """

    case: str
    rows: list[dict[str, Any]]
    notes: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of cases that run for a given time.

    Attributes
    ----------
    minutes
        Duration of the load.
    attacks
        Names of the kinds of attacks of a siege; empty for all.
    plot
        File for a picture of the curves of a soak; None for none.
    """

    minutes: float
    attacks: tuple[str, ...] = ()
    plot: Path | None = None


class SkippedError(Exception):
    """A case cannot run here; names the reason."""


def circumstances(seed: int) -> dict[str, Any]:
    """Return the machine, the versions and the seed."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return {
        "cpu": _cpu_name(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "seaway": seaway.__version__,
        "commit": commit.stdout.strip() or "unknown",
        "seed": seed,
    }


def peak_memory_mib() -> int:
    """Return the peak memory of this process, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // MIB


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
