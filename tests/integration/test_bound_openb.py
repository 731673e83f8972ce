"""The bound on the openb trace equals the published one."""

from pathlib import Path

import pytest

from seaway.simulation.bound import bound_pct
from seaway.simulation.trace import TraceFiles, read_trace

pytestmark = [pytest.mark.shared, pytest.mark.slow]

BOUNDS = {"default": 96.90, "multigpu20": 97.34, "gpushare40": 95.64, "gpuspec10": 96.86, "cpu050": 96.91}
"""Percent of the fleet's GPU milli, from the table in traces/README.md."""


@pytest.mark.parametrize(("variant", "expected"), BOUNDS.items())
def test_bound_equals_the_published_one(shared: Path, variant: str, expected: float) -> None:
    """The bound with full knowledge, after requests for 100 %, agrees with the table."""
    openb = shared / "traces" / "openb"
    trace = read_trace(
        TraceFiles(
            nodes=openb / "openb_node_list_gpu_node.csv",
            jobs=openb / f"openb_pod_list_{variant}.csv",
            job_order=openb / "orders" / f"pods_{variant}_42.csv",
        )
    )
    assert bound_pct(trace.fleet, trace.jobs) == pytest.approx(expected, abs=0.05)
