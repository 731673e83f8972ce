"""Jobs of clusters that do not report, that reject them, or that end their pods: next placements and reasons.

The control plane runs with all its threads on API servers in memory, directly and through Karmada.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from seaway.application.changes import Change
from seaway.application.views import Amount
from seaway.domain.deployment import service_name
from seaway.domain.job import ResourceRequest
from seaway.domain.job_spec import Standby
from seaway.domain.job_state import JobState
from seaway.domain.queues import Order, Preemption, Queue
from tests.conformance.test_kubernetes_backends import gpu_node
from tests.fakes.kubernetes.kinds import JOBS, NODES, PODS, SERVICES
from tests.integration.test_cluster_faults import CONTROL, World, received, world

pytestmark = pytest.mark.slow

SLACK_S = 0.6
"""Maximum age of the last observation at an outage."""

SOON_S = 5.0
"""Time limit of an immediate action on a busy machine."""


@pytest.fixture(params=[False, True], ids=["directly", "through-karmada"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """Create a control plane with three clusters."""
    with world(tmp_path, karmada=request.param) as it:
        yield it


def running(made: World, job_id: str, attempt: int = 1) -> Callable[[], bool]:
    """Report whether a job runs as that attempt."""
    return lambda: (made.job(job_id).state, made.job(job_id).attempt) == (JobState.RUNNING, attempt)


def test_lost_cluster_jobs_move_and_old_workloads_are_removed(made: World) -> None:
    """Jobs move only after the grace period; old workloads are removed when their cluster reports again."""
    job_id = made.submit(template="deployment")
    made.wait(running(made, job_id), "the job")
    first = made.place(job_id)
    last_seen_s = time.monotonic()
    made.partition(first)
    made.wait(lambda: received(made) == len(made.members) - 1, "that the cluster is aged")
    assert running(made, job_id)()
    made.wait(running(made, job_id, 2), "the job elsewhere")
    assert made.place(job_id) != first
    assert made.seen.began_s[job_id, 2] - last_seen_s >= CONTROL.grace_period_s - SLACK_S
    assert "silent" in made.reasons(job_id) or "not answer" in made.reasons(job_id)
    made.recover()
    back_s = time.monotonic()
    made.wait(lambda: made.left() == {(job_id, 2)}, "that the old copy is removed")
    assert time.monotonic() - back_s < SOON_S
    made.wait(lambda: received(made) == len(made.members), "the cluster again")
    assert made.seen.ended_s[job_id, 1] - back_s < SOON_S
    assert running(made, job_id, 2)()
    assert len(made.pods(job_id)) == 1


def test_jobs_stay_during_a_short_cluster_outage(made: World) -> None:
    """Before the grace period ends nothing moves, and jobs have their single workload."""
    job_id = made.submit(template="deployment")
    made.wait(running(made, job_id), "the job")
    made.partition(made.place(job_id))
    made.wait(lambda: received(made) == len(made.members) - 1, "that the cluster is aged")
    made.recover()
    made.wait(lambda: received(made) == len(made.members), "the cluster again")
    time.sleep(CONTROL.grace_period_s)
    assert running(made, job_id)()
    assert made.seen.began_s.keys() == {(job_id, 1)}


def test_job_that_ended_during_an_outage_is_completed(made: World) -> None:
    """A job that succeeded during a short outage is not started again."""
    job_id = made.submit()
    made.wait(running(made, job_id), "the job")
    made.partition(made.place(job_id))
    made.wait(lambda: received(made) == len(made.members) - 1, "that the cluster is aged")
    made.finish(job_id)
    made.recover()
    made.wait(lambda: made.state(job_id) is JobState.COMPLETED, "its end")
    assert made.job(job_id).attempt == 1


def test_job_rejected_by_cluster_scheduler_moves(made: World) -> None:
    """If HAMi's scheduler finds no room, the job moves to another cluster, with HAMi's reason."""
    alpha, beta = made.members["alpha"], made.members["beta"]
    fill(made, "beta")
    made.wait(lambda: free_mib(made, "beta") < 20_000, "that one cluster is seen to be full")
    blind = [
        server.faults.hang(path)
        for server, path in [
            (alpha, "/api/v1/pods"),
            *((each, "*/clusters/alpha/proxy/api/v1/pods") for each in made.writes_to),
        ]
    ]
    fill(made, "alpha")
    job_id = made.submit(clusters=("alpha", "beta"))
    made.wait(lambda: made.pods(job_id), "its pod")
    assert made.place(job_id) == "alpha"
    for each in beta.list(PODS, "default"):
        beta.delete(PODS, "default", each["metadata"]["name"])
    for server in {alpha, *made.writes_to}:
        for fault in blind:
            server.faults.end(fault)
    made.wait(running(made, job_id, made.job(job_id).attempt + 1), "the job elsewhere")
    assert made.place(job_id) == "beta"
    assert "no node accepts it" in made.reasons(job_id)
    assert "alpha" in made.reasons(job_id)


def test_node_at_its_pod_limit_is_not_tried(made: World) -> None:
    """Unmanaged pods and Seaway's own count; the job waits with a reason until one has ended."""
    alpha = made.members["alpha"]
    for at in range(2):
        node = gpu_node(f"alpha-{at}", 2)
        node["status"]["allocatable"]["pods"] = "2"
        alpha.put(node)
        plain = {"nodeName": f"alpha-{at}", "containers": [{"name": "main", "image": "agent"}]}
        alpha.create({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": f"agent-{at}"}, "spec": plain})
    taken = [Amount(2, 1)] * 2
    made.wait(lambda: [each.pods for each in made.plane.overview.nodes("alpha")] == taken, "that the nodes are seen")
    gang = made.submit(replicas=2, gang=True, clusters=("alpha",))
    made.wait(running(made, gang), "the gang")
    assert {each.node for each in made.store.attempts(gang)[-1].placements} == {"alpha-0", "alpha-1"}
    job_id = made.submit(clusters=("alpha",))
    made.wait(
        lambda: "2 nodes have no room for another pod" in made.plane.overview.reason(made.job(job_id)).message, "why"
    )
    alpha.delete(PODS, "default", "agent-1")
    made.wait(running(made, job_id), "the job")
    assert made.store.attempts(job_id)[-1].placements[0].node == "alpha-1"


@pytest.mark.parametrize(
    ("image", "state", "words"),
    [
        ("fail/it", JobState.FAILED, "container main exited with 1"),
        ("oom/it", JobState.FAILED, "container main ran out of memory and was killed"),
    ],
)
def test_job_reports_the_exit_of_its_container(made: World, image: str, state: JobState, words: str) -> None:
    """A crash has its exit code, and an out-of-memory kill its own reason."""
    job_id = made.submit(image)
    made.wait(lambda: made.state(job_id) is state, "its end")
    assert made.job(job_id).reason == words


def test_job_reports_an_image_pull_failure(made: World) -> None:
    """The job reports the reason while it waits for the image."""
    job_id = made.submit("missing/it")
    made.wait(lambda: made.state(job_id) is JobState.DEPLOYING, "that it is deployed")
    ((server, pod),) = made.pods(job_id)
    waiting = {"reason": "ErrImagePull", "message": "missing/it: not found"}  # kubelets retry, and report it
    change = {"status": {"containerStatuses": [{"name": "main", "state": {"waiting": waiting}}]}}
    server.patch(PODS, "seaway-default", pod["metadata"]["name"], change, "status")
    words = "the image of container main cannot be pulled: missing/it: not found"
    made.wait(lambda: made.job(job_id).reason == words, "the reason")
    assert made.state(job_id) is JobState.DEPLOYING


def test_invalid_image_name_fails_the_job(made: World) -> None:
    """The job has the reason; its pod and devices are freed."""
    job_id = made.submit("missing/it")
    made.wait(lambda: made.pods(job_id), "its pod")
    ((server, pod),) = made.pods(job_id)
    waiting = {"reason": "InvalidImageName", "message": "couldn't parse image name"}
    change = {"status": {"containerStatuses": [{"name": "main", "state": {"waiting": waiting}}]}}
    server.patch(PODS, "seaway-default", pod["metadata"]["name"], change, "status")
    made.wait(lambda: made.state(job_id) is JobState.FAILED, "its end")
    assert "cannot be pulled: couldn't parse image name" in made.job(job_id).reason
    made.wait(lambda: not made.left(), "that nothing of it is left")


@pytest.mark.parametrize("template", ["job", "deployment"])
def test_denied_pods_are_placed_on_another_cluster(made: World, template: str) -> None:
    """A quota that denies pods is the job's reason for another attempt."""
    quota = "exceeded quota: team, requested: pods=1, used: pods=4, limited: pods=4"
    ends = [server.deny(PODS, quota) for server in made.members.values()]
    job_id = made.submit(template=template)
    made.wait(lambda: made.job(job_id).attempt > 1, "the next attempt")
    assert f"{first_place(made, job_id)} refused it: its pods cannot be created: {quota}" in made.reasons(job_id)
    for end in ends:
        end()
    made.wait(lambda: made.state(job_id) is JobState.RUNNING, "the job")
    made.wait(lambda: made.left() == {(job_id, made.job(job_id).attempt)}, "that nothing else is left")


def test_denied_object_is_placed_on_another_cluster(made: World) -> None:
    """A webhook that denies a Job is the reason, with and without Karmada."""
    ends = [server.deny(JOBS, "no jobs on Sundays", webhook="rest.example") for server in made.members.values()]
    job_id = made.submit()
    made.wait(lambda: made.job(job_id).attempt > 1, "the next attempt")
    assert f"{first_place(made, job_id)} refused it: " in made.reasons(job_id)
    assert 'admission webhook "rest.example" denied the request: no jobs on Sundays' in made.reasons(job_id)
    for end in ends:
        end()
    made.wait(lambda: made.state(job_id) is JobState.RUNNING, "the job")
    made.wait(lambda: made.left() == {(job_id, made.job(job_id).attempt)}, "that nothing else is left")


def test_temporary_denial_is_retried(made: World) -> None:
    """A webhook that does not answer is the reason; after its recovery the job runs without another attempt."""
    ends = [server.deny(PODS, "context deadline exceeded", code=500) for server in made.members.values()]
    job_id = made.submit()
    made.wait(lambda: "context deadline exceeded" in made.job(job_id).reason, "the reason")
    time.sleep(1.0)  # longer than a rejection would take
    for end in ends:
        end()
    made.wait(running(made, job_id), "the job")


def first_place(made: World, job_id: str) -> str:
    """Return the cluster of a job's first attempt."""
    return made.store.attempts(job_id)[0].placements[0].cluster


def test_eviction_is_no_failure_of_the_job(made: World) -> None:
    """An evicted pod starts again as another attempt, though the job has no retries."""
    job_id = made.submit()
    made.wait(running(made, job_id), "the job")
    ((server, pod),) = made.pods(job_id)
    status: dict[str, Any] = {
        "phase": "Failed",
        "reason": "Evicted",
        "message": "The node was low on resource: memory.",
    }
    server.patch(PODS, "seaway-default", pod["metadata"]["name"], {"status": status}, "status")
    made.wait(running(made, job_id, 2), "the next attempt")
    assert "evicted: The node was low on resource: memory." in made.reasons(job_id)


def test_jobs_of_a_failed_node_move(made: World) -> None:
    """The jobs run on another node, and their old pods do not count as second workloads."""
    job_id = made.submit()
    made.wait(running(made, job_id), "the job")
    ((server, pod),) = made.pods(job_id)
    made.failed.append((server, pod["spec"]["nodeName"]))
    server.fail_node(pod["spec"]["nodeName"])
    made.wait(running(made, job_id, 2), "the next attempt")
    made.recover()
    made.wait(lambda: made.left() == {(job_id, 2)}, "that the old copy is removed")
    assert len(made.pods(job_id)) == 1


@pytest.mark.parametrize("template", ["job", "deployment"])
def test_an_elastic_job_runs_on_without_a_failed_node(made: World, template: str) -> None:
    """The pods on other nodes stay the same, and it grows again when the node reports."""
    made.plane.writer.commit([Change(put=[Queue("default", grow_cooldown_s=0)])])
    whole = ResourceRequest(500, 256, 1, 0, 0, 1000)
    job_id = made.submit(
        template=template,
        restarts=template != "job",
        request=whole,
        clusters=("alpha",),
        replicas=4,
        min_replicas=1,
        max_replicas=4,
    )
    made.wait(lambda: len(made.pods(job_id)) == 4 and running(made, job_id)(), "all replicas")
    nodes = {each.replica: each.node for each in made.store.attempts(job_id)[-1].placements}
    failed = next(node for node in nodes.values() if node != nodes[0])
    others = {pod["metadata"]["uid"] for _, pod in made.pods(job_id) if pod["spec"]["nodeName"] != failed}
    made.failed.append((made.members["alpha"], failed))
    made.members["alpha"].fail_node(failed)
    made.wait(lambda: f" to {len(others)} replicas" in made.reasons(job_id), "the resize")  # at once, or pod by pod
    assert running(made, job_id)()
    made.recover()
    made.wait(lambda: len(made.pods(job_id)) == 4, "all replicas again")
    assert others <= {pod["metadata"]["uid"] for _, pod in made.pods(job_id)}
    assert made.job(job_id).attempt == 1


def fill(made: World, cluster: str) -> None:
    """Create pods that use most of every device of a cluster."""
    server = made.members[cluster]
    for node in server.list(NODES):
        for _ in range(2):
            made.occupy(server, node["metadata"]["name"])
    server.settle()


def free_mib(made: World, cluster: str) -> int:
    """Return the free memory of the device of a cluster with most of it, as Seaway observes it."""
    found = [device for node in made.plane.overview.nodes(cluster) for device in node.devices]
    return max(device.memory_mib.total - device.memory_mib.used for device in found)


def test_winner_starts_only_after_its_victims_pods_are_gone(made: World) -> None:
    """No device is used twice, and the winner's pod begins when the victims' pods have ended their grace period."""
    queue = Queue("default", preemption=Preemption.PREEMPT_LOWER_PRIORITY, order=Order.PRIORITY)
    made.plane.writer.commit([Change(put=[queue])])
    alpha = made.members["alpha"]
    alpha.pace.stop_s = 1.5
    whole = ResourceRequest(500, 256, 1, 0, 0, 1000)
    low = [made.submit(request=whole, clusters=("alpha",)) for _ in range(4)]
    for each in low:
        made.wait(running(made, each), "the cluster being full")
    high = made.submit(request=replace(whole, gpus=2), clusters=("alpha",), priority=5)
    made.wait(running(made, high), "the winner")
    victims = [each for each in low if made.job(each).state is not JobState.RUNNING]
    assert len(victims) == 2
    for each in victims:
        assert f"preempted by job {made.job(high).spec.name}" in made.reasons(each)
        assert made.seen.began_s[high, 1] >= made.seen.ended_s[each, 1]
    assert made.seen.overbooked == []
    assert len(made.pods(high)) == 1


def test_a_standby_takes_over_within_a_cycle_of_the_loss_and_the_old_copy_is_removed(made: World) -> None:
    """The standby runs on and is active; the next one gets a third cluster; what returns is removed."""
    job_id = made.submit(template="deployment", restarts=True, ports=(8080,), standby=Standby())
    made.wait(lambda: made.job(job_id).other, "that there is a standby")
    second = made.job(job_id).other
    made.wait(lambda: made.state(second) is JobState.RUNNING, "that the standby runs")
    first, place = made.place(job_id), made.place(second)
    assert first != place
    made.partition(first)
    made.wait(lambda: not made.job(second).is_standby, "the switch")
    assert (made.job(second).spec.name, made.job(second).attempt) == ("work", 1)
    assert f"{place} is active instead of {first}" in made.reasons(second)
    made.wait(lambda: made.state(job_id) is JobState.RUNNING, "the next standby")
    assert made.place(job_id) not in (first, place)
    names = {each["metadata"]["name"] for each in made.members[place].list(SERVICES, "", "seaway.io/job")}
    assert any(name.startswith(service_name(job_id)) for name in names)  # both copies have the name of the first
    made.recover()
    made.wait(lambda: made.left() == {(job_id, 2), (second, 1)}, "that the old copy is removed")
    assert not made.job(second).is_standby
