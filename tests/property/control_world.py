"""A control plane and its clusters through random work and faults, with the invariants that always apply."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from seaway.adapters.simulated.backends import SimulatedBackends
from seaway.adapters.simulated.faults import Faults, Options
from seaway.application.changes import Change, Outcome
from seaway.application.control.scheduler.waiting_reasons import STAYS_S, meaning
from seaway.application.control.settings import ControlSettings
from seaway.application.ports.backend import Answer, Answers, Backend, Changes, Command
from seaway.application.records import Event
from seaway.domain.amounts import JOBS, add, exceeded, total_of
from seaway.domain.attempt import Attempt
from seaway.domain.cluster import Fleet
from seaway.domain.deployment import Deployment, WorkloadPhase
from seaway.domain.errors import ConflictError, RejectedError, SeawayError, UnavailableError
from seaway.domain.job_record import JobRecord
from seaway.domain.job_spec import JobSpec
from seaway.domain.job_state import FOLLOWS, AttemptState, JobState
from seaway.domain.network import Gateway, Link
from seaway.domain.queues import Backfill, Preemption, Queue, Reclaim, path_of
from seaway.domain.reservations import AdvanceReservation
from seaway.domain.scaling import Metric
from seaway.domain.tenancy import Pool, Quota, Tenant
from seaway.scheduling.allocations import allocate
from seaway.scheduling.queueing.tree import quota_key
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.testing.clocks import VirtualClock
from seaway.testing.plugins import cluster, fleet, gpu, job, mig_gpu, node
from tests.fakes.control_plane import SetMetrics, SmallControlPlane
from tests.fakes.memory_store import MemoryStore

SETTINGS = ControlSettings(batch_size=4, max_reschedules_per_minute=3, ttl_after_finished_s=600, exclusion_period_s=120)

ACTIVE = (WorkloadPhase.STARTING, WorkloadPhase.RUNNING)
USERS = ("ada", "bob")
BY_PRIORITY = Preemption.PREEMPT_LOWER_PRIORITY
SPREAD_LIMIT = {"gpus": 4000, "cpu": 36_000, "gpus/nvidia a100-sxm4-40gb": 300, "gpu_memory": 330_000}
"""Limits of queue spread: what its largest job needs, and of one model as much as one of its jobs holds."""

QUOTAS = {
    "default": Quota(limit={"gpus": 5000, JOBS: 3}, user_limit={"gpus": 4000, "cpu": 36_000}),
    "west": Quota(limit={"cpu": 40_000}, user_limit={JOBS: 2}),
}
"""Quotas of tenant other. Each leaves room for the largest job."""

NO_ROOM = ("left", "another instance in place", "no share left")
"""Texts of rejections for lack of room, which the control plane should have predicted."""


class CrashError(Exception):
    """The process ends here."""


def world_fleet() -> Fleet:
    """Create three clusters, one of them with a device in MIG mode, and a user's gateway."""
    ties = [Link("user", f"door-{at}", 1_000_000 * (at + 1), bandwidth_mbps=100) for at in range(3)]
    clusters = [
        cluster(*[node(gpu(), gpu(), cpu_milli=16_000) for _ in range(2)], name="alpha", gateway="door-0"),
        cluster(*[node(gpu(), gpu(), cpu_milli=16_000) for _ in range(2)], name="beta", gateway="door-1"),
        cluster(node(gpu(), mig_gpu(), cpu_milli=16_000), node(cpu_milli=16_000), name="gamma", gateway="door-2"),
    ]
    return fleet(*clusters, links=ties)


