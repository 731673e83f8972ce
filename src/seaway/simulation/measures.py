"""Measures of the use of a fleet, over its clusters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
)

Float64 = NDArray[np.float64]

TOTAL_ROWS = np.array([CLUSTER_CPU, CLUSTER_MEMORY, CLUSTER_GPU_MEMORY, CLUSTER_GPU_CORE])
FREE_ROWS = np.array([CLUSTER_CPU_FREE, CLUSTER_MEMORY_FREE, CLUSTER_GPU_MEMORY_FREE, CLUSTER_GPU_CORE_FREE])
CPU, MEMORY, GPU_MEMORY, GPU_CORE = range(4)

AT_HUNDRED_PCT = 100


@dataclass(frozen=True, slots=True)
class Use:
    """Use of a fleet.

    Attributes
    ----------
    gpu_core_pct, gpu_memory_pct, cpu_pct, memory_pct
        Mean allocated share over clusters, percent; None if no cluster has any.
    gpu_core_pct_std, gpu_memory_pct_std, cpu_pct_std, memory_pct_std
        Standard deviation over clusters, percent points.
    fragmentation
        Mean over clusters of the sum over the four resources of the share that is free, 0-4; a
        resource that a cluster has none of counts as 0.
    gpu_load_variance
        Variance over clusters of the mean of GPU memory use and GPU core use, both 0-1.
    """

    gpu_core_pct: float | None
    gpu_memory_pct: float | None
    cpu_pct: float | None
    memory_pct: float | None
    gpu_core_pct_std: float | None
    gpu_memory_pct_std: float | None
    cpu_pct_std: float | None
    memory_pct_std: float | None
    fragmentation: float | None
    gpu_load_variance: float | None


def used_shares(clusters: Int64) -> Float64:
    """Return the share of each resource that is in use.

    Parameters
    ----------
    clusters
        Shape (CLUSTER_ROWS, C).

    Returns
    -------
    Float64
        Shape (4, C): CPU, memory, GPU memory, GPU cores, each 0-1; NaN where a cluster has none.
    """
    total = clusters[TOTAL_ROWS].astype(np.float64)
    total[total == 0] = np.nan
    shares: Float64 = (total - clusters[FREE_ROWS]) / total
    return shares


def use(shares: Float64) -> Use:
    """Work out the figures from the shares in use, shape (4, C), as `used_shares` gives them."""
    means = [_mean(row) for row in shares]
    spreads = [_std(row) for row in shares]
    gpu_load = (shares[GPU_MEMORY] + shares[GPU_CORE]) / 2
    spread = _std(gpu_load)
    return Use(
        gpu_core_pct=_percent(means[GPU_CORE]),
        gpu_memory_pct=_percent(means[GPU_MEMORY]),
        cpu_pct=_percent(means[CPU]),
        memory_pct=_percent(means[MEMORY]),
        gpu_core_pct_std=_percent(spreads[GPU_CORE]),
        gpu_memory_pct_std=_percent(spreads[GPU_MEMORY]),
        cpu_pct_std=_percent(spreads[CPU]),
        memory_pct_std=_percent(spreads[MEMORY]),
        fragmentation=_mean(np.nansum(1 - shares, axis=0)),
        gpu_load_variance=None if spread is None else spread**2,
    )


def at_hundred(arrived_pct: Float64, allocated_pct: Float64) -> float | None:
    """Return the mean of what was allocated over the arrivals whose arrived % rounds to 100.

    None when there are none.

    References
    ----------
    Weng et al.: Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation
    Gradient Descent. USENIX ATC 2023 (so its published runs are evaluated).
    """
    return _mean(allocated_pct[np.rint(arrived_pct) == AT_HUNDRED_PCT])


def quantile(values: Float64, share: float) -> float | None:
    """Return the value that `share` of `values` do not exceed; None without values."""
    return float(np.quantile(values, share)) if values.size else None


def _mean(values: Float64) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else None


def _std(values: Float64) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.std()) if known.size else None


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
