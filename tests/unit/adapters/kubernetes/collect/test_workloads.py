"""A workload's own status counts when its pods cannot report any more."""

from __future__ import annotations

from typing import Any

import pytest

from seaway.adapters.kubernetes.collect.health import Health
from seaway.adapters.kubernetes.collect.pod_status import PodState
from seaway.adapters.kubernetes.collect.view import ClusterView
from seaway.adapters.kubernetes.collect.workloads import WorkloadObject, read_workload
from seaway.adapters.kubernetes.templates.namespaces import Namespaces
from seaway.domain.cluster import Cluster
from seaway.domain.deployment import Cause, WorkloadPhase
from tests.unit.adapters.kubernetes.collect.test_view import Timers, copy, decoded

JOBS = "/apis/batch/v1/jobs"


def job(**condition: str) -> WorkloadObject:
    """Write the Job of an attempt, with one condition."""
    annotations = {"seaway.io/replicas": "0"}
    meta = {
        "name": "sw",
        "namespace": "seaway",
        "uid": "w",
        "labels": copy().metadata.labels,
        "annotations": annotations,
    }
    status = {"conditions": [{"status": "True", **condition}]}
    return decoded({"metadata": meta, "status": status}, WorkloadObject)


@pytest.mark.parametrize(
    ("condition", "phase", "cause"),
    [
        ({"type": "Complete"}, WorkloadPhase.SUCCEEDED, Cause.WORKLOAD),
        ({"type": "Succeeded"}, WorkloadPhase.SUCCEEDED, Cause.WORKLOAD),
        ({"type": "Completed"}, WorkloadPhase.SUCCEEDED, Cause.WORKLOAD),
        ({"type": "Failed", "reason": "BackoffLimitExceeded"}, WorkloadPhase.FAILED, Cause.INFRASTRUCTURE),
        ({"type": "FailureTarget", "reason": "BackoffLimitExceeded"}, WorkloadPhase.FAILED, Cause.INFRASTRUCTURE),
        ({"type": "Failed", "reason": "DeadlineExceeded"}, WorkloadPhase.FAILED, Cause.WORKLOAD),
    ],
)
def test_a_workload_says_how_it_ended(condition: dict[str, str], phase: WorkloadPhase, cause: Cause) -> None:
    """A Job that lost a pod is not the program's fault; one that exceeded its deadline is."""
    read = read_workload(job(**condition), Namespaces())
    assert read is not None
    assert read.ended is not None
    assert (read.ended.phase, read.ended.cause) == (phase, cause)


def ray(**status: str) -> WorkloadObject:
    """Write the RayJob of an attempt."""
    meta = {"name": "sw", "namespace": "seaway", "labels": copy().metadata.labels}
    return decoded({"metadata": meta, "status": status}, WorkloadObject)


@pytest.mark.parametrize(
    ("status", "phase", "reason"),
    [
        ({"jobStatus": "SUCCEEDED", "jobDeploymentStatus": "Complete"}, WorkloadPhase.SUCCEEDED, ""),
        ({"jobStatus": "SUCCEEDED", "jobDeploymentStatus": "Running"}, WorkloadPhase.SUCCEEDED, ""),
        (
            {"jobStatus": "FAILED", "jobDeploymentStatus": "Failed", "reason": "AppFailed", "message": "exit  code 1"},
            WorkloadPhase.FAILED,
            "its Ray job failed: exit code 1",
        ),
        ({"jobStatus": "STOPPED", "jobDeploymentStatus": "Complete"}, WorkloadPhase.FAILED, "its Ray job was stopped"),
        (
            {"jobStatus": "", "jobDeploymentStatus": "Failed", "reason": "SubmissionFailed", "message": "no answer"},
            WorkloadPhase.FAILED,
            "KubeRay gave up on it: SubmissionFailed: no answer",
        ),
    ],
)
def test_a_rayjob_ends_by_its_status(status: dict[str, str], phase: WorkloadPhase, reason: str) -> None:
    """Ray's status counts, and KubeRay's without one; pods do not matter."""
    read = read_workload(ray(**status), Namespaces())
    assert read is not None
    assert read.ended is not None
    assert (read.ended.phase, read.ended.reason, read.decides) == (phase, reason, True)


def test_a_rayjob_that_kuberay_does_not_take_is_denied_there() -> None:
    """KubeRay creates no pod for it, ever; the error is reported, and another cluster may have another KubeRay."""
    status = {"jobDeploymentStatus": "ValidationFailed", "reason": "ValidationFailed", "message": "bad  spec"}
    read = read_workload(ray(**status), Namespaces())
    assert read is not None
    assert read.ended == PodState(WorkloadPhase.FAILED, "KubeRay rejects it: bad spec", Cause.REJECTED)


@pytest.mark.parametrize(
    ("status", "deployment"),
    [
        ("", ""),
        ("", "Initializing"),
        ("PENDING", "Running"),
        ("RUNNING", "Running"),
        ("RUNNING", "Suspending"),
        ("", "Suspended"),
        ("", "Waiting"),
        ("FAILED", "Running"),
        ("FAILED", "Retrying"),
    ],
)
def test_a_rayjob_goes_on_until_it_is_over(status: str, deployment: str) -> None:
    """A waiting or running job is not finished, nor is a failed one that KubeRay retries, or has not decided about."""
    read = read_workload(ray(jobStatus=status, jobDeploymentStatus=deployment), Namespaces())
    assert read is not None
    assert (read.ended, read.decides) == (None, False)