KINDS = (
    job(cpu_milli=6_000),
    job(cpu_milli=1_000, gpus=1, gpu_memory_mib=20_000, gpu_milli=300),
    job(cpu_milli=1_000, gpus=2, gpu_memory_percent=100, gpu_milli=1000),
    job(cpu_milli=1_000, gpus=2, gpu_memory_percent=100, gpu_milli=1000, replicas=2, gang=True),
    job(cpu_milli=1_000, gpus=1, gpu_memory_mib=9_000, models={"NVIDIA A100-SXM4-40GB"}),
    job(cpu_milli=1_000, gpus=1, gpu_memory_mib=40_000, gateway="user", min_bandwidth_mbps=60),
    job(cpu_milli=9_000, replicas=3),
    job(cpu_milli=9_000, replicas=4, gang=True, max_latency_ns=2_500_000, gateway="user"),
    job(cpu_milli=1_000, gpus=1, gpu_memory_mib=30_000, gpu_milli=400),
    job(cpu_milli=7_000, replicas=2, gang=True, max_latency_ns=2_500_000, min_bandwidth_mbps=20, gateway="user"),
)
"""Requests that fit on the empty fleet, one for each kind of request."""

SPREAD = {6, 7, 9}
"""Kinds whose replicas do not fit in one cluster, as those of a service with a standby must."""

ELASTIC_SERVICE = 8
"""Elastic kind that fits in one cluster, so that it can have a standby."""

BOUNDS = {ELASTIC_SERVICE: (1, 5), 9: (2, 4)}
"""Least and largest number of replicas of the kinds that are elastic."""

NEAR = {"alpha", "beta"}
"""Clusters whose links meet the bound on the latency."""

MIG = 4
"""The kind that fits in only one cluster, which is not in the pool of queue west."""


def spec(kind: int, **fields: object) -> JobSpec:
    """Create a job of a kind; it has an expected duration by default."""
    like = KINDS[kind % len(KINDS)]
    made = JobSpec("work", like.demand, like.replicas, like.gang, like.between_replicas, expected_duration_s=20)
    if bounds := BOUNDS.get(kind % len(KINDS)):
        made = replace(made, replicas=bounds[1], min_replicas=bounds[0], max_replicas=bounds[1])
    if kind % len(KINDS) in SPREAD:
        fields = {**fields, "standby": None}
    made = replace(made, **fields)  # type: ignore[arg-type]  # the fields of a spec
    return replace(made, queue="default") if made.queue == "west" and like is KINDS[MIG] else made


@dataclass
class Watched:
    """A cluster with checked answers: a rejection for lack of room is an error of the control plane."""

    inner: Backend
    refusals: list[str]

    @property
    def cluster(self) -> str:
        """Its name."""
        return self.inner.cluster

    def changes(self, cursor: str, wait_s: float) -> Changes:
        """Forward the call."""
        return self.inner.changes(cursor, wait_s)

    def send(self, commands: Sequence[Command]) -> Answers:
        """Forward the call, and record rejections."""
        answers = self.inner.send(commands)
        self.refusals += [
            f"{command}: {answer.reason}"
            for command, answer in zip(commands, answers, strict=True)
            if isinstance(answer, Answer) and answer.refused and any(word in answer.reason for word in NO_ROOM)
        ]
        return answers

    def manifests(self, deployment: Deployment) -> list[dict[str, Any]]:
        """Return none."""
        return []

    def logs(
        self, copy: str, replica: int, tail: int, container: str = "", since_ns: int = 0, *, times: bool = False
    ) -> Iterator[str]:
        """Return none."""
        raise RejectedError("no logs")


@dataclass
class WatchedBackends:
    """All clusters, with checked answers."""

    inner: SimulatedBackends

    def __post_init__(self) -> None:
        """Wrap each cluster."""
        self.refusals: list[str] = []
        self.watched = [Watched(each, self.refusals) for each in self.inner.clusters()]
        self.away: set[str] = set()

    def clusters(self) -> Sequence[Backend]:
        """Return the clusters that are present."""
        return [each for each in self.watched if each.cluster not in self.away]

    def gateways(self) -> Sequence[Gateway]:
        """Return the gateways."""
        return self.inner.gateways()

    def links(self) -> Sequence[Link]:
        """Return the links."""
        return self.inner.links()


