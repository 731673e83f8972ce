"""The view of a cluster: its changes, and its independence of other clusters."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from seaway.adapters.kubernetes.backends import KubernetesBackends
from seaway.adapters.kubernetes.cluster import ClusterOptions
from seaway.adapters.kubernetes.collect.changes import Limits
from seaway.adapters.kubernetes.collect.health import Health
from seaway.adapters.kubernetes.collect.services import ServiceObject
from seaway.adapters.kubernetes.collect.view import ClusterView
from seaway.adapters.kubernetes.collect.workloads import WorkloadObject
from seaway.adapters.kubernetes.objects.core import NodeObject, Part, PodObject
from seaway.adapters.kubernetes.objects.decode import Broken, read_item
from seaway.domain.cluster import Cluster
from seaway.domain.deployment import Cause, WorkloadPhase
from seaway.domain.errors import UnavailableError
from tests.fakes.kubernetes import ApiServer
from tests.fakes.kubernetes.kinds import NODES

T = TypeVar("T", bound=Part)
WAIT_S = 30.0
JOB = "01k9zj5q8e0ab"


class Timers:
    """Timers that a test fires."""

    def __init__(self) -> None:
        self.due: list[tuple[float, Callable[[], None]]] = []

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        """Store the call."""
        self.due.append((seconds, call))

    def pass_by(self) -> None:
        """Call all."""
        due, self.due = self.due, []
        for _, call in due:
            call()


@pytest.fixture
def timers() -> Timers:
    """Create timers."""
    return Timers()


@pytest.fixture
def view(timers: Timers) -> ClusterView:
    """Create a view with one node, already read once."""
    made = ClusterView(Cluster("alpha"), Health(()), timers.later, Limits(history_size=4))
    made.put_node(node("n1"))
    return made


def decoded(value: dict[str, Any], kind: type[T]) -> T:
    """Decode an object as it comes from a cluster."""
    found = read_item(json.dumps(value).encode(), kind)
    assert not isinstance(found, Broken), found
    return found


def node(name: str, ready: str = "True", **spec: Any) -> NodeObject:  # noqa: ANN401  # fields of a spec
    """Write a node."""
    meta = {"name": name, "labels": {"kubernetes.io/hostname": name}}
    amounts = {"cpu": "8", "memory": "16Gi"}
    status = {"allocatable": amounts, "conditions": [{"type": "Ready", "status": ready}]}
    return decoded({"metadata": meta, "spec": spec, "status": status}, NodeObject)


def pod(name: str, **status: Any) -> PodObject:  # noqa: ANN401  # fields of a status
    """Write an unmanaged pod."""
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    body = {
        "metadata": {"name": name, "namespace": "ns", "uid": name},
        "spec": {"nodeName": "n1", "containers": [container]},
    }
    return decoded({**body, "status": {"phase": "Running", **status}}, PodObject)


def copy(at: str = "", **status: Any) -> PodObject:  # noqa: ANN401  # fields of a status
    """Write a pod of an attempt; unschedulable unless it is on a node."""
    labels = {"seaway.io/job": JOB, "seaway.io/attempt": "1", "app.kubernetes.io/managed-by": "seaway"}
    meta = {
        "name": "mine",
        "namespace": "seaway",
        "uid": "u",
        "labels": labels,
        "annotations": {"seaway.io/replicas": "0"},
    }
    spec = {"nodeName": at, "containers": [{"name": "main"}], "nodeSelector": {"kubernetes.io/hostname": "n1"}}
    return decoded({"metadata": meta, "spec": spec, "status": {"phase": "Pending", **status}}, PodObject)


UNSCHEDULABLE = [
    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "CardInsufficientMemory"}
]


@pytest.mark.parametrize(
    ("taint", "listed"),
    [
        ({"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}, False),
        ({"key": "node-role.kubernetes.io/master", "effect": "NoExecute"}, False),
        ({"key": "node-role.kubernetes.io/control-plane", "effect": "PreferNoSchedule"}, True),
        ({"key": "gpu", "effect": "NoSchedule"}, True),
    ],
)
def test_control_plane_nodes_are_not_of_the_fleet(view: ClusterView, taint: dict[str, str], listed: bool) -> None:
    """A node that is reserved for the control plane gets no job, whatever the job tolerates."""
    view.put_node(node("reserved", taints=[taint]))
    reported = view.changes("", 0).inventory
    assert reported is not None
    assert ("reserved" in {each.name for each in reported.nodes}) is listed


def test_only_what_changed_is_reported(view: ClusterView) -> None:
    """After a full read, a cursor returns later changes, and the inventory only if a node changed."""
    view.put_pod(pod("a"))
    first = view.changes("", 0)
    assert first.complete
    assert [each.name for each in first.unmanaged_pods] == ["ns/a"]
    view.put_pod(pod("b"))
    then = view.changes(first.cursor, 0)
    assert not then.complete
    assert then.inventory is None
    assert [each.name for each in then.unmanaged_pods] == ["ns/b"]
    view.put_node(node("n2"))
    reported = view.changes(then.cursor, 0).inventory
    assert reported is not None
    assert [each.name for each in reported.nodes] == ["n1", "n2"]


def test_the_same_again_is_no_change(view: ClusterView) -> None:
    """A repeated report, like a heartbeat of a node, wakes no reader."""
    view.put_pod(pod("a"))
    cursor = view.changes("", 0).cursor
    view.put_pod(pod("a"))
    view.put_node(node("n1"))
    again = view.changes(cursor, 0)
    assert again.inventory is None
    assert not again.unmanaged_pods


def test_a_service_that_comes_first_is_no_copy_that_is_gone(view: ClusterView) -> None:
    """A service alone does not report its workload: the attempt is reported with its workload, and gone once."""
    meta = {"name": "sw", "namespace": "seaway", "labels": copy().metadata.labels}
    cursor = view.changes("", 0).cursor
    service = {"metadata": meta, "spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 80}]}}
    view.put_exposing("/api/v1/services", decoded(service, ServiceObject))
    assert view.changes(cursor, 0).cursor == cursor
    workload = {"metadata": {**meta, "annotations": {"seaway.io/replicas": "0"}}}
    view.put_workload("/apis/batch/v1/jobs", decoded(workload, WorkloadObject))
    reported = view.changes(cursor, 0)
    assert [(each.phase, each.address) for each in reported.workloads] == [(WorkloadPhase.STARTING, "sw.seaway.svc:80")]
    view.drop_workload("/apis/batch/v1/jobs", "seaway/sw")
    gone = view.changes(reported.cursor, 0)
    assert [each.phase for each in gone.workloads] == [WorkloadPhase.GONE]
    view.drop_workload("/api/v1/services", "seaway/sw")
    assert view.changes(gone.cursor, 0).cursor == gone.cursor


def test_after_another_list_all_that_there_is_is_reported(view: ClusterView, timers: Timers) -> None:
    """An object between two lists is in neither: all is reported, so that its absence is noticed."""
    jobs, cron = "/apis/batch/v1/jobs", "/apis/batch/v1/cronjobs"
    asyncio.run(view.replace_workloads(jobs, []))
    asyncio.run(view.replace_workloads(cron, []))
    cursor = view.changes("", 0).cursor
    timers.pass_by()
    assert not view.changes(cursor, 0).complete
    asyncio.run(view.replace_workloads(jobs, []))
    asyncio.run(view.replace_workloads(cron, []))
    assert not view.changes(cursor, 0).complete
    assert len(timers.due) == 1
    timers.pass_by()
    reported = view.changes(cursor, 0)
    assert reported.complete
    assert not view.changes(reported.cursor, 0).complete


def test_a_pod_that_goes_or_ends_holds_nothing(view: ClusterView) -> None:
    """A pod that is deleted or finished is reported once without a node."""
    for name in "ab":
        view.put_pod(pod(name))
    cursor = view.changes("", 0).cursor
    view.drop_pod("ns/a")
    view.put_pod(pod("b", phase="Succeeded"))
    assert {(each.name, each.node) for each in view.changes(cursor, 0).unmanaged_pods} == {("ns/a", ""), ("ns/b", "")}


def test_a_cursor_that_is_too_old_gets_everything(view: ClusterView) -> None:
    """A cursor from before the history gets all objects."""
    cursor = view.changes("", 0).cursor
    for at in range(20):
        view.put_pod(pod(f"pod-{at}"))
    reported = view.changes(cursor, 0)
    assert reported.complete
    assert len(reported.unmanaged_pods) == 20


def test_a_list_drops_what_is_gone(view: ClusterView) -> None:
    """Objects that a new list lacks are dropped."""
    view.put_pod(pod("a"))
    cursor = view.changes("", 0).cursor
    asyncio.run(view.replace_pods([pod("b")]))
    assert {(each.name, each.node) for each in view.changes(cursor, 0).unmanaged_pods} == {("ns/a", ""), ("ns/b", "n1")}


def test_a_pod_that_no_node_takes_is_refused_after_a_while(view: ClusterView, timers: Timers) -> None:
    """A pod that a scheduler rejects for a while has failed, with the scheduler's reason."""
    view.put_pod(copy(conditions=UNSCHEDULABLE))
    first = view.changes("", 0)
    assert first.workloads[0].phase is WorkloadPhase.STARTING
    timers.pass_by()
    (refused,) = view.changes(first.cursor, 0).workloads
    assert (refused.phase, refused.cause) == (WorkloadPhase.FAILED, Cause.UNSCHEDULABLE)
    assert refused.reason == "no node accepts it: CardInsufficientMemory"


