"""A small control plane for tests, without waiting: a test advances the clock.

A test brings the clusters as `Backends`. All data is in memory, commits are synchronous, and calls to clusters run in
the same thread, so that a test is a sequence of steps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from seaway.application.admission import Admission
from seaway.application.changes import Change, Feed, Outcome
from seaway.application.control.dispatch import Dispatcher, InPlace
from seaway.application.control.loop import Controller
from seaway.application.control.scheduler.scheduler import ProfileFactory
from seaway.application.control.settings import ControlSettings
from seaway.application.fleet.overview import Overview
from seaway.application.jobs import Jobs
from seaway.application.operations import Operations
from seaway.application.policies import Gate, Policies
from seaway.application.ports.backend import Backends
from seaway.application.ports.store import Store
from seaway.application.ports.usage import Question
from seaway.application.transitions import ACCEPTED, accepted
from seaway.application.writer import Writer
from seaway.domain.attempt import Attempt
from seaway.domain.errors import InvariantError
from seaway.domain.job import Job
from seaway.domain.job_record import JobRecord
from seaway.domain.job_spec import JobIds, JobSpec
from seaway.domain.job_state import JobState
from seaway.domain.scaling import Metric
from seaway.scheduling.policies.registry import PolicyOptions, make_profile, split_spec, with_options
from seaway.scheduling.profile import Profile
from seaway.testing.clocks import VirtualClock
from tests.fakes.memory_store import MemoryStore

MAX_STEPS = 1000
"""Limit for `settle`: more steps than this are a bug."""


class InterruptedWriter(Writer):
    """A writer that runs an action once before a commit, as when another user is quicker."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.meanwhile: deque[Callable[[], object]] = deque()

    def commit(self, changes: Sequence[Change]) -> list[Outcome]:
        """Run the pending action, then store the changes."""
        if changes and self.meanwhile:
            self.meanwhile.popleft()()
        return super().commit(changes)


@dataclass
class SetMetrics:
    """Metrics that a test sets, and the questions that were asked."""

    values: dict[Metric, float | str] = field(default_factory=dict)
    asked: list[Question] = field(default_factory=list)

    def obstacle(self, metric: Metric) -> str:
        """Return the reason why jobs cannot use a metric."""
        return "" if metric in self.values else f"has the metric {metric.value}, which is not set"

    def read(self, questions: Sequence[Question]) -> list[float | str]:
        """Return the values."""
        self.asked += questions
        return [self.values[each.metric] for each in questions]


@dataclass(slots=True)
class SmallControlPlane:
    """A control plane with its parts as attributes.

    Attributes
    ----------
    backends
        The clusters.
    store, clock
        The store and the clock.
    settings
        Settings of the control loop.
    dispatcher
        Sender of commands to clusters; None for one that sends them in the same thread.
    seed
        Seed of the ids.
    make
        Factory of policies.
    shadow_jobs
        Number of jobs that a trained policy decides as a shadow before it is active.
    metrics
        Metrics for triggers from the next start on; None without any.
    """

    backends: Backends
    store: MemoryStore = field(default_factory=MemoryStore)
    clock: VirtualClock = field(default_factory=VirtualClock)
    settings: ControlSettings = field(default_factory=ControlSettings)
    dispatcher: Dispatcher | None = None
    seed: int = 0
    make: ProfileFactory = field(default_factory=lambda: make_policy)
    shadow_jobs: int = 100
    metrics: SetMetrics | None = None
    writer: InterruptedWriter = field(init=False)
    feed: Feed = field(init=False)
    controller: Controller = field(init=False)
    jobs: Jobs = field(init=False)
    admission: Admission = field(init=False)
    policies: Policies = field(init=False)
    operations: Operations = field(init=False)
    overview: Overview = field(init=False)
    _ids: JobIds = field(init=False)

    def __post_init__(self) -> None:
        """Build the parts."""
        self._ids = JobIds(Random(self.seed))
        self.restart()

    def restart(self) -> None:
        """Discard all state in memory and start again on the same store, as after a crash."""
        self.store.lead("test")
        self.writer, self.feed = InterruptedWriter(self.store), Feed()
        self.writer.listen(self.feed.publish, self.feed.forget)
        talker = self.dispatcher or InPlace(self.clock)
        self.controller = Controller(
            self.store, self.writer, self.backends, talker, self.make, self.clock, self.settings
        )
        self.controller.scaler.metrics = self.metrics
        obstacle = self.controller.standby_obstacle
        self.jobs = Jobs(self.store, self.writer, self.clock, Random(self.seed), self.controller.names, obstacle)
        self.admission = Admission(self.controller)
        self.policies = Policies(self.store, self.writer, self.clock)
        self.policies.on_change = self.controller.renew_policy
        self.operations = Operations(
            self.store, self.writer, self.controller, self.clock, self.policies, Gate(self.store, self.shadow_jobs)
        )
        self.overview = Overview(self.controller, self.store, self.writer, self.policies)

    def submit(self, *specs: JobSpec, actor: str = "ada") -> list[str]:
        """Submit jobs in one request through admission; return their ids."""
        now_ns = self.clock.now_ns()
        records = [
            JobRecord(
                self._ids.generate(now_ns),
                self.admission.with_template_traits(spec),
                JobState.PENDING,
                now_ns,
                now_ns,
                actor,
                ACCEPTED,
            )
            for spec in specs
        ]
        self.writer.commit([accepted(record) for record in records])
        return [record.id for record in records]

    def settle(self) -> None:
        """Run cycles until nothing changes any more.

        Raises
        ------
        InvariantError
            If it does not settle.
        """
        for _ in range(MAX_STEPS):
            if not self.controller.step():
                return
        raise InvariantError(f"something still happens after {MAX_STEPS} steps")

    def run(self, seconds: float, step_s: float = 1) -> None:
        """Advance the clock in steps and run a cycle after each."""
        self.settle()
        left_s = seconds
        while left_s > 0:
            self.clock.advance_s(min(step_s, left_s))
            left_s -= step_s
            self.settle()

    def job(self, job_id: str) -> JobRecord:
        """Return a job from the store.

        Raises
        ------
        InvariantError
            If the store does not have it.
        """
        job = self.store.job(job_id)
        if job is None:
            raise InvariantError(f"job {job_id!r} is lost")
        return job

    def state(self, job_id: str) -> JobState:
        """Return the state of a job from the store."""
        return self.job(job_id).state

    def attempt(self, job_id: str) -> Attempt:
        """Return the latest attempt of a job from the store.

        Raises
        ------
        InvariantError
            If the job has no attempt.
        """
        attempts = self.store.attempts(job_id)
        if not attempts:
            raise InvariantError(f"job {job_id!r} never had a place")
        return attempts[-1]

    def states(self, job_id: str) -> list[str]:
        """Return the states that the events of a job report, in order."""
        return [event.state for event in self.store.events(0, 1000, job_id=job_id) if event.kind == "state"]


def make_policy(name: str, mix: Sequence[Job]) -> Profile:
    """Create a policy by name and options, for a mix of earlier jobs."""
    name, given = split_spec(name)
    return make_profile(name, with_options(name, given, PolicyOptions(mix=mix)))
