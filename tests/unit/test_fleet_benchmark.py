"""Measurements of `script/bench fleet`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any, cast

from benchmarks.api.server import Served
from benchmarks.clusters import fleet
from benchmarks.clusters.world import World


class Growing:
    """A control plane that reports a few more pods at every request."""

    def __init__(self, seen: Iterator[tuple[int, int]]) -> None:
        self._seen = seen
        self._now = (0, 0)

    def get(self, path: str) -> Growing:
        """Advance to the next number of pods."""
        assert path == "/api/v1/fleet/clusters"
        self._now = next(self._seen)
        return self

    def json(self) -> Any:  # noqa: ANN401  # any JSON
        """Return nodes and used amounts of each cluster."""
        nodes, held = self._now
        return {"clusters": [{"nodes": nodes, "gpu_milli": {"used": held}}] * fleet.CLUSTERS}

    def cpu_s(self) -> float:
        """Return no CPU time."""
        return 0.0


def test_view_is_complete_with_every_node_and_pod() -> None:
    """Some pods of every cluster are not enough; the last pod counts."""
    all_held = fleet.PODS * 50
    seen = iter([(fleet.NODES, 0), (fleet.NODES, 50), (fleet.NODES, all_held - 50), (fleet.NODES, all_held)])
    rows: list[dict[str, Any]] = []
    growing = Growing(seen)
    fleet._first_view(cast("World", growing), cast("Served", growing), time.monotonic(), rows)  # noqa: SLF001
    assert list(seen) == []
    assert {row["what"]: row["figure"] for row in rows}["GPUs held by pods"] == fleet.CLUSTERS * fleet.PODS // 20


def test_peak_memory_covers_the_whole_process_lifetime() -> None:
    """Memory that a process released counts for its peak, and not for its present use."""
    code = "held = b'x' * (200 << 20); del held; print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        served = Served("", "", process, 0)
        peak_mib, held_mib = served.peak_memory_mib(), served.memory_mib()
        process.communicate(os.linesep.encode())
    assert peak_mib > 200 > held_mib
