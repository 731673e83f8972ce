"""Expected starts of waiting jobs, compared with their real starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from time import process_time
from typing import Any

import numpy as np

from benchmarks.data import folder
from benchmarks.record import Result
from seaway.adapters.simulated.backends import SimulatedBackends
from seaway.adapters.simulated.faults import Options
from seaway.application.changes import Change
from seaway.application.control.settings import ControlSettings
from seaway.application.ports.backend import Command
from seaway.domain.cluster import Fleet
from seaway.domain.deployment import Deployment
from seaway.domain.job import Demand, ResourceRequest
from seaway.domain.job_spec import JobSpec
from seaway.domain.queues import Backfill, Order, Queue
from seaway.domain.tenancy import DEFAULT, Tenant
from seaway.simulation.table import read_table
from seaway.testing.clocks import VirtualClock
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.fakes.control_plane import SmallControlPlane

LOG, PROCESSORS = "nasa128-double", 128

FIRST, JOBS = 10_750, 1000
"""Part of the log, with a load of about 125 %."""

MAX_FACTOR = 5.0
"""Largest time limit of a job, as a multiple of its duration."""

SETTLES_S = 1
"""Time after an event in which the control loop plans again, seconds."""

NS_PER_S, MINUTE_S = 1_000_000_000, 60

NOTES = [
    f"{JOBS:,} jobs of the NASA iPSC log at twice their density on {PROCESSORS} GPUs, in the control loop",
    "estimated: jobs that waited, with a known start when they were submitted; unknown: those without one",
    "errors: difference between the first expected start and the real one, minutes; late: started over a minute later",
    f"limits: time limits of up to {MAX_FACTOR:g} times the duration; learned: from past runs of user and size",
]


@dataclass(frozen=True, slots=True)
class Case:
    """Rules of a queue, and knowledge of durations."""

    order: Order
    backfill: Backfill
    durations: str


CASES = (
    Case(Order.FIFO, Backfill.CONSERVATIVE, "exact"),
    Case(Order.FIFO, Backfill.EASY, "exact"),
    Case(Order.FAIR, Backfill.EASY, "exact"),
    Case(Order.FIFO, Backfill.EASY, "limits"),
    Case(Order.FIFO, Backfill.EASY, "learned"),
)


@dataclass(frozen=True, slots=True)
class Line:
    """A job of the log: seconds from its begin, duration, number of processors, and user."""

    submit_s: int
    run_s: int
    size: int
    user: str


def queue_estimates(seed: int) -> Result:
    """Measure how far the expected starts of waiting jobs are off, for several rules and durations."""
    lines = _lines()
    return Result("queue-estimates", [_row(case, lines, seed) for case in CASES], NOTES)


def _lines(first: int = FIRST, count: int = JOBS) -> list[Line]:
    table = list(read_table(folder() / "traces" / "queues" / f"{LOG}.csv", ["submit_s", "run_s", "size", "user"]))
    part = table[first : first + count]
    begin_s = part[0].whole("submit_s")
    return [
        Line(each.whole("submit_s") - begin_s, each.whole("run_s"), each.whole("size"), f"u{each.whole('user')}")
        for each in part
    ]


def _row(case: Case, lines: Sequence[Line], seed: int) -> dict[str, Any]:
    """Run the jobs through the control loop, and compare first expected starts with real ones."""
    begun, replay = process_time(), Replay(case, lines, seed)
    replay.run()
    errors_s = replay.errors_s()
    size_s = np.abs(errors_s)
    metric = replay.plane.overview.start_errors()
    counted = sum(metric.counts)
    return {
        "order": case.order.value,
        "backfill": case.backfill.value,
        "durations": case.durations,
        "wait_mean_min": _minutes(replay.wait_mean_s()),
        "estimated": len(errors_s),
        "unknown": replay.unknown,
        "error_mean_min": _minutes(size_s.mean()),
        "error_p50_min": _minutes(np.quantile(size_s, 0.5)),
        "error_p90_min": _minutes(np.quantile(size_s, 0.9)),
        "late_pct": round(100 * float((errors_s > MINUTE_S).mean()), 1),
        "metric_mean_min": _minutes(metric.total_s / counted if counted else 0.0),
        "seconds": round(process_time() - begun, 1),
    }


def _minutes(seconds: float) -> float:
    return round(float(seconds) / MINUTE_S, 1)


class Replay:
    """A log in the control loop, from event to event on a virtual clock.

    Attributes
    ----------
    unknown
        Number of jobs that waited without an expected start.
    """

    def __init__(self, case: Case, lines: Sequence[Line], seed: int) -> None:
        self._lines = lines
        self._specs = [_spec(case, at, each, Random(seed + at)) for at, each in enumerate(lines)]
        self._ids: list[str] = []
        self._expected_ns: dict[str, int] = {}
        self.unknown = 0
        clock = VirtualClock()
        backends = SimulatedBackends(_fleet(), clock, Options(start_delay_s=0, waits=False))
        settings = ControlSettings(learn_durations=case.durations == "learned")
        self.plane = SmallControlPlane(backends, clock=clock, settings=settings)
        self._run_as_logged(backends)
        tenants = [Tenant(user) for user in sorted({each.user for each in lines})]
        queue = Queue(DEFAULT, order=case.order, backfill=case.backfill)
        self.plane.writer.commit([Change(put=[queue, *tenants])])
        self.plane.settle()

    def _run_as_logged(self, backends: SimulatedBackends) -> None:
        """Let the cluster run each job for its real duration, whatever the control plane knows."""
        cluster = backends.cluster("alpha")
        send = cluster.send

        def logged(command: Command) -> Command:
            if not isinstance(command, Deployment):
                return command
            run_s = self._lines[int(command.spec.labels["line"])].run_s
            return replace(command, spec=replace(command.spec, expected_duration_s=run_s, time_limit_s=None))

        cluster.send = lambda commands: send([logged(each) for each in commands])  # type: ignore[method-assign]

    def run(self) -> None:
        """Submit all jobs at their times, and continue until each has started."""
        clock, live = self.plane.clock, self.plane.controller.live
        begin_ns, submitted = clock.now_ns(), 0
        while submitted < len(self._lines) or live.waiting.entries():
            submits = [] if submitted == len(self._lines) else [begin_ns + self._lines[submitted].submit_s * NS_PER_S]
            ends = [each.created_ns + self._run_ns(each.spec) for each in live.attempts.values() if each.state.live]
            clock.advance_s(max(0.0, min([*submits, *ends]) - clock.now_ns()) / NS_PER_S)
            self.plane.run(SETTLES_S)
            if submits and submits[0] <= clock.now_ns():
                (job_id,) = self.plane.submit(self._specs[submitted], actor=self._lines[submitted].user)
                self._ids.append(job_id)
                submitted += 1
                self.plane.run(SETTLES_S)
                self._note(job_id)
        self.plane.run(SETTLES_S)
        self.plane.controller.forecast.plan()

    def _run_ns(self, spec: JobSpec) -> int:
        return self._lines[int(spec.labels["line"])].run_s * NS_PER_S

    def _note(self, job_id: str) -> None:
        """Record the first expected start of a job, if it waits."""
        if job_id not in self.plane.controller.live.waiting:
            return
        planned = self.plane.controller.forecast.plan().get(job_id)
        if planned and planned.starts_ns is not None:
            self._expected_ns[job_id] = planned.starts_ns
        else:
            self.unknown += 1

    def errors_s(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return how much later than first expected each job started, seconds."""
        found = [self.plane.attempt(job_id).created_ns - at_ns for job_id, at_ns in self._expected_ns.items()]
        return np.array(found, np.float64) / NS_PER_S

    def wait_mean_s(self) -> float:
        """Return the mean wait of all jobs, seconds."""
        waits = [self.plane.attempt(each).created_ns - self.plane.job(each).submitted_ns for each in self._ids]
        return float(np.mean(waits)) / NS_PER_S


def _spec(case: Case, at: int, line: Line, random: Random) -> JobSpec:
    whole = Demand(ResourceRequest(1000, 1000, 1, 0, 100, 1000))
    return JobSpec(
        f"size-{line.size}x-{at}",  # numbers at the end do not count
        whole,
        tenant=line.user,
        replicas=line.size,
        gang=True,
        labels={"line": str(at)},
        expected_duration_s=line.run_s if case.durations == "exact" else None,
        time_limit_s=int(line.run_s * random.uniform(1, MAX_FACTOR)) + 1 if case.durations == "limits" else None,
    )


def _fleet() -> Fleet:
    """Return one cluster of nodes with one GPU each."""
    return fleet(cluster(*[node(gpu()) for _ in range(PROCESSORS)], name="alpha"))