class MortalStore(MemoryStore):
    """A store in which a commit can end the process."""

    dies_in = 0
    dies_after = False
    error: Exception = CrashError()

    def die(self, commits: int, *, after: bool, error: Exception | None = None) -> None:
        """End the process after this many more commits, before the next is stored or `after`."""
        self.dies_in, self.dies_after, self.error = commits + 1, after, error or CrashError()

    def commit(self, changes: Sequence[Change]) -> list[Outcome]:
        """Store, or end the process."""
        dies = self.dies_in == 1
        self.dies_in = max(0, self.dies_in - 1)
        if dies and not self.dies_after:
            raise self.error
        outcomes = super().commit(changes)
        if dies:
            raise self.error
        return outcomes


Thing = TypeVar("Thing")


def _pick(things: Sequence[Thing], which: int) -> Thing:
    return things[which % len(things)]


class World:
    """A control plane, its clusters, and all possible events.

    Parameters
    ----------
    faults
        Random faults of the clusters.
    reserve
        Whether heads of queues get reservations.
    """

    def __init__(self, faults: Faults, *, reserve: bool = True) -> None:
        self.clock = VirtualClock()
        self.store = MortalStore()
        self.clusters = SimulatedBackends(world_fleet(), self.clock, Options(faults, 2, waits=False))
        self.watched = WatchedBackends(self.clusters)
        self.plane = SmallControlPlane(self.watched, self.store, self.clock, replace(SETTINGS, reservations=reserve))
        self.metrics = self.plane.metrics = SetMetrics({Metric.REQUESTS: 0.0, Metric.UTILIZATION: 0.5})
        self.plane.restart()
        self.ids: list[str] = []
        self.down_s = 0.0
        self.cuts = False
        self.plane.writer.commit(
            [
                Change(put=[Tenant("other", quotas=QUOTAS), Pool("west", frozenset({"alpha", "beta"}))]),
                Change(
                    put=[
                        Queue(
                            "default", preemption=BY_PRIORITY, reclaim=Reclaim.FAIR_SHARE, min_runtime_s=5, ageing_s=60
                        ),
                        Queue("lab", pool="west", limit={"gpus": 4000}),
                        Queue(
                            "west",
                            pool="west",
                            policy="fgd",
                            parent="lab",
                            limit={"cpu": 36_000},
                            preemption=BY_PRIORITY,
                        ),
                        Queue(
                            "spread",
                            policy="greedy",
                            guarantee={"gpus": 2000},
                            borrowing_limit={"gpus": 2000},
                            limit=dict(SPREAD_LIMIT),
                            backfill=Backfill.NONE,
                        ),
                    ]
                ),
            ]
        )
        self.step()

    # Events.

    def submit(self, count: int, kind: int, **fields: object) -> None:
        """Submit equal jobs."""
        jobs = [spec(kind, **fields) for _ in range(count)]
        self._try(lambda: self.ids.extend(self.plane.submit(*jobs, actor=USERS[kind % 2])))

    def _requesting(self, verb: str, which: int, number: int) -> Callable[[], None]:
        if not self.ids:
            return lambda: None
        job_id = self.ids[which % len(self.ids)]

        def act() -> None:
            jobs = self.plane.jobs
            if verb == "reprioritize":
                jobs.change(job_id, replace(jobs.find(job_id).spec, priority=number), "ada")
            elif verb == "change":
                before = jobs.find(job_id).spec
                after = spec(number, queue=before.queue, standby=before.standby)
                same = ("demand", "replicas", "min_replicas", "max_replicas", "gang", "queue", "standby")
                jobs.change(job_id, replace(before, **{name: getattr(after, name) for name in same}), "ada")
            elif verb == "scale":
                before = jobs.find(job_id).spec
                most = before.max_replicas or (1 if before.gang else before.replicas)  # queue spread has room for these
                jobs.change(job_id, replace(before, replicas=1 + number % most), "ada")
            else:
                getattr(jobs, verb)(job_id, "ada")

        return act

    def ask(self, verb: str, which: int, number: int = 0) -> None:
        """Run a user's action on a job."""
        self._try(self._requesting(verb, which, number))

    def interrupt(self, verb: str, which: int, number: int = 0) -> None:
        """Run it in the middle of a step, just before the control loop commits."""
        act = self._requesting(verb, which, number)
        self.plane.writer.meanwhile.append(lambda: self._try(act, lets_crash=True))

    def step(self, times: int = 1) -> None:
        """Run cycles; a crash ends them and restarts the control plane."""
        for _ in range(times):
            try:
                self.plane.controller.step()
            except CrashError:
                self.restart()
                return
            except UnavailableError:
                continue
            self.check()

    def restart(self) -> None:
        """Restart, when the store is available."""
        available = self.store.database.available
        self.store.database.available = True
        self.plane.restart()
        self.store.database.available = available

    def advance(self, seconds: float) -> None:
        """Advance time and run cycles."""
        while seconds > 0:
            passed = min(seconds, 12.0)
            self.clock.advance_s(passed)
            seconds -= passed
            self.down_s = max(0.0, self.down_s - passed)
            self.store.set_available(not self.down_s)
            self.step()
        self.step(2)

    def measure(self, requests: float, utilization: float) -> None:
        """Set the metrics of all jobs with triggers. Negative requests mean that there is no value."""
        known = requests >= 0
        self.metrics.values[Metric.REQUESTS] = requests if known else "Prometheus does not answer"
        self.metrics.values[Metric.UTILIZATION] = utilization if known else "Prometheus does not answer"

    def lose_store(self, seconds: float) -> None:
        """Make the store unavailable for a while."""
        self.down_s = seconds
        self.store.set_available(False)

    def trouble(self, what: str, which: int, seconds: float) -> None:
        """Inject a fault into a cluster, if possible."""
        clusters = self.clusters.clusters()
        cluster = clusters[which % len(clusters)]
        ledger, workloads = cluster._state.ledger, list(cluster._state.records)  # noqa: SLF001  # to pick a victim
        node, device = _pick(list(ledger.nodes), which), _pick(list(ledger.devices), which)
        victim = _pick(workloads, which) if workloads else ("none", 0)
        acts: dict[str, Callable[[], object]] = {
            "node": lambda: cluster.fail_node(node, seconds),
            "device": lambda: cluster.fail_device(device, seconds),
            "cut": lambda: cluster.disconnect(seconds),
            "leave": lambda: self.watched.away.add(cluster.cluster),
            "join": self.watched.away.clear,
            "refuse": lambda: cluster.refuse("not today"),
            "accept": lambda: cluster.refuse(""),
            "vanish": lambda: cluster.vanish(*victim),
            "crash": lambda: cluster.fail_copy(*victim, "killed"),
        }
        self.cuts |= what in {"cut", "leave"}
        with suppress(RejectedError):
            acts[what]()

    def cordon(self, which: int, *, whole: bool, drain: bool) -> None:
        """Cordon or drain a node or a cluster; uncordon it if it is cordoned."""
        cordons = list(self.plane.controller.live.fleet.cordons())
        place, name = [(each.name, n.name) for each in world_fleet().clusters for n in each.nodes][which % 6]
        name = "" if whole else name

        def act() -> None:
            if any((each.cluster, each.node) == (place, name) for each in cordons):
                self.plane.operations.uncordon(place, name, "ada")
            else:
                self.plane.operations.cordon(place, name, "ada", "test", drain=drain)

        self._try(act)

    def reserve(self, reservation: AdvanceReservation) -> None:
        """Reserve capacity from a time on."""
        self._try(lambda: self.plane.operations.put_reservation(reservation, "ada"))

    def _try(self, act: Callable[[], object], *, lets_crash: bool = False) -> None:
        try:
            act()
        except CrashError:
            if lets_crash:
                raise
            self.restart()
        except SeawayError as error:
            if not isinstance(error, UnavailableError | ConflictError | RejectedError):
                raise

    # Invariants.

    def check_reasons(self) -> Iterator[str]:
        """Check that all answers about a job have the same reason; yield the codes of those of waiting jobs."""
        if not self.store.database.available or not self.plane.controller.loaded:
            return
        overview = self.plane.overview
        rows = [row for row in self.store._rows(JobRecord) if row.state is not JobState.DELETED]  # noqa: SLF001
        in_queues = {each.job.id: overview.reason(each.job, remedies=False) for each in overview.waiting()}
        for row, listed in zip(rows, overview.present(rows), strict=True):
            explained = overview.reason(row)
            assert explained.why == listed.reason, row
            assert str(explained.why) in explained.message
            if row.id in in_queues and in_queues[row.id].job.version == row.version:  # the loop has seen the change
                assert in_queues[row.id].why == listed.reason, (in_queues[row.id].why, listed.reason)
                assert in_queues[row.id].code == explained.code
            if row.state.waits:
                yield explained.code

    def check_stored_reasons(self) -> None:
        """Check that jobs that wait since some time have an event with the meaning of their present reason."""
        reasons, waiting = self.plane.controller.scheduler.reasons, self.plane.controller.live.waiting
        for row in self.store._rows(JobRecord):  # noqa: SLF001
            entry, since_s = waiting.get(row.id), (self.clock.now_ns() - row.changed_ns) / 1e9
            if row.state is JobState.QUEUED and entry and waiting.is_aside(entry) and since_s > STAYS_S:
                assert meaning(row.reason) == meaning(reasons.of(row).stored), (row.reason, reasons.of(row).stored)

    def check(self) -> None:
        """Check all invariants after a step."""
        if not self.store.database.available or not self.plane.controller.loaded:
            return
        assert not self.watched.refusals
        jobs = {row.id: row for row in self.store._rows(JobRecord)}  # noqa: SLF001
        attempts = self.store._rows(Attempt)  # noqa: SLF001
        live = Counter(each.job_id for each in attempts if each.state.live)
        for each in attempts:
            assert each.job_id in jobs, "an attempt of a job that is not stored"
            if each.state.live:
                assert jobs[each.job_id].state.placed
                assert jobs[each.job_id].attempt == each.number
        for row in jobs.values():
            assert live[row.id] == int(row.state.placed), f"{row.state} with {live[row.id]} live attempts"
            assert row.attempt == sum(1 for each in attempts if each.job_id == row.id)
        assert set(self.ids) <= set(jobs), "a job that was accepted is lost"
        self.check_pairs(jobs, attempts)
        self.check_memory(jobs, attempts)
        self.check_sizes(jobs, attempts)
        self.check_queues(attempts)
        self.check_snapshot()
        if not self.cuts:
            self.check_workloads()

    def check_pairs(self, jobs: dict[str, JobRecord], attempts: Sequence[Attempt]) -> None:
        """Check that a service has one active copy at most, and that each copy is in a cluster of its own.

        Both copies ask for the same number of replicas, however many of an elastic one run.
        """
        for row in jobs.values():
            other = jobs.get(row.other)
            if other is None or other.other != row.id or row.state.final or other.state.final:
                continue
            assert row.is_standby != other.is_standby
            assert row.spec.replicas == other.spec.replicas
            assert row.spec.scale == other.spec.scale
            live = [each for each in attempts if each.job_id in (row.id, other.id) and each.state.live]
            clusters = [cluster for each in live for cluster in each.clusters]
            assert len(set(clusters)) == len(clusters) == len(live)

    def check_memory(self, jobs: dict[str, JobRecord], attempts: Sequence[Attempt]) -> None:
        """Check that memory equals the store."""
        live = self.plane.controller.live
        held = {(each.job_id, each.number): each for each in attempts if each.state.holds}
        assert live.attempts == held
        holders = {job_id for job_id, _ in held}
        assert live.jobs == {key: row for key, row in jobs.items() if not row.state.final or key in holders}
        stored = {(each.job_id, each.attempt, each.cluster): each for each in self.store.pending_commands()}
        assert live.pending_commands == stored
        for job_id in live.jobs:
            waits = job_id in live.waiting
            due = live.jobs[job_id].state.waits and not live.blocked(live.jobs[job_id])
            assert waits == due, f"{live.jobs[job_id]} waits: {waits}, may be tried: {due}"

    def check_sizes(self, jobs: dict[str, JobRecord], attempts: Sequence[Attempt]) -> None:
        """Check that each live attempt has its minimum of replicas, within its bounds on the network.

        A change of the minimum or of the demand restarts the job.
        """
        for row in jobs.values():
            assert row.spec.replicas or not row.state.placed, "a job is placed without replicas"
        for each in attempts:
            if each.state.live:
                numbers = [one.replica for one in each.placements]
                assert len(set(numbers)) == len(numbers), "a replica has two places"
                assert len(each.remaining) >= (each.spec.min_replicas or 1)
                assert len(each.remaining) <= max(jobs[each.job_id].spec.max_replicas, each.spec.replicas)
                if each.spec.demand.network.max_latency_ns:
                    assert {one.cluster for one in each.placements} <= NEAR
                if each.spec.between_replicas.any:  # no link between two clusters is measured
                    assert len(each.clusters) == 1

    def check_queues(self, attempts: Sequence[Attempt]) -> None:
        """Check that each queue holds what its attempts hold, and never more than its limit.

        An attempt holds its amounts until its last removal is confirmed.
        """
        live = self.plane.controller.live
        owed = {(each.job_id, each.attempt) for each in self.store.pending_commands()}
        held: defaultdict[str, dict[str, int]] = defaultdict(dict)
        owned: defaultdict[tuple[str, str], list[Attempt]] = defaultdict(list)  # by pool, and by user or all users
        for each in attempts:
            if each.state.live or (each.state.holds and (each.job_id, each.number) in owed):
                for queue in path_of(each.spec.queue, live.queues):
                    add(held[queue.name], each.amounts)
                for user in ("", live.jobs[each.job_id].submitted_by) if each.spec.tenant == "other" else ():
                    owned[live.queues[each.spec.queue].pool, user].append(each)
        for pool, quota in QUOTAS.items():
            for user, limit in (("", quota.limit), *((user, quota.user_limit) for user in USERS)):
                use, found = live.tree.use_lately(quota_key(pool, "other", user)), owned[pool, user]
                sums, jobs = total_of(each.amounts for each in found), {each.job_id for each in found}
                assert (use.held, use.jobs) == (sums, len(jobs)), (pool, user)
                assert not exceeded({**sums, JOBS: len(jobs)}, limit), f"{user or 'other'} exceeds {limit} in {pool}"
        for name, queue in live.queues.items():
            assert live.tree.use(name).held == held[name], name
            limit = {**queue.limit, **live.tree.node(name).limit}  # the latter has borrowing limits
            assert not exceeded(held[name], limit), f"{name} holds {held[name]} of {limit}"
        for each in attempts:
            over = all(one.completed for one in each.placements)
            assert each.amounts or over, "every kind of job holds something until its replicas have completed"

    def check_snapshot(self) -> None:
        """Check that the accounting equals the held resources exactly.

        An attempt that is ending holds devices only while a removal is pending.
        """
        live = self.plane.controller.live
        seen = live.fleet.snapshot.copy()
        reservations = self.plane.controller.scheduler.reservations
        if reservations.current():
            for each in reservations.made():
                if each.booking:
                    each.booking.copy().release(seen)
        fresh = Snapshot(live.fleet.fleet())
        owed = {(each.job_id, each.attempt, each.cluster) for each in self.store.pending_commands()}
        for (job_id, number), attempt in live.attempts.items():
            placements = [
                each for each in attempt.placements if attempt.state.live or (job_id, number, each.cluster) in owed
            ]
            allocate(fresh, attempt.spec.job(attempt.job_id), placements)
        for table in ("nodes", "devices", "blocks", "clusters", "bandwidth", "gateways"):
            np.testing.assert_array_equal(getattr(seen.arrays, table), getattr(fresh.arrays, table), err_msg=table)
        assert (fresh.arrays.bandwidth >= 0).all(), "more bandwidth is reserved than a link has"

    def check_workloads(self) -> None:
        """Check that no two attempts of a job are alive in the clusters."""
        alive: defaultdict[str, set[int]] = defaultdict(set)
        for each in self.clusters.clusters():
            for record in each._state.records.values():  # noqa: SLF001
                if record.phase in ACTIVE:
                    alive[record.key[0]].add(record.key[1])
        duplicated = {job_id: numbers for job_id, numbers in alive.items() if len(numbers) > 1}
        assert not duplicated

    def check_events(self) -> None:
        """Check that every job's events report only allowed transitions, with reasons, up to its present state."""
        reported: defaultdict[str, list[JobState]] = defaultdict(list)
        last = 0
        for event in sorted(self.store._rows(Event), key=lambda each: each.id):  # noqa: SLF001
            assert event.id > last
            last = event.id
            assert event.at_ns
            assert event.actor
            assert event.reason
            if event.state:
                reported[event.job_id].append(JobState(event.state))
        for job_id in self.ids:
            states = reported[job_id]
            assert states[0] is JobState.PENDING
            assert states[-1] is self.plane.job(job_id).state
            for now, then in pairwise(states):
                assert then in FOLLOWS[now], f"{now} to {then}"

    def check_idle(self) -> None:
        """Check that no job waits, and that no queue holds anything."""
        live = self.plane.controller.live
        assert not len(live.waiting)
        for name in live.queues:
            assert not live.tree.use(name).held, f"{name} holds what no job has"
            assert not live.tree.node(name).claimed, f"{name} has room reserved for no job"

    def cancel(self, jobs: Sequence[JobRecord]) -> None:
        """Cancel suspended jobs, which triggers could start again."""
        for each in jobs:
            self.plane.jobs.cancel(each.id, "ada")
        self.advance(30)

    def end_well(self) -> None:
        """End all faults, advance time, and check that all feasible jobs have run."""
        self.store.dies_in = 0
        self.plane.writer.meanwhile.clear()
        self.watched.away = set()
        self.down_s = 0
        self.store.set_available(True)
        for each in self.clusters.clusters():
            each.heal()
        for cordon in self.store.cordons():
            self.plane.operations.uncordon(cordon.cluster, cordon.node, "ada")
        for _ in range(1200):
            self.clock.advance_s(5)
            self.step(2)
            for each in self.clusters.clusters():
                each.reconnect()
            left = [row for row in self.store._rows(JobRecord) if not row.state.final]  # noqa: SLF001
            idle = all(row.state is JobState.SUSPENDED for row in left)
            if idle and not list(self.store.pending_commands()) and not list(self.store.held_attempts()):
                break
        else:
            reported = [(row.id, row.spec.demand.request, row.state, row.reason) for row in left]
            raise AssertionError(f"never ended: {reported} {list(self.store.pending_commands())}")
        self.cancel(left)
        self.check_events()
        for attempt in self.store._rows(Attempt):  # noqa: SLF001
            assert attempt.state is AttemptState.ENDED
            assert attempt.ended_ns is not None
        self.check_idle()
        for each in self.clusters.clusters():
            assert all(record.phase not in ACTIVE for record in each._state.records.values())  # noqa: SLF001
        for _ in range(20):
            self.clock.advance_s(SETTINGS.ttl_after_finished_s / 10)
            self.step(2)
        for each in self.clusters.clusters():
            assert not each._state.records, "a finished copy was never removed"  # noqa: SLF001