@pytest.mark.parametrize(
    ("status", "cause"),
    [
        ({"message": "pod has unbound immediate PersistentVolumeClaims"}, Cause.REJECTED),
        ({"message": "1 Insufficient cpu", "nominated": "n1"}, Cause.UNSCHEDULABLE),
    ],
)
def test_what_is_under_way_is_waited_for_longer(
    view: ClusterView, timers: Timers, status: dict[str, str], cause: Cause
) -> None:
    """Pending volumes and preemption are reported immediately, and rejected after `pod_start_timeout_s`."""
    said = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": status["message"]}]
    view.put_pod(copy(conditions=said, nominatedNodeName=status.get("nominated", "")))
    assert [seconds for seconds, _ in timers.due] == [Limits().pod_start_timeout_s]
    (waits,) = view.changes("", 0).workloads
    assert (waits.phase, status["message"] in waits.reason) == (WorkloadPhase.STARTING, True)
    timers.pass_by()
    (refused,) = view.changes("", 0).workloads
    assert (refused.phase, refused.cause, refused.reason) == (WorkloadPhase.FAILED, cause, waits.reason)


def test_a_volume_that_comes_leaves_the_usual_time_for_a_node(view: ClusterView, timers: Timers) -> None:
    """The wait for a volume does not count against the nodes, nor the reverse."""
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    view.put_pod(copy(conditions=[said | {"message": "pod has unbound immediate PersistentVolumeClaims"}]))
    view.put_pod(copy(conditions=UNSCHEDULABLE))
    assert [seconds for seconds, _ in timers.due] == [Limits().pod_start_timeout_s, Limits().unschedulable_timeout_s]
    view.put_pod(copy("n1"))
    timers.pass_by()
    assert view.changes("", 0).workloads[0].phase is WorkloadPhase.STARTING


