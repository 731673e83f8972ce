"""A hundred faults of clusters and connections: no job is lost, and none runs twice past the grace period.

The control plane runs with all its threads on API servers in memory. Checks read the servers, not Seaway's state:
the time that jobs run twice continuously, the rest at the end. Each way of sending commands runs
``SEAWAY_TEST_FAULT_SEEDS`` histories (two by default) of fifty faults each; a fault counts once it had an effect, a
stale write once a write was rejected.
"""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any

import pytest

from seaway.adapters.kubernetes.backends import KubernetesBackends
from seaway.adapters.kubernetes.cluster import ClusterOptions
from seaway.adapters.kubernetes.collect.changes import Limits
from seaway.adapters.kubernetes.karmada import KarmadaBackends
from seaway.application.control.settings import ControlSettings
from seaway.application.ports.clock import SystemClock
from seaway.application.transitions import accepted
from seaway.application.views import ClusterState
from seaway.bootstrap.control_plane import ControlPlane, make_plane
from seaway.bootstrap.settings import Settings
from seaway.domain.job import Demand, DeviceRules, NodeRules, ResourceRequest
from seaway.domain.job_record import JobRecord
from seaway.domain.job_spec import JobIds, JobSpec
from seaway.domain.job_state import JobState
from seaway.domain.runtime import Run
from tests.conformance.test_kubernetes_backends import gpu_node
from tests.fakes.kubernetes import ApiServer, KarmadaWorld
from tests.fakes.kubernetes.controllers import hami
from tests.fakes.kubernetes.failures import FailureError
from tests.fakes.kubernetes.faults import Fault
from tests.fakes.kubernetes.kinds import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    JOBS,
    OVERRIDES,
    PODS,
    POLICIES,
    SERVICES,
)
from tests.fakes.memory_store import MemoryStore

pytestmark = pytest.mark.slow

SEEDS = int(os.environ.get("SEAWAY_TEST_FAULT_SEEDS", "2"))
FAULTS = 50
"""Number of faults in a history."""

NAMED = {"stop": "API server stopped", "cut": "watch cut", "conflict": "stale write", "partition": "cluster cut off"}
"""Kinds that each history has several of."""

LEAST = 3
"""Minimum number of each named kind."""

MAX_STEPS = 4 * FAULTS
WAIT_S = 120.0
"""Time limit of waits; seconds are enough on two idle cores."""

WATCH_S = 0.02
"""Interval of the checks for jobs that run twice."""

CONTROL = ControlSettings(
    assume_timeout_s=8,
    stale_after_s=1.2,
    grace_period_s=4,
    max_reschedules_per_minute=6000,
    initial_backoff_s=0.1,
    max_backoff_s=0.5,
    exclusion_period_s=1,
    ttl_after_finished_s=1,
    reservation_timeout_s=1,
    poll_interval_s=0.1,
)
OPTIONS = ClusterOptions(request_timeout_s=0.5, limits=Limits(unreachable_timeout_s=0.6, unschedulable_timeout_s=0.4))
PATIENT = replace(OPTIONS, request_timeout_s=10, limits=Limits(unreachable_timeout_s=5, unschedulable_timeout_s=20))
"""Options for tests without faults, so that a busy machine causes none."""

IMAGE = "registry.example/train:1"
FAULT_KINDS = (
    "stop",
    "cut",
    "cut",
    "forget",
    "error",
    "conflict",
    "conflict",
    "throttle",
    "slow",
    "hang",
    "drop",
    "partition",
    "node",
    "pod",
    "workload",
    "stranger",
)
NAMES = ("alpha", "beta", "gamma")
CARD_MIB = 81_920
Json = dict[str, Any]


@dataclass
class Seen:
    """The pods of jobs, as observed on the servers.

    Attributes
    ----------
    began_s, ended_s
        First and last time that a workload ran, by job and attempt.
    running
        Running pods by server: job, attempt and node.
    twice_s
        Longest time that a job ran twice while Seaway could end that, by job.
    """

    began_s: dict[tuple[str, int], float] = field(default_factory=dict)
    ended_s: dict[tuple[str, int], float] = field(default_factory=dict)
    running: dict[str, frozenset[tuple[str, int, str]]] = field(default_factory=dict)
    twice_s: dict[str, float] = field(default_factory=dict)
    overbooked: list[str] = field(default_factory=list)


