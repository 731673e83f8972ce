"""Anything that is shown of one job."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from seaway.cli.jobs.show import _picture
from tests.unit.client.requesting import JOB


def rows(workloads: list[dict[str, Any]], *, wide: bool = True) -> list[list[str]]:
    """Print a job, and return the cells of its containers."""
    out = io.StringIO()
    Console(file=out, width=200).print(_picture(JOB, [], workloads, wide=wide))
    lines = out.getvalue().splitlines()
    heads = [at for at, line in enumerate(lines) if line.startswith("REPLICA")]
    return [line.split() for at in heads for line in lines[at + 1 : lines.index("", at)]]


def replica(number: int, pod: str, *containers: dict[str, Any]) -> dict[str, Any]:
    """Make what a cluster tells of a replica."""
    return {"replica": number, "phase": "running", "node": "n", "pod": pod, "containers": [*containers], "reason": ""}


def copy(*replicas: dict[str, Any]) -> dict[str, Any]:
    """Make what a cluster tells of a job."""
    return {"cluster": "alpha", "phase": "running", "address": "", "reason": "", "replicas": [*replicas]}


def test_every_container_has_a_row_with_its_ports_and_devices() -> None:
    """Also one that holds none, and a pod of which no container is known; what has no pod is not there yet."""
    main = {"name": "main", "ports": [8080, 9090], "devices": ["GPU-1", "GPU-2"]}
    side = {"name": "side", "ports": [], "devices": []}
    workloads = [copy(replica(0, "seaway/a", main, side), replica(1, "seaway/b"), replica(2, ""))]
    assert rows(workloads) == [
        ["0", "running", "alpha", "n", "seaway/a", "main", "8080,9090", "GPU-1,", "GPU-2"],
        ["0", "running", "alpha", "n", "seaway/a", "side", "–", "–"],
        ["1", "running", "alpha", "n", "seaway/b", "–", "–", "–"],
    ]
    assert not rows(workloads, wide=False)