def test_a_pod_that_is_taken_in_time_is_not_refused(view: ClusterView, timers: Timers) -> None:
    """A pod that was bound in time is not rejected."""
    view.put_pod(copy(conditions=UNSCHEDULABLE))
    view.put_pod(copy(conditions=[{"type": "PodScheduled", "status": "True"}]))
    timers.pass_by()
    assert view.changes("", 0).workloads[0].phase is WorkloadPhase.STARTING


def test_a_pod_whose_image_cannot_be_pulled_fails_after_a_while(view: ClusterView, timers: Timers) -> None:
    """The reason is reported immediately; back-off and retry are the same problem, and a recovery in time ends it."""
    for reason in ("ErrImagePull", "ImagePullBackOff", "ErrImagePull"):
        view.put_pod(copy("n1", containerStatuses=[{"name": "main", "state": {"waiting": {"reason": reason}}}]))
        (seen,) = view.changes("", 0).workloads
        assert (seen.phase, "cannot be pulled" in seen.reason) == (WorkloadPhase.STARTING, True)
    assert [seconds for seconds, _ in timers.due] == [Limits().pod_start_timeout_s]
    timers.pass_by()
    (seen,) = view.changes("", 0).workloads
    assert (seen.phase, seen.cause) == (WorkloadPhase.FAILED, Cause.WORKLOAD)
    view.put_pod(copy("n1", phase="Running", containerStatuses=[{"name": "main", "state": {"running": {}}}]))
    (seen,) = view.changes("", 0).workloads
    assert seen.phase is WorkloadPhase.RUNNING


def test_what_cannot_be_read_counts_no_more(view: ClusterView, caplog: pytest.LogCaptureFixture) -> None:
    """A node or pod that becomes unreadable counts as gone until it is readable; that is logged once, and counted."""
    view.put_pod(pod("a"))
    cursor = view.changes("", 0).cursor
    for _ in range(2):
        view.broken("node", Broken(name="n1", text="no number"))
        view.broken("pod", Broken(name="a", namespace=pod("a").metadata.namespace, text="no text"))
    reported = view.changes(cursor, 0)
    assert reported.inventory is not None
    assert reported.inventory.nodes == ()
    assert [each.node for each in reported.unmanaged_pods] == [""]
    assert view.collector_state().problems["broken"] == 2
    assert len([each for each in caplog.messages if "cannot be read" in each]) == 2
    view.put_node(node("n1"))
    view.drop_pod(f"{pod('a').metadata.namespace}/a")
    assert view.collector_state().problems["broken"] == 0
    assert len(view.changes("", 0).inventory.nodes) == 1  # type: ignore[union-attr]  # complete


