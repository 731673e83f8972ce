from __future__ import annotations

import pytest

from seaway.domain.job import Demand, DeviceRules, GpuTopology, Job, ResourceRequest
from seaway.domain.network import NetworkNeed
from seaway.domain.units import FIGURES, figure_text
from seaway.scheduling.remedies import changes


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("gpus", 2, ("gpus", "2")),
        ("gpu_memory_mib", 81_920, ("gpu_memory", "80Gi")),
        ("gpu_memory_mib", 190_735, ("gpu_memory", "200GB")),
        ("gpu_memory_percent", 50, ("gpu_memory", "50%")),
        ("gpu_milli", 305, ("gpu_cores", "30.5%")),
        ("cpu_milli", 500, ("cpu", "500m")),
        ("memory_mib", 1_000, ("memory", "1000Mi")),
        ("max_latency_ns", 4_000_000, ("max_latency", "4ms")),
        ("max_jitter_ns", 600_000, ("max_jitter", "600us")),
        ("max_loss_ppm", 1_000, ("max_loss", "0.1%")),
        ("min_bandwidth_mbps", 10_000, ("min_bandwidth", "10Gbps")),
        ("models", 1, ("gpu_model", "1")),
        ("somebody_elses", 7, ("somebody_elses", "7")),
    ],
)
def test_figures_are_written_as_in_job_files(field: str, value: int, text: tuple[str, str]) -> None:
    """A figure has the name and the unit that who wrote the job would use; one that is not known stays as it is."""
    assert figure_text(field, value) == text


def test_every_figure_that_could_be_changed_has_a_word() -> None:
    """Whatever a remedy may change is reported in the words of job files."""
    network = NetworkNeed(1, 1, 1, 1)
    demands = [
        Demand(ResourceRequest(1, 1, 1, 1, 0, 1), DeviceRules(), gateway="g", network=network),
        Demand(ResourceRequest(1, 1, 1, mig="1g.5gb"), DeviceRules(topology=GpuTopology.SAME_ISLAND)),
    ]
    jobs = [Job("gang", demand, replicas=2, gang=True) for demand in demands]
    assert {change.field for each in jobs for change in changes(each, ())} == set(FIGURES) - {"time_limit_s"}
