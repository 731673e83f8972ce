"""Measurement of the speed of a policy, after compilation."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import numpy as np

from seaway.scheduling.engine import Policy, decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plan import Plan
from seaway.scheduling.profile import Profile
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.simulation.outcome import Speed, quantile

PolicyMaker = Callable[[], Profile | Policy]
"""Factory of a policy without state."""

WARM_UP_JOBS = 512


def warm_up(snapshot: Snapshot, queue: JobQueue, make: PolicyMaker) -> None:
    """Compile all code that a policy of this kind needs. The snapshot is not changed."""
    decide(snapshot.copy(), queue.part(0, min(len(queue), WARM_UP_JOBS)), make())


class Stopwatch:
    """Makes decisions with a policy and measures the time of the calls of `decide`.

    Parameters
    ----------
    snapshot
        Snapshot to decide on. The engine's state for the policy is created now, outside of the measurement.
    policy
        Policy to measure.

    Attributes
    ----------
    policy
        Its name.
    """

    def __init__(self, snapshot: Snapshot, policy: Profile | Policy) -> None:
        self.policy = policy.name
        self._snapshot = snapshot
        self._policy = policy
        self._many_s = 0.0
        self._many = 0
        self._alone_s: list[float] = []
        self._alone = 0
        decide(snapshot, JobQueue(snapshot), policy)

    def decide(self, queue: JobQueue, *, may_wait: bool = False) -> Plan:
        """Decide a queue. Plugins may defer its jobs if `may_wait` is True."""
        overdue = () if may_wait else range(len(queue))
        begun = perf_counter()
        plan = decide(self._snapshot, queue, self._policy, overdue=overdue)
        self.note(perf_counter() - begun, len(queue), queue.replicas)
        return plan

    def note(self, took_s: float, jobs: int, replicas: int) -> None:
        """Count a decision about some jobs with so many replicas in all."""
        if jobs > 1:
            self._many_s += took_s
            self._many += replicas
        else:
            self._alone_s.append(took_s)
            self._alone += replicas

    def speed(self) -> Speed:
        """Return the speed of decisions, from calls with several jobs if there were any."""
        alone_us = 1e6 * np.array(self._alone_s)
        took_s, made = (self._many_s, self._many) if self._many else (sum(self._alone_s), self._alone)
        return Speed(made / took_s if made else None, quantile(alone_us, 0.5), quantile(alone_us, 0.99))
