"""Results of a replay of a trace with one policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from seaway.domain.job import Job
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
    PLAN_JOB,
    PLAN_LINK_MISSED,
)
from seaway.scheduling.engine import Policy, decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plan import Plan
from seaway.scheduling.policies.registry import make_policy
from seaway.scheduling.profile import Profile
from seaway.scheduling.snapshot.snapshot import Snapshot

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
        Mean over clusters of the sum of the free shares of the four resources, 0-4. A resource that a cluster does not
        have counts as 0.
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
    """Return the allocated share of each resource.

    Parameters
    ----------
    clusters
        Table of clusters, shape (CLUSTER_ROWS, C).

    Returns
    -------
    Float64
        Shape (4, C): CPU, memory, GPU memory, GPU cores, each 0-1; NaN if a cluster has none.
    """
    total = clusters[TOTAL_ROWS].astype(np.float64)
    total[total == 0] = np.nan
    shares: Float64 = (total - clusters[FREE_ROWS]) / total
    return shares


class UseOverTime:
    """Mean allocated shares of a fleet over time."""

    def __init__(self, clusters: Int64) -> None:
        self._total = clusters[TOTAL_ROWS].astype(np.float64)
        self._free_s = np.zeros(self._total.shape, np.int64)
        self._span_s = 0

    def add(self, lasts_s: int, clusters: Int64) -> None:
        """Add some seconds with the free amounts of a table of clusters."""
        if lasts_s:
            self._free_s += lasts_s * clusters[FREE_ROWS]
            self._span_s += lasts_s

    def shares(self, clusters: Int64) -> Float64:
        """Return the mean shares as `used_shares` does; without any time, those of a table of clusters."""
        if not self._span_s:
            return used_shares(clusters)
        total = np.where(self._total == 0, np.nan, self._total)
        shares: Float64 = 1 - self._free_s / self._span_s / total
        return shares


def use(shares: Float64) -> Use:
    """Compute the use of a fleet from the shares of `used_shares`, shape (4, C)."""
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
    """Return the mean allocation over the arrivals at which the requested cores round to 100% of the fleet's.

    None if there are no such arrivals.

    References
    ----------
    Weng et al.: Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent. USENIX
    ATC 2023 (its published runs are evaluated in this way).
    """
    return _mean(allocated_pct[np.rint(arrived_pct) == AT_HUNDRED_PCT])


def quantile(values: Float64, share: float) -> float | None:
    """Return a quantile of values; None without values."""
    return float(np.quantile(values, share)) if values.size else None


def _mean(values: Float64) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else None


def _std(values: Float64) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.std()) if known.size else None


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


@dataclass(frozen=True, slots=True)
class Counts:
    """Results of the jobs.

    Attributes
    ----------
    jobs
        Arrived jobs.
    placed
        Jobs placed with all their replicas, with links within their bounds.
    refused
        Jobs not placed because they did not fit.
    failed
        Jobs not placed although they fitted, or placed with links that violate their bounds.
    """

    jobs: int
    placed: int
    refused: int
    failed: int


@dataclass(frozen=True, slots=True)
class Shares:
    """Requested and allocated GPU cores, percent of the fleet's; None for a fleet without GPU cores.

    Attributes
    ----------
    arrived_pct
        Cores requested by all arrived jobs.
    gpu_allocated_pct
        Cores allocated at the end; with departures, the mean over time.
    gpu_allocated_pct_at_100
        Cores allocated when 100% were requested, see `at_hundred`; None with departures.
    """

    arrived_pct: float | None
    gpu_allocated_pct: float | None
    gpu_allocated_pct_at_100: float | None = None


@dataclass(frozen=True, slots=True)
class Speed:
    """Speed of decisions after compilation; None without a measurement.

    Attributes
    ----------
    decisions_per_s
        Replicas decided per second, in calls with many jobs.
    p50_us, p99_us
        Median and 99th percentile of the time for a call with one job, microseconds.
    """

    decisions_per_s: float | None
    p50_us: float | None
    p99_us: float | None


SLOWDOWN_BOUND_S = 10
"""Duration below which a job counts as this long in its bounded slowdown, seconds."""


@dataclass(frozen=True, slots=True)
class Waits:
    """Waiting times of jobs that end.

    Attributes
    ----------
    queue_wait_mean_s, queue_wait_p50_s, queue_wait_p90_s, queue_wait_p99_s
        Time from arrival to start of the started jobs, seconds; None if no job started.
    makespan_s
        Time from the first arrival to the last end (or start, for jobs without an end), seconds.
    bounded_slowdown_mean, bounded_slowdown_p50, bounded_slowdown_p99
        Time from arrival to end, divided by the duration of at least `SLOWDOWN_BOUND_S`, at least 1, of the started
        jobs that end; None without any.
    jain_index
        Jain's index of the mean bounded slowdowns of the tenants: 1 if all are equal, 1/n if one of n tenants has all
        of it; None with fewer than two tenants.
    """

    queue_wait_mean_s: float | None
    queue_wait_p50_s: float | None
    queue_wait_p90_s: float | None
    queue_wait_p99_s: float | None
    makespan_s: int
    bounded_slowdown_mean: float | None = None
    bounded_slowdown_p50: float | None = None
    bounded_slowdown_p99: float | None = None
    jain_index: float | None = None


@dataclass(frozen=True, slots=True)
class Sharing:
    """Shares of queues and tenants, and displaced jobs.

    Attributes
    ----------
    share_error
        Mean over time of what tenants hold beyond their weighted max-min shares in the tree of queues, as a share of
        these, 0 to 1; None without any time.
    preempted
        Number of displaced jobs.
    preempted_gpu_hours
        GPU hours that displaced jobs ran in vain.
    """

    share_error: float | None
    preempted: int
    preempted_gpu_hours: float


def waits_of(jobs: Sequence[Job], starts_s: Int64, makespan_s: int) -> Waits:
    """Return the waiting times of jobs.

    Parameters
    ----------
    jobs
        Jobs by number.
    starts_s
        Start of each job, seconds, shape (J,); -1 for a job that did not start.

    References
    ----------
    Feitelson, Rudolph: Metrics and Benchmarking for Parallel Job Scheduling. JSSPP 1998, doi:10.1007/BFb0053978
    (bounded slowdown). Jain, Chiu, Hawe: A Quantitative Measure of Fairness and Discrimination for Resource Allocation
    in Shared Computer Systems. DEC TR-301, 1984.
    """
    started = np.flatnonzero(starts_s >= 0).tolist()
    waits_s = (starts_s[started] - [jobs[number].arrives_s for number in started]).astype(np.float64)
    lasts_s = np.array([np.nan if (s := jobs[number].expected_duration_s) is None else s for number in started])
    slowdowns = np.maximum((waits_s + lasts_s) / np.maximum(lasts_s, SLOWDOWN_BOUND_S), 1)
    known = slowdowns[~np.isnan(slowdowns)]
    tenants = np.array([jobs[number].tenant for number in started])
    return Waits(
        queue_wait_mean_s=_mean(waits_s),
        queue_wait_p50_s=quantile(waits_s, 0.5),
        queue_wait_p90_s=quantile(waits_s, 0.9),
        queue_wait_p99_s=quantile(waits_s, 0.99),
        makespan_s=makespan_s,
        bounded_slowdown_mean=_mean(known),
        bounded_slowdown_p50=quantile(known, 0.5),
        bounded_slowdown_p99=quantile(known, 0.99),
        jain_index=_jain_index(tenants[~np.isnan(slowdowns)], known),
    )


def _jain_index(tenants: NDArray[np.str_], values: Float64) -> float | None:
    """Return Jain's index of the tenants' mean values; None with fewer than two tenants."""
    names, of = np.unique(tenants, return_inverse=True)
    if len(names) < 2:
        return None
    means = np.bincount(of, values) / np.bincount(of)
    return float(means.sum() ** 2 / (len(names) * (means**2).sum()))


@dataclass(frozen=True, slots=True)
class Curve:
    """Allocated GPU cores by arrival or over time.

    Attributes
    ----------
    arrived_pct, allocated_pct
        Requested and allocated cores after each arrival or event, percent of all GPU cores, shape (X,).
    time_s
        Time of each event, seconds, shape (X,); None without departures.
    """

    arrived_pct: Float64
    allocated_pct: Float64
    time_s: Float64 | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """Results of a policy.

    Attributes
    ----------
    use
        Use at the end; with departures, the mean over time.
    waits
        Waiting times; None without departures.
    used
        Allocated share of each resource of each cluster at the end, shape (4, C), see `used_shares`; None with
        departures.
    starts_s
        Start of each job in the order of arrival, seconds, shape (J,); -1 for a job that did not start; None without
        departures. Of a displaced job, the last start.
    sharing
        Shares and displaced jobs; None without queues.
    """

    policy: str
    counts: Counts
    shares: Shares
    use: Use
    speed: Speed
    curve: Curve
    waits: Waits | None = None
    used: Float64 | None = None
    starts_s: Int64 | None = None
    sharing: Sharing | None = None

    def record(self) -> dict[str, str | int | float | None]:
        """Return all results by name, in the order of display."""
        waits = asdict(self.waits) if self.waits else {}
        sharing = asdict(self.sharing) if self.sharing else {}
        return {
            "policy": self.policy,
            **asdict(self.counts),
            **asdict(self.shares),
            **asdict(self.use),
            **asdict(self.speed),
            **waits,
            **sharing,
        }


COMPLETE_POLICIES = "bestfit"
"""Policy that decides whether a job would have fitted."""


def count_outcomes(plan: Plan, put_back: int = 0) -> Counts:
    """Count the placed, refused and failed jobs of a plan.

    A job without a placement is refused if it did not fit at that time. This is checked with a policy that places every
    job that fits. A job whose links violate its bounds failed. A job that was deferred and not placed failed too,
    because only jobs that fit can be deferred.

    Parameters
    ----------
    plan
        All decisions since the snapshot was empty. The plan and the snapshot are not changed.
    put_back
        Number of deferred jobs, which are the last ones of the plan.
    """
    then, lines, policy = plan.snapshot.copy(), plan.decisions.copy(), make_policy(COMPLETE_POLICIES)
    placed = plan.jobs_placed
    first_line = np.searchsorted(lines[:, PLAN_JOB], np.arange(len(plan.queue)))
    astray = np.unique(lines[lines[:, PLAN_LINK_MISSED] != 0, PLAN_JOB])
    undone, refused = len(lines), 0
    judged = len(placed) - put_back
    for j in np.setdiff1d(np.flatnonzero(~placed[:judged]), astray)[::-1]:
        then.release(lines, plan.slices, np.arange(first_line[j], undone))
        undone = first_line[j]
        refused += not could_place(then, plan.queue.part(j, j + 1), policy)
    jobs, successes = len(placed), int(placed.sum())
    return Counts(jobs, successes, refused, jobs - successes - refused)


def could_place(snapshot: Snapshot, job: JobQueue, policy: Profile | Policy) -> bool:
    """Report whether `policy` would place a queue of one job. The snapshot is restored."""
    plan = decide(snapshot, job, policy)
    placed = bool(plan.jobs_placed[0])
    snapshot.release(plan.decisions, plan.slices, np.arange(len(plan.decisions)))
    return placed
