"""Settings of the control loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from seaway.domain.amounts import parse_gpu_weights
from seaway.domain.backoff import backoff
from seaway.scheduling.queueing.tree import RESTART_COST_S

MANY = 100
"""Number of replicas for which a cluster gets another `assume_timeout_s`. Each replica may become several objects."""


class Drift(StrEnum):
    """Reactions to changes of others to objects of jobs."""

    REPAIR = "repair"
    """Restore the objects."""
    REPORT = "report"
    """Only report the changes."""


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """Choice of the running jobs that a waiting job displaces."""

    restart_cost: float = RESTART_COST_S
    """Cost of the restart of a displaced job besides its lost work, seconds.

    It counts once for each displaced job and once for each of its GPUs, as so many seconds of work of a GPU. 0 compares
    the lost work alone.
    """


@dataclass(frozen=True, slots=True)
class ControlSettings:
    """Delays and limits of the control loop. The defaults suit most fleets."""

    batch_size: int = 64
    """Maximum number of jobs that are decided and stored together. It has no effect on decisions."""
    max_tried_per_cycle: int = 512
    """Number of jobs that are tried before other threads can acquire the lock. It has no effect on decisions."""
    assume_timeout_s: float = 60
    """Seconds after which an unconfirmed placement is released. The same time is added for every 100 replicas. Progress
    reports of the cluster extend it up to tenfold. Use more than 10 with Karmada.
    """
    stale_after_s: float = 15
    """Seconds without a report after which a cluster gets no new jobs.

    For real clusters, they count from the first failed request.
    """
    grace_period_s: float = 60
    """Seconds without a report after which the jobs of a cluster are placed elsewhere; at least `stale_after_s`."""
    max_reschedules_per_minute: int = 120
    """Maximum number of jobs per minute that are moved away from clusters without reports, over all clusters."""
    unhealthy_cluster_threshold: float = 0.5
    """Share of clusters, above 0 and at most 1.

    If more of them are stale, Seaway assumes a local fault. It then moves no job until `grace_period_s` after the
    recovery.
    """
    initial_backoff_s: float = 5
    """Delay before the first retry of a failed job, seconds. It doubles with every failure."""
    max_backoff_s: float = 300
    """Maximum delay before a retry, seconds."""
    exclusion_period_s: float = 600
    """Seconds during which a job avoids devices, nodes and clusters that rejected it."""
    ttl_after_finished_s: float = 3600
    """Seconds after which the objects of a finished job are removed from its clusters.

    Its logs are available until then.
    """
    queue_discipline: str = "fair-share"
    """Order in which waiting jobs are tried. `fair-share` serves the tree of queues by guarantees, priorities and
    weights, and each queue in its own order. Other packages can add disciplines.
    """
    usage_half_life_s: float = 0
    """Time after which past use of a queue or tenant counts half in its share, seconds; 0 to ignore past use. Use hours
    to weeks.
    """
    learn_durations: bool = False
    """Expected durations from past runs of the same tenant, user and job name, for jobs with neither an expected
    duration nor a time limit. They serve reservations, backfill and expected starts, and end no job.
    """
    gpu_weights: str = ""
    """Weight of GPU models in shares, such as `H100=3, L4=0.5`; 1 for others. With weights, memory and cores of GPUs do
    not count.
    """
    scale_interval_s: float = 15
    """Seconds between two evaluations of the triggers of elastic jobs."""
    max_user_priority: int = 1000
    """Maximum priority of jobs that users submit or change. Operators and admins may exceed it."""
    max_unfinished_mib: int = 512
    """Maximum size of what the unfinished jobs of a tenant request, MiB; 0 for no limit.

    A job has 2 KB, and up to 1 MiB with much environment or parameters. The server needs three times as much memory.
    An array counts once, for all its tasks.
    """
    reservations: bool = True
    """Reservation of capacity for the first job of a queue that does not fit."""
    reservation_timeout_s: float = 300
    """Maximum duration of a reservation if it is unknown when capacity becomes free, seconds.

    A pause of the same length follows.
    """
    max_deferral_s: float = 300
    """Maximum seconds that a policy can defer a job that fits, to wait for a better place; 0 disables deferral."""
    poll_interval_s: float = 1
    """Seconds between two cycles without events."""
    cycle_interval_s: float = 0.02
    """Pause between two cycles, seconds. Events that arrive during the pause are handled together."""
    overload_submits_per_s: int = 300
    """Submitted jobs per second above which the control loop pauses longer between cycles, so that clients get fast
    responses.
    """
    overload_pause_cycles: float = 8
    """Length of that pause, as a multiple of the duration of the last cycle."""
    sample_interval_s: float = 60
    """Seconds between two samples of the fleet and of links."""
    drift: str = "repair"
    """Reaction to changes that others make to the objects of a job in a cluster: `repair` restores the objects, up to
    three times in an attempt, and `report` only writes an event.
    """
    slo_violation_s: float = 60
    """Seconds of violated network bounds of a running job before the violation is reported, or the job is moved if it
    requests that.
    """
    path_hold_down_s: float = 30
    """Minimum time that traffic between two gateways stays on a selected path, seconds, unless the path is dead."""

    def weights(self) -> Mapping[str, float]:
        """Return the weight of GPU models in shares, by the name of their resource.

        Raises
        ------
        RejectedError
            If `gpu_weights` is invalid.
        """
        return parse_gpu_weights(self.gpu_weights, where="[control] gpu_weights")

    def confirm_s(self, replicas: int) -> float:
        """Return the seconds that a placement with this number of replicas waits for its confirmation."""
        return self.assume_timeout_s * (1 + replicas // MANY)

    def pause_s(self, failures: int) -> float:
        """Return the pause of a job after this number of failures, seconds."""
        return backoff(failures, self.initial_backoff_s, self.max_backoff_s)