class World:
    """A control plane and its clusters, with fault injection.

    Attributes
    ----------
    members
        The clusters' servers by name.
    writes_to
        Servers that Seaway writes to.
    """

    def __init__(
        self,
        folder: Path,
        *,
        karmada: bool,
        seed: int = 0,
        names: tuple[str, ...] = NAMES,
        options: ClusterOptions = OPTIONS,
    ) -> None:
        self.random = Random(seed)
        self.karmada = KarmadaWorld([*names]).open() if karmada else None
        self.members = self.karmada.members if self.karmada else {name: ApiServer(name).open() for name in names}
        self.writes_to = [self.karmada.control] if self.karmada else [*self.members.values()]
        self.seen = Seen()
        for name, server in self.members.items():
            for at in range(2):
                server.put(gpu_node(f"{name}-{at}", 2))
            self.follow(server)
            if not karmada:
                server.kubeconfig(folder / name)
        self.backends = (
            KarmadaBackends(self.karmada.kubeconfig(folder / "karmada"), options, seed)
            if self.karmada
            else KubernetesBackends(folder, options, seed)
        )
        self.store = MemoryStore()
        self.plane: ControlPlane = make_plane(
            Settings(control=CONTROL), self.store, self.backends, SystemClock(), random=Random(seed)
        )
        self.ids = JobIds(Random(seed))
        self.jobs: list[str] = []
        self.stopped: list[ApiServer] = []
        self.failed: list[tuple[ApiServer, str]] = []
        self.deck: list[str] = []
        self.faults: list[tuple[str, Fault | None]] = []
        self.over = Event()
        self.watching = Thread(target=self.watch, name="running twice", daemon=True)
        self.plane.start()
        self.watching.start()

    def close(self) -> None:
        """Stop everything."""
        self.over.set()
        self.watching.join()
        self.recover()
        self.plane.stop()
        self.backends.close()
        if self.karmada:
            self.karmada.close()
        else:
            for server in self.members.values():
                server.close()

    # Observations of the servers.

    def follow(self, server: ApiServer) -> None:
        """Observe a server's pods after each change of a pod."""
        server.call(lambda: server.store.follow(lambda _: self.look(server), (PODS,)))

    def look(self, server: ApiServer) -> None:
        """Record after each change of a pod, on the server's thread, the running workloads and their devices."""
        now_s = time.monotonic()
        taken: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        running = set()
        for each in server.store.all(PODS):
            pod = each.read()
            if pod.get("status", {}).get("phase") in {"Succeeded", "Failed"}:
                continue
            labels = pod["metadata"].get("labels", {})
            for uuid, memory, cores in hami.read_devices(
                pod["metadata"].get("annotations", {}).get(hami.ALLOCATED, "")
            ):
                taken[uuid].append((memory, cores))
            if "seaway.io/job" in labels and pod.get("status", {}).get("phase") == "Running":
                node = pod.get("spec", {}).get("nodeName", "")
                running.add((labels["seaway.io/job"], int(labels["seaway.io/attempt"]), node))
        self.seen.running[server.name] = frozenset(running)
        for job_id, attempt, _ in running:
            self.seen.began_s.setdefault((job_id, attempt), now_s)
            self.seen.ended_s[job_id, attempt] = now_s
        for uuid, shares in taken.items():
            memory, cores = sum(share[0] for share in shares), sum(share[1] for share in shares)
            if memory > CARD_MIB or cores > 100 or len(shares) > 10:
                self.seen.overbooked.append(f"{server.name}: {uuid} {shares}")

    def watch(self) -> None:
        """Record continuously how long jobs run twice."""
        since_s: dict[str, float] = {}
        while not self.over.wait(WATCH_S):
            now_s, twice = time.monotonic(), self.twice()
            since_s = {job_id: since_s.get(job_id, now_s) for job_id in twice}
            for job_id, began_s in since_s.items():
                self.seen.twice_s[job_id] = max(self.seen.twice_s.get(job_id, 0), now_s - began_s)

    def twice(self) -> set[str]:
        """Return the jobs with two running attempts, if nothing stops Seaway from removing the older one.

        A failed node does not report its pods, and nothing can be removed from an unreachable cluster: that time does
        not count.
        """
        failed = {(server.name, node) for server, node in list(self.failed)}
        where: defaultdict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        for name, running in list(self.seen.running.items()):
            for job_id, attempt, node in running:
                if (name, node) not in failed:
                    where[job_id][attempt].add(name)
        return {
            job_id
            for job_id, attempts in where.items()
            for attempt, names in attempts.items()
            if attempt < max(attempts) and any(self.reachable(name) for name in names)
        }

    def reachable(self, name: str) -> bool:
        """Report whether objects can be removed from a cluster: it has no fault, nor has its connection.

        Seaway itself must have observed a cluster that it writes to; Karmada observes its members.
        """
        member = self.members[name]
        if not member.running or member.fault_list.active:
            return False
        if self.karmada:
            faults = self.karmada.control.fault_list.active
            return self.karmada.control.running and all(fnmatchcase(each.path, self.way("*")) for each in faults)
        live = self.plane.controller.live.fleet.clusters.get(name)
        return live is not None and live.state is ClusterState.UP

    def pods(self, job_id: str = "") -> list[tuple[ApiServer, Json]]:
        """Return Seaway's pods that have not ended, of one job or all."""
        selector = f"seaway.io/job={job_id}" if job_id else "seaway.io/job"
        return [
            (server, pod)
            for server in self.members.values()
            for pod in server.list(PODS, "", selector)
            if pod.get("status", {}).get("phase") not in {"Succeeded", "Failed"}
        ]

    def left(self) -> set[tuple[str, int]]:
        """Return the attempts with an object on any server."""
        servers = {*self.members.values(), *self.writes_to}
        kinds = (PODS, JOBS, DEPLOYMENTS, SERVICES, CONFIG_MAPS, POLICIES, OVERRIDES)
        found = [
            each["metadata"]["labels"]
            for server in servers
            for kind in kinds
            if kind in server.store.shelves
            for each in server.list(kind, "", "seaway.io/job")
        ]
        return {(labels["seaway.io/job"], int(labels["seaway.io/attempt"])) for labels in found}

    # Jobs.

    def submit(self, image: str = IMAGE, **figures: Any) -> str:  # noqa: ANN401  # fields of a spec
        """Submit a job; return its id."""
        request = figures.pop("request", ResourceRequest(500, 256, 1, 20_000, 0, 300))
        nodes = NodeRules(clusters=frozenset(figures.pop("clusters", ())))
        run = Run(image, figures.pop("command", ()), ports=figures.pop("ports", ()))
        demand = Demand(request, figures.pop("devices", DeviceRules()), nodes)
        spec = JobSpec("work", demand, run=run, **figures)
        now_ns = time.time_ns()
        job_id = self.ids.generate(now_ns)
        self.plane.writer.commit(
            [accepted(JobRecord(job_id, spec, JobState.PENDING, now_ns, now_ns, "ada", "accepted"))]
        )
        self.jobs.append(job_id)
        return job_id

    def job(self, job_id: str) -> JobRecord:
        """Return a job as it is stored."""
        found = self.store.job(job_id)
        assert found is not None, f"{job_id} is lost"
        return found

    def state(self, job_id: str) -> JobState:
        """Return the state of a job."""
        return self.job(job_id).state

    def reasons(self, job_id: str) -> str:
        """Return all reasons of a job so far."""
        return "\n".join(each.reason for each in self.store.events(0, 1000, job_id=job_id))

    def place(self, job_id: str) -> str:
        """Return the cluster of a job's latest attempt."""
        return self.store.attempts(job_id)[-1].placements[0].cluster

    def finish(self, job_id: str) -> None:
        """Make all running pods of a job exit with 0."""
        for server, pod in self.pods(job_id):
            if server.running and pod["status"].get("phase") == "Running":
                with suppress(FailureError):  # it was just removed
                    self.end_pod(server, pod)

    def end_pod(self, server: ApiServer, pod: dict[str, Any]) -> None:
        """Make a pod exit with 0."""
        ended = {"name": "main", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}
        change = {"status": {"phase": "Succeeded", "containerStatuses": [ended]}}
        server.patch(PODS, pod["metadata"]["namespace"], pod["metadata"]["name"], change, "status")

    # Faults.

    def recover(self) -> None:
        """End all faults."""
        for server in self.stopped:
            server.start()
        self.stopped.clear()
        for server in {*self.members.values(), *self.writes_to}:
            server.faults.clear()
        for server, node in self.failed:
            server.heal_node(node)
        self.failed.clear()

    def some(self) -> ApiServer:
        """Pick a server; sometimes Karmada's own."""
        return self.random.choice([*self.members.values(), *self.writes_to])

    @staticmethod
    def way(name: str) -> str:
        """Return the paths of a member in Karmada."""
        return f"/apis/cluster.karmada.io/v1alpha1/clusters/{name}/proxy*"

    def partition(self, name: str) -> Fault:
        """Stop a cluster's answers to Seaway, while its workloads continue."""
        if self.karmada:
            return self.karmada.control.faults.hang(self.way(name))
        return self.members[name].faults.hang()

    def suffered(self) -> Counter[str]:
        """Count the faults with an effect so far, by kind."""
        return Counter(what for what, fault in self.faults if fault is None or fault.hits)

    def inject(self) -> str:
        """Inject a fault, each kind in turn; return its kind."""
        if not self.deck:
            self.deck = self.random.sample(FAULT_KINDS, len(FAULT_KINDS))
        what = self.deck.pop()
        found = self.begin(what)
        if found:
            self.faults.append((what, found if isinstance(found, Fault) else None))
        return what

    def begin(self, what: str) -> Fault | bool:  # noqa: C901, PLR0911, PLR0912  # a case a line
        """Begin a fault; return it, or whether it had an immediate effect."""
        server, random = self.some(), self.random
        member = random.choice([*self.members.values()])
        match what:
            case "stop":
                return self.stop(server)
            case "cut":
                return server.faults.cut_watches() > 0
            case "forget":
                server.forget_history()
            case "error":
                return server.faults.error(random.choice([500, 503]), times=random.randint(1, 8))
            case "conflict":
                written, method = random.choice(self.writes_to), random.choice(["PATCH", "PATCH", "DELETE"])
                return written.faults.error(409, method=method, times=random.randint(1, 3))
            case "throttle":
                return server.faults.throttle(1, times=random.randint(1, 4))
            case "slow":
                return server.faults.slow(0.3, times=10)
            case "drop":
                return server.faults.drop(times=random.randint(1, 8))
            case "hang":
                return server.faults.hang(times=random.randint(1, 5))
            case "partition":
                return self.partition(member.name)
            case "node":
                self.failed.append((member, f"{member.name}-{random.randint(0, 1)}"))
                member.fail_node(self.failed[-1][1])
            case "pod":
                return self.delete(PODS)
            case "workload":
                return self.delete(JOBS)
            case "stranger":
                self.occupy(member)
        return True

    def stop(self, server: ApiServer) -> bool:
        """Stop a server, unless two are already stopped."""
        if server in self.stopped or len(self.stopped) > 1:
            return False
        server.stop()
        self.stopped.append(server)
        return True

    def delete(self, kind: Any) -> bool:  # noqa: ANN401  # a kind of objects
        """Delete one of Seaway's objects, as a user with kubectl would; report whether there was one."""
        servers = self.writes_to if kind is JOBS else [*self.members.values()]
        found = [(server, each) for server in servers for each in server.list(kind, "seaway-default", "seaway.io/job")]
        if not found:
            return False
        server, each = self.random.choice(found)
        with suppress(FailureError):  # it was just removed
            server.delete(kind, "seaway-default", each["metadata"]["name"], propagation="Background")
        return True

    def occupy(self, server: ApiServer, node: str = "") -> None:
        """Create a pod of another user on most of a device."""
        limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "70000", "nvidia.com/gpucores": "10"}
        container = {"name": "main", "image": IMAGE, "resources": {"limits": limits}}
        spec: Json = {"containers": [container]}
        if node:
            spec["nodeSelector"] = {"kubernetes.io/hostname": node}
        meta = {"name": f"stranger-{self.random.randrange(10**9)}"}
        server.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})

    # Checks.

    def wait(self, what: Callable[[], object], why: str, seconds: float = WAIT_S) -> None:
        """Wait until a condition is met."""
        give_up_s = time.monotonic() + seconds
        while not what():
            if time.monotonic() > give_up_s:
                jobs = [(each, self.job(each).state.value, self.job(each).reason) for each in self.jobs]
                pytest.fail(f"never seen: {why}; {jobs}")
            time.sleep(0.02)

    def settled(self, short: set[str]) -> bool:
        """Report whether every job is settled: services run, all others ended; short ones are finished here."""
        no_overload = True
        for each in self.jobs:
            row = self.job(each)
            if row.state.final:
                continue
            if each in short:
                self.finish(each)
                no_overload = False
            elif row.state is not JobState.RUNNING or row.spec.template != "deployment":
                no_overload = False
        return no_overload

    def check(self) -> None:
        """Check that nothing is lost, orphaned or overcommitted, and that nothing ran twice for too long."""
        for each in self.jobs:
            row = self.job(each)
            assert row.state in {JobState.COMPLETED, JobState.RUNNING, JobState.FAILED}, f"{row.state}: {row.reason}"
            assert row.reason
            live = [pod for _, pod in self.pods(each)]
            if row.state is JobState.RUNNING:
                assert len(live) == row.spec.replicas, f"{each} has {len(live)} pods"
                assert {pod["metadata"]["labels"]["seaway.io/attempt"] for pod in live} == {str(row.attempt)}
            else:
                assert not live
        running = {(each, self.job(each).attempt) for each in self.jobs if self.state(each) is JobState.RUNNING}
        assert self.left() == running
        assert not list(self.store.pending_commands())
        assert {(each.job_id, each.number) for each in self.store.held_attempts()} == running
        assert not self.seen.overbooked
        assert {each: s for each, s in self.seen.twice_s.items() if s > CONTROL.grace_period_s} == {}
        orphans = self.plane.operations.orphans()
        assert not orphans


