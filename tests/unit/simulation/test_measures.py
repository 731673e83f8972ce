import numpy as np
import pytest

from seaway.scheduling.arrays import Int64
from seaway.scheduling.columns import (
    CLUSTER_CPU,
    CLUSTER_CPU_FREE,
    CLUSTER_GPU_CORE,
    CLUSTER_GPU_CORE_FREE,
    CLUSTER_GPU_MEMORY,
    CLUSTER_GPU_MEMORY_FREE,
    CLUSTER_MEMORY,
    CLUSTER_MEMORY_FREE,
    CLUSTER_ROWS,
)
from seaway.simulation.outcome import at_hundred, quantile, use, used_shares


def clusters(*used: tuple[int, int, int, int]) -> Int64:
    """Return clusters with 100 of CPU, memory, GPU memory and GPU cores, of which so much is used."""
    table = np.zeros((CLUSTER_ROWS, len(used)), np.int64)
    table[[CLUSTER_CPU, CLUSTER_MEMORY, CLUSTER_GPU_MEMORY, CLUSTER_GPU_CORE]] = 100
    free = [CLUSTER_CPU_FREE, CLUSTER_MEMORY_FREE, CLUSTER_GPU_MEMORY_FREE, CLUSTER_GPU_CORE_FREE]
    table[free] = 100 - np.array(used).T
    return table


def test_use_is_the_mean_over_clusters_with_its_deviation() -> None:
    """Each resource is the mean of the clusters' shares, in percent, beside its standard deviation."""
    figures = use(used_shares(clusters((10, 20, 30, 40), (30, 20, 50, 80))))
    assert figures.cpu_pct == pytest.approx(20)
    assert figures.cpu_pct_std == pytest.approx(10)
    assert figures.memory_pct_std == pytest.approx(0)
    assert figures.gpu_memory_pct == pytest.approx(40)
    assert figures.gpu_core_pct == pytest.approx(60)
    assert figures.gpu_core_pct_std == pytest.approx(20)


def test_fragmentation_adds_up_what_is_free() -> None:
    """F = (1/N) sum over clusters of the sum over the four resources of (total - used) / total."""
    figures = use(used_shares(clusters((10, 20, 30, 40), (30, 20, 50, 80))))
    assert figures.fragmentation == pytest.approx((0.9 + 0.8 + 0.7 + 0.6 + 0.7 + 0.8 + 0.5 + 0.2) / 2)


def test_load_variance_is_that_of_the_mean_of_both_gpu_shares() -> None:
    """The GPU load of a cluster is the mean of its GPU memory use and its GPU core use."""
    figures = use(used_shares(clusters((0, 0, 30, 40), (0, 0, 50, 80))))
    assert figures.gpu_load_variance == pytest.approx(np.var([0.35, 0.65]))


def test_a_cluster_without_gpus_counts_for_its_cpu_alone() -> None:
    """Anything that a cluster has none of does not count in the mean, and a fleet without any has no figure."""
    table = clusters((10, 20, 30, 40), (30, 20, 0, 0))
    table[[CLUSTER_GPU_MEMORY, CLUSTER_GPU_CORE, CLUSTER_GPU_MEMORY_FREE, CLUSTER_GPU_CORE_FREE], 1] = 0
    figures = use(used_shares(table))
    assert figures.gpu_core_pct == pytest.approx(40)
    assert figures.cpu_pct == pytest.approx(20)
    alone = use(used_shares(table[:, 1:]))
    assert alone.cpu_pct == pytest.approx(30)
    assert alone.gpu_core_pct is alone.gpu_load_variance is None


def test_at_hundred_averages_the_arrivals_that_round_to_it() -> None:
    """The published figure is the mean over the arrivals between 99.5 and 100.5 %, if there are any."""
    arrived = np.array([99.4, 99.6, 100.4, 100.6])
    assert at_hundred(arrived, np.array([1.0, 2.0, 4.0, 8.0])) == pytest.approx(3)
    assert at_hundred(arrived - 50, arrived) is None


def test_a_quantile_of_nothing_is_unknown() -> None:
    """Without values there is no median."""
    assert quantile(np.array([]), 0.5) is None
    assert quantile(np.array([1.0, 3.0]), 0.5) == pytest.approx(2)
