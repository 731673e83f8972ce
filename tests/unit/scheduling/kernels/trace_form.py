"""Small fleets and jobs in the form of the published trace: memory of devices is counted like their cores."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from seaway.domain.cluster import Fleet
from seaway.domain.job import Job
from seaway.testing.plugins import fleet, gpu, job, node

MODELS = ("A", "B")
PLENTY_MIB = 1_000_000

Shape = tuple[int, int, str]
"""A node: CPU milli, number of devices, and their model."""


def fleet_of(nodes: list[Shape]) -> Fleet:
    """Create a fleet."""
    return fleet(
        *(
            node(
                *(gpu(model=model, memory_mib=1_000, share_limit=1_000) for _ in range(gpus)),
                cpu_milli=cpu,
                memory_mib=PLENTY_MIB,
            )
            for cpu, gpus, model in nodes
        )
    )


def trace_job(name: str = "job", cpu: int = 1_000, milli: int = 500, gpus: int = 1, **figures: Any) -> Job:  # noqa: ANN401
    """Create a job of the trace; `figures` are further fields of a job."""
    request = {"gpus": gpus, "gpu_milli": milli, "gpu_memory_mib": milli} if gpus else {}
    return job(name, cpu_milli=cpu, **request, **figures)


def trace_nodes(most: int = 5) -> st.SearchStrategy[list[Shape]]:
    """Draw nodes of up to four devices, or none."""
    cpu = st.sampled_from((2_000, 6_000, 16_000))
    return st.lists(st.tuples(cpu, st.integers(0, 4), st.sampled_from(MODELS)), min_size=1, max_size=most)


def trace_jobs(least: int, most: int, specs: tuple[str, ...] = ("", "", "A", "A|B")) -> st.SearchStrategy[list[Job]]:
    """Draw jobs without a device, with a part of one, and with several whole ones."""
    shape = st.one_of(
        st.just((0, 0)),
        st.tuples(st.just(1), st.sampled_from((100, 190, 300, 500, 810, 1_000))),
        st.tuples(st.integers(2, 3), st.just(1_000)),
    )
    one = st.tuples(st.sampled_from((0, 1_000, 3_000, 8_000)), shape, st.sampled_from(specs))
    return st.lists(one, min_size=least, max_size=most).map(
        lambda jobs: [
            trace_job(f"job-{at}", cpu, milli, gpus, models=frozenset(filter(None, spec.split("|"))))
            for at, (cpu, (gpus, milli), spec) in enumerate(jobs)
        ]
    )