@contextmanager
def world(folder: Path, *, karmada: bool, seed: int = 0) -> Iterator[World]:
    """Create a world, wait until all its clusters are observed, and stop it."""
    made = World(folder, karmada=karmada, seed=seed)
    try:
        made.wait(lambda: received(made) == len(made.members), "all clusters")
        yield made
    finally:
        made.close()


def received(made: World) -> int:
    """Count the clusters that answer."""
    return sum(each.state.value == "up" for each in made.plane.overview.clusters())


@pytest.mark.parametrize("karmada", [False, True], ids=["directly", "through-karmada"])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_job_is_lost_and_none_runs_twice_past_the_grace_period(seed: int, karmada: bool, tmp_path: Path) -> None:
    """After fifty faults, of all named kinds, every job is placed once, and nothing is left over.

    At no time does a job run twice for longer than the grace period while Seaway can end that.
    """
    with world(tmp_path, karmada=karmada, seed=seed) as made:
        outlast(made)
        short = live_through(made)
        reported = dict(made.suffered())
        made.recover()
        made.wait(lambda: received(made) == len(made.members), f"all clusters again after {reported}")
        made.wait(lambda: made.settled(short), f"that all is calm after {reported}")
        running = {each for each in made.jobs if made.state(each) is JobState.RUNNING}
        made.wait(lambda: {each for each, _ in made.left()} <= running, f"that all is tidied up after {reported}")
        made.wait(lambda: not [*made.store.pending_commands()], f"that all removals are confirmed after {reported}")
        made.check()
        assert sum(reported.values()) >= FAULTS
        assert {each: reported.get(each, 0) for each in NAMED if reported.get(each, 0) < LEAST} == {}


