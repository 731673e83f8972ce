"""Conformance suite for implementations of the port `Backend`.

A test class derives from `BackendSuite` and overrides `make`; pytest runs the tests:

    class TestSimulated(BackendSuite):
        def make(self) -> BackendUnderTest: ...

Each test creates a cluster and closes it. Actions on the cluster itself use the hooks of `BackendUnderTest`. A test
whose hook is missing (None) is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from time import monotonic

import pytest

from seaway.application.ports.backend import Answer, Backend, Changes, Command, Removal
from seaway.application.ports.logs import Following, NoContainerError
from seaway.application.ports.sessions import Accessible, Channel, Outcome, SessionKind, SessionRequest
from seaway.domain import job_spec as ids
from seaway.domain.cluster import Cluster
from seaway.domain.deployment import Cause, Deployment, Workload, WorkloadPhase
from seaway.domain.errors import RejectedError, UnavailableError
from seaway.domain.job import Demand, ResourceRequest
from seaway.domain.job_spec import JobSpec
from seaway.domain.placement import DeviceSlice, Placement
from seaway.domain.runtime import Run

LIVE = frozenset({WorkloadPhase.STARTING, WorkloadPhase.RUNNING})
ENDED = frozenset({WorkloadPhase.SUCCEEDED, WorkloadPhase.FAILED})
FUTURE_NS = 4_102_444_800_000_000_000
"""The year 2100, nanoseconds since 1970."""

MANY_SESSIONS = 80
"""More than a backend may have open at the same time."""

MAX_ROUNDS = 1000
"""Maximum number of requests for an expected change."""


@dataclass(frozen=True, slots=True)
class BackendUnderTest:
    """A cluster and the actions of a test on it.

    The cluster is empty, and its first node has a device with at least 1,000 MiB. Jobs of the suite have a name, CPU,
    memory, and a slice of that device.

    Attributes
    ----------
    backend
        The cluster.
    go_on
        Advances a clock or sleeps, seconds.
    close
        Closes the cluster.
    disconnect, reconnect
        Make the cluster unreachable, and reachable again.
    fail_node, heal_node
        Make a node fail, and recover. The argument is its name.
    vanish
        Removes a workload without a command of Seaway. The arguments are its job and attempt.
    vanish_part
        Removes one replica in the same way; None if a workload exists only as a whole.
    overrun
        Causes enough changes that earlier cursors expire.
    finish
        Makes a workload succeed. The arguments are its job and attempt. None if it succeeds by itself after its
        duration.
    timeout_s
        Maximum duration of a call to an unreachable cluster, seconds.
    refuses_overbooking
        Whether the cluster rejects a deployment that does not fit, rather than leaving it pending.
    tells_devices
        Whether the cluster reports the devices of a workload.
    keeps_logs
        Whether the cluster stores logs and runs programs. An API server alone does not.
    """

    backend: Backend
    go_on: Callable[[float], None]
    close: Callable[[], None]
    disconnect: Callable[[], None] | None = None
    reconnect: Callable[[], None] | None = None
    fail_node: Callable[[str], None] | None = None
    heal_node: Callable[[str], None] | None = None
    vanish: Callable[[str, int], None] | None = None
    overrun: Callable[[], None] | None = None
    finish: Callable[[str, int], None] | None = None
    vanish_part: Callable[[str, int], None] | None = None
    timeout_s: float = 30
    refuses_overbooking: bool = True
    tells_devices: bool = True
    keeps_logs: bool = True


class Watch:
    """Observer of a cluster that only reads its changes, like the control loop.

    Attributes
    ----------
    workloads
        Present workloads, by job and attempt.
    gone
        Workloads reported as gone.
    cluster
        Latest inventory.
    """

    def __init__(self, under: BackendUnderTest) -> None:
        self._under = under
        self._cursor = ""
        self.workloads: dict[tuple[str, int], Workload] = {}
        self.gone: list[tuple[str, int]] = []
        self.cluster: Cluster | None = None
        self.look()

    @property
    def cursor(self) -> str:
        """Cursor of the last request."""
        return self._cursor

    def look(self) -> Changes:
        """Request the changes once, and apply them."""
        reported = self._under.backend.changes(self._cursor, 0)
        self._cursor = reported.cursor
        if reported.complete:
            self.workloads.clear()
        for copy in reported.workloads:
            key = (copy.job_id, copy.attempt)
            if copy.phase is WorkloadPhase.GONE:
                self.workloads.pop(key, None)
                self.gone.append(key)
            else:
                self.workloads[key] = copy
        self.cluster = reported.inventory or self.cluster
        return reported

    def until(self, what: Callable[[], bool], why: str) -> None:
        """Request changes and advance time until `what` returns True."""
        for _ in range(MAX_ROUNDS):
            self.look()
            if what():
                return
            self._under.go_on(0.5)
        pytest.fail(f"never seen: {why}")

    def until_phase(self, deployment: Deployment, *phases: WorkloadPhase) -> Workload:
        """Request changes until a workload is in one of `phases`; return it."""
        key = (deployment.job_id, deployment.attempt)
        self.until(
            lambda: key in self.workloads and self.workloads[key].phase in phases,
            f"{deployment.name} {' or '.join(phase.value for phase in phases)}",
        )
        return self.workloads[key]


class BackendSuite:
    """The rules for backends, one per test."""

    def make(self) -> BackendUnderTest:
        """Create an empty cluster. Test classes override it."""
        raise NotImplementedError

    @pytest.fixture
    def under(self) -> Iterator[BackendUnderTest]:
        """Create a cluster for each test."""
        made = self.make()
        yield made
        made.close()

    def test_the_first_answer_is_complete(self, under: BackendUnderTest) -> None:
        """A request without a cursor returns a complete answer, with all nodes and devices."""
        first = under.backend.changes("", 0)
        assert first.complete
        assert first.cursor
        assert not first.workloads
        assert first.inventory is not None
        assert first.inventory.name == under.backend.cluster
        assert first.inventory.nodes

    def test_a_copy_starts_and_runs(self, under: BackendUnderTest) -> None:
        """A created workload is reported with its job, attempt, node, devices and amounts, and starts to run."""
        watch, deployment = Watch(under), deploy(under)
        assert send(under, deployment) == [Answer(done=True)]
        copy = watch.until_phase(deployment, WorkloadPhase.RUNNING)
        assert (copy.job_id, copy.attempt, copy.cluster) == (deployment.job_id, 1, under.backend.cluster)
        assert [each.replica for each in copy.replicas] == [0]
        placement = deployment.placements[0]
        assert copy.replicas[0].node == placement.node
        if under.tells_devices:
            held = {(taken.uuid, taken.memory_mib, taken.core_milli) for taken in copy.replicas[0].slices}
            assert held == {(taken.uuid, taken.memory_mib, taken.core_milli) for taken in placement.slices}
        request = deployment.spec.demand.request
        assert (copy.replicas[0].cpu_milli, copy.replicas[0].memory_mib) == (request.cpu_milli, request.memory_mib)

    def test_a_copy_that_is_done_stays_until_it_is_removed(self, under: BackendUnderTest) -> None:
        """A finished workload stays in the list until it is removed."""
        watch, deployment = Watch(under), deploy(under, expected_duration_s=1)
        send(under, deployment)
        if under.finish:
            watch.until_phase(deployment, WorkloadPhase.RUNNING)
            under.finish(deployment.job_id, deployment.attempt)
        watch.until_phase(deployment, WorkloadPhase.SUCCEEDED)
        assert [copy.phase for copy in under.backend.changes("", 0).workloads] == [WorkloadPhase.SUCCEEDED]
        send(under, removal(deployment))
        watch.until(lambda: not watch.workloads, "the removal")
        assert not under.backend.changes("", 0).workloads

    def test_a_log_that_is_followed_ends_with_its_copy(self, under: BackendUnderTest) -> None:
        """A followed log ends with its workload; the log of an unknown workload is rejected."""
        backend = under.backend
        if not isinstance(backend, Following) or not under.keeps_logs:
            pytest.skip("the cluster does not stream log lines")
        with pytest.raises(RejectedError):
            backend.follow_log("sw-nothing-1", 0, 10, "", lambda _: None).result(under.timeout_s)
        watch, deployment = Watch(under), deploy(under, expected_duration_s=1)
        send(under, deployment)
        watch.until_phase(deployment, WorkloadPhase.RUNNING)
        following = backend.follow_log(deployment.name, 0, 10, "", lambda _: None)
        assert not following.done()
        if under.finish:
            under.finish(deployment.job_id, deployment.attempt)
        watch.until_phase(deployment, WorkloadPhase.SUCCEEDED)
        following.result(under.timeout_s)

    def test_a_container_that_is_not_there_is_named_with_those_that_are(self, under: BackendUnderTest) -> None:
        """The log of a container is read by name; the first container is the default. An unknown name is rejected."""
        backend = under.backend
        if not under.keeps_logs:
            pytest.skip("no kubelet: the API server cannot ask a node without an address for its containers")
        watch, deployment = Watch(under), deploy(under)
        send(under, deployment)
        watch.until_phase(deployment, WorkloadPhase.RUNNING)
        with pytest.raises(NoContainerError, match="container 'side' not found; available: main") as error:
            list(backend.logs(deployment.name, 0, 10, "side"))
        assert error.value.where == "container"
        if isinstance(backend, Following):
            with pytest.raises(NoContainerError, match="available: main"):
                backend.follow_log(deployment.name, 0, 10, "", lambda _: None, "side").result(under.timeout_s)
        assert list(backend.logs(deployment.name, 0, 10, "main")) == list(backend.logs(deployment.name, 0, 10))
        assert not list(backend.logs(deployment.name, 0, 10, since_ns=FUTURE_NS))

    def test_a_session_runs_a_command_until_its_exit(self, under: BackendUnderTest) -> None:
        """A command gets its input. Its output comes before the outcome, and nothing after that."""
        backend = accessible(under)
        watch, deployment = Watch(under), deploy(under)
        send(under, deployment)
        watch.until_phase(deployment, WorkloadPhase.RUNNING)
        script = "read -r line; echo $line; echo err >&2; exit 3"
        wanted = SessionRequest(SessionKind.EXEC, "main", ("sh", "-c", script), stdin=True)
        session = backend.open_session(deployment.name, 0, wanted).result(under.timeout_s)
        session.send(bytes([Channel.STDIN]) + b"hello\n").result(under.timeout_s)
        said = {Channel.STDOUT: b"", Channel.STDERR: b""}
        while (frame := session.receive().result(under.timeout_s))[0] != Channel.STATUS:
            said[Channel(frame[0])] += frame[1:]
        assert said == {Channel.STDOUT: b"hello\n", Channel.STDERR: b"err\n"}
        assert Outcome.of(frame).exit_code == 3
        assert session.receive().result(under.timeout_s) == b""
        session.close()
        session.close()

    def test_a_closed_session_ends_its_command(self, under: BackendUnderTest) -> None:
        """Closed sessions leave no command behind and make room, so any number can follow each other."""
        backend = accessible(under)
        watch, deployment = Watch(under), deploy(under)
        send(under, deployment)
        watch.until_phase(deployment, WorkloadPhase.RUNNING)
        for _ in range(MANY_SESSIONS):
            wanted = SessionRequest(SessionKind.EXEC, "", ("sh", "-c", "echo begun; exec sleep 1000"))
            session = backend.open_session(deployment.name, 0, wanted).result(under.timeout_s)
            assert session.receive().result(under.timeout_s) == bytes([Channel.STDOUT]) + b"begun\n"
            session.close()

    def test_a_session_with_nothing_is_rejected(self, under: BackendUnderTest) -> None:
        """A session needs a workload, a replica and a container that exist."""
        backend = accessible(under)
        wanted = SessionRequest(SessionKind.EXEC, "", ("true",))
        with pytest.raises(RejectedError):
            backend.open_session("sw-nothing-1", 0, wanted).result(under.timeout_s)
        watch, deployment = Watch(under), deploy(under)
        send(under, deployment)
        watch.until_phase(deployment, WorkloadPhase.RUNNING)
        with pytest.raises(RejectedError):
            backend.open_session(deployment.name, 7, wanted).result(under.timeout_s)
        with pytest.raises(NoContainerError, match="available: main"):
            backend.open_session(deployment.name, 0, replace(wanted, container="side")).result(under.timeout_s)

    def test_creating_again_changes_nothing(self, under: BackendUnderTest) -> None:
        """A repeated command succeeds, alone or in one batch, and there is one workload."""
        watch, deployment = Watch(under), deploy(under)
        assert all(answer.done for answer in send(under, deployment, deployment))
        watch.until_phase(deployment, WorkloadPhase.RUNNING)
        assert send(under, deployment)[0].done
        assert watch.until_phase(deployment, WorkloadPhase.RUNNING).attempt == 1
        assert len(under.backend.changes("", 0).workloads) == 1

    def test_a_removal_is_reported_once(self, under: BackendUnderTest) -> None:
        """A removed workload is reported as gone once."""
        watch, deployment = Watch(under), deploy(under)
        send(under, deployment)
        watch.until_phase(deployment, *LIVE)
        watch.until(lambda: send(under, removal(deployment))[0].done, "the removal done")
        watch.until(lambda: bool(watch.gone), "the removal")
        assert watch.gone == [(deployment.job_id, 1)]
        watch.look()
        assert watch.gone == [(deployment.job_id, 1)]

    def test_a_removal_is_done_when_nothing_runs(self, under: BackendUnderTest) -> None:
        """A removal is done when the resources are free. Until then, it is not done and is retried."""
        watch, deployment = Watch(under), deploy(under)
        send(under, deployment)
        watch.until_phase(deployment, WorkloadPhase.RUNNING)
        watch.until(lambda: send(under, removal(deployment))[0].done, "the removal done")
        assert WorkloadPhase.RUNNING not in {copy.phase for copy in under.backend.changes("", 0).workloads}

    def test_removing_what_is_not_there_is_done(self, under: BackendUnderTest) -> None:
        """A removal of a missing workload succeeds, also if it is repeated."""
        deployment = deploy(under)
        assert send(under, removal(deployment), removal(deployment)) == [Answer(done=True)] * 2

    def test_attempts_are_kept_apart(self, under: BackendUnderTest) -> None:
        """Two attempts of a job are two workloads. The removal of one leaves the other."""
        watch, first, second = Watch(under), deploy(under), deploy(under, attempt=2)
        send(under, first, second)
        watch.until_phase(first, WorkloadPhase.RUNNING)
        watch.until_phase(second, WorkloadPhase.RUNNING)
        send(under, removal(first))
        watch.until(lambda: bool(watch.gone), "the removal")
        assert [copy.attempt for copy in watch.workloads.values()] == [2]

    def test_answers_come_in_order(self, under: BackendUnderTest) -> None:
        """The commands of a batch are executed independently and answered in order."""
        if not under.refuses_overbooking:
            pytest.skip("the cluster does not refuse what does not fit")
        good, bad, last = deploy(under), deploy(under, "too-large", cpu_milli=10**9), deploy(under, "last")
        answers = send(under, good, bad, removal(good), last)
        assert [answer.done for answer in answers] == [True, False, True, True]
        assert [answer.refused for answer in answers] == [False, True, False, False]

    def test_nothing_is_an_empty_batch(self, under: BackendUnderTest) -> None:
        """An empty batch has no answers."""
        assert send(under) == []

    def test_refused_stays_refused(self, under: BackendUnderTest) -> None:
        """A deployment that does not fit is rejected with a reason, also on a retry, and leaves no objects."""
        if not under.refuses_overbooking:
            pytest.skip("the cluster does not refuse what does not fit")
        large = deploy(under, cpu_milli=10**9)
        for _ in range(2):
            answer = send(under, large)[0]
            assert not answer.done
            assert answer.refused
            assert answer.reason
        assert not under.backend.changes("", 0).workloads

    def test_a_cursor_brings_only_what_changed(self, under: BackendUnderTest) -> None:
        """A request with a cursor returns only the changes since then."""
        watch, first, second = Watch(under), deploy(under), deploy(under, "second")
        send(under, first)
        watch.until_phase(first, WorkloadPhase.RUNNING)
        send(under, second)
        reported = watch.look()
        while not reported.workloads:
            under.go_on(0.5)
            reported = watch.look()
        assert not reported.complete
        assert {copy.job_id for copy in reported.workloads} == {second.job_id}
        watch.until_phase(second, WorkloadPhase.RUNNING)
        quiet = watch.look()
        assert not quiet.complete
        assert not quiet.workloads
        assert quiet.inventory is None

    def test_a_cursor_may_be_used_twice(self, under: BackendUnderTest) -> None:
        """A lost answer can be requested again."""
        deployment = deploy(under)
        cursor = under.backend.changes("", 0).cursor
        send(under, deployment)
        Watch(under).until_phase(deployment, WorkloadPhase.RUNNING)
        for _ in range(2):
            reported = under.backend.changes(cursor, 0)
            assert [copy.job_id for copy in reported.workloads] == [deployment.job_id]

    def test_a_strange_cursor_brings_everything(self, under: BackendUnderTest) -> None:
        """An unknown cursor is answered completely."""
        deployment = deploy(under)
        send(under, deployment)
        Watch(under).until_phase(deployment, WorkloadPhase.RUNNING)
        reported = under.backend.changes("of-another-time-99", 0)
        assert reported.complete
        assert reported.inventory is not None
        assert [copy.job_id for copy in reported.workloads] == [deployment.job_id]

    def test_a_late_cursor_brings_everything(self, under: BackendUnderTest) -> None:
        """An expired cursor is answered completely."""
        overrun = have(under.overrun)
        cursor = under.backend.changes("", 0).cursor
        overrun()
        reported = under.backend.changes(cursor, 0)
        assert reported.complete
        assert reported.inventory is not None

    def test_a_cluster_that_does_not_answer_says_so_in_time(self, under: BackendUnderTest) -> None:
        """Every call to an unreachable cluster raises `UnavailableError`. Workloads continue to run."""
        disconnect, reconnect = have(under.disconnect), have(under.reconnect)
        watch, deployment = Watch(under), deploy(under)
        send(under, deployment)
        watch.until_phase(deployment, WorkloadPhase.RUNNING)
        disconnect()
        calls: tuple[Callable[[], object], ...] = (
            lambda: send(under, deployment),
            lambda: under.backend.changes(watch.cursor, 0),
            lambda: list(under.backend.logs(deployment.name, 0, 1)),
        )
        for call in calls:
            begun = monotonic()
            with pytest.raises(UnavailableError) as error:
                call()
            assert error.value.retry_after_s > 0
            assert monotonic() - begun < under.timeout_s
        reconnect()
        watch.until_phase(deployment, WorkloadPhase.RUNNING)

    def test_a_failed_node_is_reported(self, under: BackendUnderTest) -> None:
        """The replicas of a failed node fail with cause infrastructure. The node is not ready until it recovers."""
        fail_node, heal_node = have(under.fail_node), have(under.heal_node)
        watch, deployment = Watch(under), deploy(under)
        send(under, deployment)
        watch.until_phase(deployment, WorkloadPhase.RUNNING)
        node = deployment.placements[0].node
        fail_node(node)
        failed = watch.until_phase(deployment, WorkloadPhase.FAILED)
        assert failed.reason
        assert failed.cause is Cause.INFRASTRUCTURE
        watch.until(lambda: not ready(watch, node), "the node not ready")
        heal_node(node)
        watch.until(lambda: ready(watch, node), "the node ready")

    def test_a_foreign_removal_is_reported(self, under: BackendUnderTest) -> None:
        """A workload that disappears is reported as gone and can be created again."""
        vanish = have(under.vanish)
        watch, deployment = Watch(under), deploy(under)
        send(under, deployment)
        watch.until_phase(deployment, WorkloadPhase.RUNNING)
        vanish(deployment.job_id, deployment.attempt)
        watch.until(lambda: bool(watch.gone), "that it vanished")
        assert send(under, deployment)[0].done
        watch.until_phase(deployment, WorkloadPhase.RUNNING)

    def test_a_foreign_removal_of_a_part_is_reported(self, under: BackendUnderTest) -> None:
        """A workload lists its existing replicas. A replica that disappears is missing until it is created again."""
        vanish_part = have(under.vanish_part)
        watch, deployment = Watch(under), deploy(under, replicas=2)
        key = (deployment.job_id, deployment.attempt)
        send(under, deployment)

        def listed() -> int:
            return len(watch.workloads[key].replicas) if key in watch.workloads else 0

        watch.until(lambda: listed() == 2, "both replicas")
        vanish_part(*key)
        watch.until(lambda: listed() == 1, "that one vanished")
        assert send(under, deployment)[0].done
        watch.until(lambda: listed() == 2, "both replicas again")
        watch.until_phase(deployment, WorkloadPhase.RUNNING)

    def test_a_copy_gets_more_and_fewer_replicas_in_place(self, under: BackendUnderTest) -> None:
        """A workload that is sent again with more replicas starts them, and with leaving ones ends only these.

        The command is done when the leaving ones are gone, also if it is repeated.
        """
        watch, small = Watch(under), deploy(under)
        key, first = (small.job_id, small.attempt), small.placements[0]
        send(under, small)
        pod = watch.until_phase(small, WorkloadPhase.RUNNING).replicas[0].pod

        def listed() -> list[int]:
            return [each.replica for each in watch.workloads[key].replicas] if key in watch.workloads else []

        def have_left(*placements: Placement) -> None:
            command = replace(small, placements=placements)
            stay = [each.replica for each in placements if not each.leaving]
            for _ in range(2):
                watch.until(lambda: send(under, command)[0].done, "the command done")
                watch.until(lambda: listed() == stay, f"the replicas {stay}")
            copy = watch.until_phase(command, WorkloadPhase.RUNNING)
            assert copy.replicas[0].pod == pod
            pods.append([each.pod for each in copy.replicas])

        pods: list[list[str]] = []
        second, third = (replace(first, replica=number, wave=2) for number in (1, 2))
        have_left(first, second, third)
        have_left(first, second, replace(third, leaving=True))
        have_left(first, replace(second, beside="1-2"))
        assert pods[0][:2] == pods[1] == pods[2]
        have_left(first, replace(second, beside="1-2", leaving=True))
        assert len(under.backend.changes("", 0).workloads) == 1

    def test_what_ended_makes_room(self, under: BackendUnderTest) -> None:
        """The devices of an ended workload are available to others, although it is still listed."""
        if not under.refuses_overbooking:
            pytest.skip("the cluster does not refuse what does not fit")
        watch = Watch(under)
        first, second = deploy(under, expected_duration_s=1, whole=True), deploy(under, "second", whole=True)
        assert send(under, first)[0].done
        assert send(under, second)[0].refused
        watch.until_phase(first, WorkloadPhase.SUCCEEDED)
        assert send(under, deploy(under, "third", whole=True))[0].done

    def test_objects_are_named_and_marked(self, under: BackendUnderTest) -> None:
        """The objects of a deployment have its name as prefix, and labels with its job and attempt."""
        deployment = deploy(under)
        for each in under.backend.manifests(deployment):
            assert each["metadata"]["name"].startswith(deployment.name)
            assert each["metadata"]["labels"]["seaway.io/job"] == deployment.job_id
            assert each["metadata"]["labels"]["seaway.io/attempt"] == "1"

    def test_logs_of_nothing_are_rejected(self, under: BackendUnderTest) -> None:
        """The log of an unknown workload is rejected."""
        with pytest.raises(RejectedError):
            list(under.backend.logs("sw-nothing-1", 0, 10))


def accessible(under: BackendUnderTest) -> Accessible:
    """Return a backend with containers, or skip the test."""
    if not isinstance(under.backend, Accessible) or not under.keeps_logs:
        pytest.skip("the cluster has no containers to connect to")
    return under.backend


def have(hook: Callable[..., None] | None) -> Callable[..., None]:
    """Return a hook, or skip the test if it is None."""
    if hook is None:
        pytest.skip("the backend under test has no hook for this")
    return hook


def send(under: BackendUnderTest, *commands: Command) -> Sequence[Answer]:
    """Send commands in one batch, and wait for the answers."""
    sent = under.backend.send(commands)
    return [each.result(under.timeout_s) if isinstance(each, Future) else each for each in sent]


def deploy(
    under: BackendUnderTest,
    job: str = "first",
    attempt: int = 1,
    *,
    cpu_milli: int = 100,
    expected_duration_s: int | None = None,
    whole: bool = False,
    replicas: int = 1,
) -> Deployment:
    """Create a deployment on the cluster's first device.

    Parameters
    ----------
    job
        Name of the job; its ID is derived from it.
    whole
        Whether each replica requests the whole device, rather than a tenth.
    replicas
        Number of replicas. Each has a different amount of memory.
    """
    inventory = under.backend.changes("", 0).inventory
    assert inventory is not None, "a complete answer has the cluster's nodes and devices"
    node = next(each for each in inventory.nodes if each.devices)
    device = node.devices[0]
    part = 1 if whole else 10
    memory_mib, core_milli = device.memory_mib // part, device.core_milli // part
    taken = [DeviceSlice(device.uuid, memory_mib - number, core_milli) for number in range(replicas)]
    job_id = ids.encode(int.from_bytes(job.encode().ljust(7)[:7]))
    request = ResourceRequest(cpu_milli, 64, 1, memory_mib, 0, core_milli)
    run = Run("busybox:1", ("sleep", "1000"))
    spec = JobSpec(job, Demand(request), replicas, run=run, expected_duration_s=expected_duration_s)
    places = [Placement(job_id, number, inventory.name, node.name, (each,)) for number, each in enumerate(taken)]
    return Deployment(job_id, attempt, inventory.name, spec, tuple(places))


def removal(deployment: Deployment) -> Removal:
    """Return the command that removes a deployment."""
    return Removal(deployment.job_id, deployment.attempt, deployment.cluster)


def ready(watch: Watch, node: str) -> bool:
    """Report whether a node is ready in the latest inventory."""
    return watch.cluster is not None and any(each.name == node and each.ready for each in watch.cluster.nodes)
