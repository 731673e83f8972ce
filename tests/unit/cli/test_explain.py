from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console, RenderableType

from seaway.terminal.reasons import picture, remedies
from seaway.terminal.words import need

REMEDY = {"field": "gpu_memory_mib", "requested": 190_735, "admits": 81_920, "cluster": "north", "node": "n0"}


def printed(*shown: RenderableType) -> str:
    """Print to a text."""
    out = io.StringIO()
    Console(file=out, width=120).print(*shown, sep="\n")
    return out.getvalue()


def body(**changed: object) -> dict[str, Any]:
    """Make what the API says of a job that waits."""
    explanation = {"nodes": 1, "filtered": [], "candidates": [], "remedies": []}
    reported = {
        "name": "train",
        "message": "it waits",
        "position": 2,
        "ahead": 1,
        "placement_reason": None,
        "placements": [],
    }
    return {**reported, "explanation": explanation, **changed}


@pytest.mark.parametrize(
    ("ahead", "said"),
    [(0, "nothing is decided before it"), (1, "1 job is decided before it"), (1200, "1,200 jobs are decided")],
)
def test_it_says_how_many_jobs_come_first(ahead: int, said: str) -> None:
    """One job is, several are, and none is nothing."""
    assert f"number 2 in its queue; {said}" in printed(picture(body(ahead=ahead), 1))


def test_remedies_are_reported_in_the_words_of_job_files() -> None:
    """Anything that would admit a job can be copied into its file: names and units are those that it takes."""
    dropped = {**REMEDY, "field": "max_latency_ns", "requested": 1_000_000, "admits": 0}
    lines = [line.split() for line in printed(*remedies({"remedies": [REMEDY, dropped]})).splitlines()]
    assert ["gpu_memory", "200GB", "80Gi", "north/n0"] in lines
    assert ["max_latency", "1ms", "–", "north/n0"] in lines


@pytest.mark.parametrize(
    ("cpu_milli", "memory_mib", "resources", "said"),
    [
        (0, 0, {"gpus": 1, "gpu_memory": "8GB"}, "GPUs 1 × 8GB"),
        (500, 2048, {}, "500m CPU, 2Gi memory"),
        (2000, 0, {"gpus": 2}, "2 CPU, GPUs 2"),
        (0, 0, {}, "nothing"),
    ],
)
def test_what_a_replica_does_not_need_is_not_reported(
    cpu_milli: int, memory_mib: int, resources: dict[str, Any], said: str
) -> None:
    """Amounts of 0 are left out."""
    job = {"request": {"cpu_milli": cpu_milli, "memory_mib": memory_mib}, "spec": {"resources": resources}}
    assert need(job) == said