def outlast(made: World) -> None:
    """Stop a cluster's answers until its job also runs elsewhere, and until faults are ended."""
    job_id = made.submit(template="deployment")
    made.wait(lambda: made.state(job_id) is JobState.RUNNING, "the first job")
    assert made.stop(made.members[made.place(job_id)])
    made.faults.append(("stop", None))

    def attempts() -> set[int]:
        everything = [each for running in made.seen.running.values() for each in running]
        return {attempt for each, attempt, _ in everything if each == job_id}

    made.wait(lambda: attempts() == {1, 2}, "that it runs twice")


def live_through(made: World) -> set[str]:
    """Submit jobs, end some, and inject up to fifty faults one by one; return the jobs that are to end."""
    random = made.random
    short: set[str] = set()
    for step in range(MAX_STEPS):
        suffered = made.suffered()
        if suffered.total() >= FAULTS and all(suffered[each] >= LEAST for each in NAMED):
            break
        if step % 4 == 0:
            kind = random.choice(["short", "short", "gang", "service", "crash"])
            if kind == "service":
                made.submit(template="deployment")
            elif kind == "crash":
                made.submit("fail/it", retries=1)
            else:
                replicas = 2 if kind == "gang" else random.randint(1, 2)
                short.add(made.submit(replicas=replicas, gang=kind == "gang"))
        made.inject()
        for each in [each for each in short if random.random() < 0.1]:
            made.finish(each)
        time.sleep(random.uniform(0, 0.1))
        if random.random() < 0.2:
            time.sleep(random.choice([0, 0.2, 0.5, CONTROL.grace_period_s * 0.5]))
            made.recover()
    return short