def volcano(phase: str, message: str = "") -> WorkloadObject:
    """Write the Volcano Job of an attempt."""
    meta = {"name": "sw", "namespace": "seaway", "uid": "w", "labels": copy().metadata.labels}
    past = [{"status": "Pending", "lastTransitionTime": "2026-11-21T09:15:27Z"}]
    state = {"phase": phase, "message": message, "lastTransitionTime": "2026-11-21T09:16:27Z"}
    return decoded({"metadata": meta, "status": {"state": state, "conditions": past}}, WorkloadObject)


@pytest.mark.parametrize(
    ("phase", "message", "ended", "cause", "reason"),
    [
        ("Completed", "all done", WorkloadPhase.SUCCEEDED, Cause.WORKLOAD, ""),
        ("Failed", "too often", WorkloadPhase.FAILED, Cause.WORKLOAD, "Volcano gave up on its job: too often"),
        ("Terminated", "", WorkloadPhase.FAILED, Cause.INFRASTRUCTURE, "Volcano ended its job after a pod disappeared"),
        ("Aborted", "", WorkloadPhase.FAILED, Cause.INFRASTRUCTURE, "its job was aborted in Volcano"),
    ],
)
def test_a_job_of_volcanos_ends_by_its_state(
    phase: str, message: str, ended: WorkloadPhase, cause: Cause, reason: str
) -> None:
    """Volcano's state counts when its pods are gone; an abort or eviction is not the program's fault."""
    read = read_workload(volcano(phase, message), Namespaces())
    assert read is not None
    assert read.ended == PodState(ended, reason, cause)
    assert not read.decides


@pytest.mark.parametrize("phase", ["", "Pending", "Running", "Aborting", "Terminating", "Completing", "Restarting"])
def test_a_job_of_volcanos_goes_on_until_it_has_ended(phase: str) -> None:
    """Its pods still hold resources while it ends."""
    read = read_workload(volcano(phase), Namespaces())
    assert read is not None
    assert read.ended is None


def test_the_state_of_a_raycluster_is_no_end() -> None:
    """There the state is a plain word, which does not make the object unreadable."""
    read = read_workload(ray(state="Failed"), Namespaces())
    assert read is not None
    assert read.ended is None


def test_what_is_suspended_says_so() -> None:
    """Kueue suspends Jobs to keep them from creating pods; a past or false condition has no effect."""
    suspended = [
        job(type="Suspended", reason="JobSuspended", message="Job suspended"),
        ray(jobDeploymentStatus="Suspended"),
        job(type="Suspended", status="False", message="Job resumed"),
        ray(jobDeploymentStatus="Running"),
    ]
    read = [read_workload(each, Namespaces()) for each in suspended]
    assert [each and each.gate for each in read] == [
        "it is suspended there: Job suspended",
        "it is suspended there",
        "",
        "",
    ]


@pytest.mark.parametrize("condition", [{"type": "Complete", "status": "False"}, {"type": "ReplicaFailure"}])
def test_a_workload_that_goes_on_has_not_ended(condition: dict[str, str]) -> None:
    """A false condition has no effect, and pods that cannot be created now may be created later."""
    read = read_workload(job(**condition), Namespaces())
    assert read is not None
    assert read.ended is None


def test_an_end_that_was_missed_is_reported(view: ClusterView) -> None:
    """The Job reports a pod that succeeded and was deleted unnoticed."""
    running: dict[str, Any] = {"phase": "Running", "containerStatuses": [{"name": "main", "state": {"running": {}}}]}
    view.put_workload(JOBS, job(type="Suspended", status="False"))
    view.put_pod(copy(**running))
    first = view.changes("", 0)
    assert [each.phase for each in first.workloads] == [WorkloadPhase.RUNNING]
    view.put_pod(copy(phase="Succeeded"))
    view.drop_pod("seaway/mine")
    view.put_workload(JOBS, job(type="Complete"))
    assert [each.phase for each in view.changes(first.cursor, 0).workloads] == [WorkloadPhase.SUCCEEDED]


def test_a_failure_without_pods_is_reported_after_a_while(timers: Timers, view: ClusterView) -> None:
    """A Job and its pods are observed separately: its failure waits for the better reasons of its pods."""
    view.put_workload(JOBS, job(type="Failed", reason="BackoffLimitExceeded", message="too often"))
    first = view.changes("", 0)
    assert [each.phase for each in first.workloads] == [WorkloadPhase.STARTING]
    timers.pass_by()
    (reported,) = view.changes(first.cursor, 0).workloads
    assert (reported.phase, reported.cause, reported.reason) == (
        WorkloadPhase.FAILED,
        Cause.INFRASTRUCTURE,
        "its pods are gone: too often",
    )
    view.drop_workload(JOBS, "seaway/sw")
    view.put_workload(JOBS, job(type="Suspended", status="False"))
    assert [each.phase for each in view.changes(first.cursor, 0).workloads] == [WorkloadPhase.STARTING]


@pytest.fixture
def timers() -> Timers:
    """Create timers."""
    return Timers()


@pytest.fixture
def view(timers: Timers) -> ClusterView:
    """Create a view of an empty cluster."""
    return ClusterView(Cluster("alpha"), Health(()), timers.later)