def test_who_requests_while_everything_is_listed_is_reported_when_it_is() -> None:
    """A read waits for the first list while nothing fails: a retry would be later."""
    health = Health(("/nodes", "/pods"))
    view = ClusterView(Cluster("alpha"), health, Timers().later)
    reported: list[int] = []
    requesting = threading.Thread(target=lambda: reported.append(len(view.changes("", WAIT_S).unmanaged_pods)))
    requesting.start()
    asyncio.run(view.replace_nodes([node("n1")]))
    health.succeeded("/nodes")
    asyncio.run(view.replace_pods([pod("a"), pod("b")]))
    assert not reported
    health.succeeded("/pods")
    requesting.join(WAIT_S)
    assert reported == [2]


def test_a_cluster_that_fails_for_too_long_is_not_believed() -> None:
    """Once a source has failed for longer than the patience, only the reason is reported."""
    now_s = [0.0]
    health = Health(["/api/v1/pods"], lambda: now_s[0])
    view = ClusterView(Cluster("alpha"), health, lambda _, __: None, Limits(unreachable_timeout_s=2))
    with pytest.raises(UnavailableError, match="for the first time"):
        view.changes("", 0)
    health.succeeded("/api/v1/pods")
    cursor = view.changes("", 0).cursor
    health.failed("/api/v1/pods", "no route to host")
    now_s[0] = 1.9
    assert view.failing
    view.changes(cursor, 0)
    now_s[0] = 2.0
    with pytest.raises(UnavailableError, match="alpha: no route to host"):
        view.changes(cursor, 0)
    health.succeeded("/api/v1/pods")
    view.changes(cursor, 0)


def test_anyone_waits_is_woken_by_a_change_and_by_the_end(view: ClusterView) -> None:
    """A waiting call returns when something changes, and when the cluster is removed."""
    cursor = view.changes("", 0).cursor
    reported: list[int] = []

    def ask() -> None:
        found = view.changes(cursor, WAIT_S)
        reported.append(len(found.unmanaged_pods))
        reported.append(len(view.changes(found.cursor, WAIT_S).unmanaged_pods))

    requesting = threading.Thread(target=ask)
    requesting.start()
    view.put_pod(pod("a"))
    while not reported:
        time.sleep(0.001)
    view.close()
    requesting.join(WAIT_S)
    assert reported == [1, 0]


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[dict[str, ApiServer]]:
    """Start two servers with a node each."""
    made = {name: ApiServer(name).open() for name in ("alpha", "beta")}
    for name, server in made.items():
        meta = {"name": f"{name}-0", "labels": {"kubernetes.io/hostname": f"{name}-0"}}
        server.put({"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": {"allocatable": {"cpu": "8"}}})
        server.kubeconfig(tmp_path / name)
    yield made
    for server in made.values():
        server.close()


def test_a_cluster_that_hangs_holds_up_no_other(servers: dict[str, ApiServer], tmp_path: Path) -> None:
    """Before a hang of one cluster is noticed, others report every change within a second."""
    backends = KubernetesBackends(
        tmp_path, ClusterOptions(request_timeout_s=8, limits=Limits(unreachable_timeout_s=6)), seed=1
    )
    try:
        clusters = {each.cluster: each for each in backends.clusters()}
        cursors = {name: first(clusters[name].changes) for name in clusters}
        servers["alpha"].faults.hang()
        servers["alpha"].patch(NODES, "", "alpha-0", {"metadata": {"labels": {"at": "0"}}})
        order: list[str] = []
        for at in range(5):
            began_s = time.monotonic()
            servers["beta"].patch(NODES, "", "beta-0", {"metadata": {"labels": {"at": str(at)}}})
            found = clusters["beta"].changes(cursors["beta"], WAIT_S)
            cursors["beta"] = found.cursor
            assert found.inventory is not None
            order.append(f"beta {found.inventory.nodes[0].labels['at']}")
            assert time.monotonic() - began_s < 1
        still = clusters["alpha"].changes(cursors["alpha"], 0)
        assert still.inventory is None
        servers["alpha"].faults.clear()
        then = clusters["alpha"].changes(cursors["alpha"], WAIT_S)
        assert then.inventory is not None
        order.append(f"alpha {then.inventory.nodes[0].labels['at']}")
        assert order == ["beta 0", "beta 1", "beta 2", "beta 3", "beta 4", "alpha 0"]
    finally:
        servers["alpha"].faults.clear()
        backends.close()


def first(changes: Callable[[str, float], Any]) -> str:
    """Wait for the first list; return the cursor behind it."""
    give_up_s = time.monotonic() + WAIT_S
    while True:
        try:
            return str(changes("", 0).cursor)
        except UnavailableError:
            assert time.monotonic() < give_up_s
            time.sleep(0.01)