@pytest.mark.parametrize("karmada", [False, True], ids=["directly", "through-karmada"])
def test_duplicate_run_time_is_measured(karmada: bool, tmp_path: Path) -> None:
    """The time counts while the older workload could be removed, and not while its cluster is unreachable."""
    with world(tmp_path, karmada=karmada) as made:
        made.plane.controller.stop()  # it would remove the older one
        for name, attempt in (("alpha", 1), ("beta", 2)):
            labels = {"seaway.io/job": "twice", "seaway.io/attempt": str(attempt)}
            made.members[name].put(
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": "twice", "namespace": "seaway", "labels": labels},
                    "spec": {"nodeName": f"{name}-0", "containers": [{"name": "main", "image": IMAGE}]},
                    "status": {"phase": "Running"},
                }
            )
        made.wait(lambda: made.seen.twice_s.get("twice", 0) > 5 * WATCH_S, "that it runs twice")
        made.stop(made.members["beta"])
        assert made.twice() == {"twice"}
        made.stop(made.members["alpha"])
        assert made.twice() == set()
        made.recover()
        assert made.twice() == {"twice"}


def test_workload_deleted_in_karmada_is_recreated(tmp_path: Path) -> None:
    """Its member may not have had it yet."""
    with world(tmp_path, karmada=True) as made:
        assert made.karmada
        first = made.submit(clusters=("alpha",))
        made.wait(lambda: made.state(first) is JobState.RUNNING, "the content of the tenant's namespace")
        made.karmada.hold("alpha")
        job_id = made.submit(clusters=("alpha",))
        made.wait(lambda: made.state(job_id) is JobState.DEPLOYING, "that it is bound")
        (written,) = made.karmada.control.list(JOBS, "seaway-default", f"seaway.io/job={job_id}")
        made.karmada.control.delete(JOBS, "seaway-default", written["metadata"]["name"], propagation="Background")
        made.wait(lambda: "are gone; it is re-created" in made.reasons(job_id), "that it is missed")
        made.karmada.release("alpha")
        made.wait(lambda: made.state(job_id) is JobState.RUNNING, "the job")
        assert (made.job(job_id).attempt, len(made.pods(job_id))) == (1, 1)
