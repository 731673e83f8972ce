"""Events of workloads: denied pods, and clusters without access to events."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from seaway.adapters.kubernetes.backends import KubernetesBackends
from seaway.adapters.kubernetes.collect.attempts import NO_POD_YET
from seaway.adapters.kubernetes.collect.informers import EventObject, EventSink
from seaway.adapters.kubernetes.collect.view import ClusterView
from seaway.adapters.kubernetes.collect.workloads import WorkloadObject
from seaway.domain.deployment import WorkloadPhase
from tests.conformance.test_kubernetes_backends import OPTIONS, Under, furnish, wait
from tests.fakes.kubernetes import ApiServer
from tests.unit.adapters.kubernetes.collect.test_view import JOB, Timers, decoded, timers, view

__all__ = ["timers", "view"]  # fixtures

JOBS = "/apis/batch/v1/jobs"
NAME = f"sw-{JOB}-1-abcdefgh"
QUOTA = 'Error creating: pods "x" is forbidden: exceeded quota: team'


def event(name: str = "e", reason: str = "FailedCreate", about: str = NAME, text: str = QUOTA) -> EventObject:
    """Write an event."""
    body: dict[str, Any] = {"metadata": {"name": name, "namespace": "seaway"}, "involvedObject": {"name": about}}
    return decoded({**body, "reason": reason, "message": text}, EventObject)


def workload() -> WorkloadObject:
    """Write a Job of an attempt without pods."""
    labels = {"seaway.io/job": JOB, "seaway.io/attempt": "1", "app.kubernetes.io/managed-by": "seaway"}
    meta = {"name": NAME, "namespace": "seaway", "uid": "u", "labels": labels}
    return decoded({"metadata": {**meta, "annotations": {"seaway.io/replicas": "0"}}}, WorkloadObject)


def said(view: ClusterView) -> list[tuple[WorkloadPhase, str]]:
    """Return phases and reasons of the workloads."""
    return [(copy.phase, copy.reason) for copy in view.changes("", 0).workloads]


def test_pods_that_were_denied_are_the_reason_of_their_copy(view: ClusterView, timers: Timers) -> None:
    """A denial is reported immediately, and as a failure when it lasts; it ends with its event."""
    denied = EventSink(view)
    view.put_workload(JOBS, workload())
    denied.put(event())
    assert said(view) == [(WorkloadPhase.STARTING, "its pods cannot be created: exceeded quota: team")]
    timers.pass_by()
    assert said(view) == [(WorkloadPhase.FAILED, "its pods cannot be created: exceeded quota: team")]
    denied.drop(event())
    assert said(view) == [(WorkloadPhase.STARTING, NO_POD_YET)]


def test_an_event_that_is_observed_before_its_workload_counts(view: ClusterView) -> None:
    """Events and workloads are independent; an event that is missing in a later list is dropped."""
    denied = EventSink(view)
    asyncio.run(denied.replace([event("a"), event("b")]))
    assert said(view) == []
    view.put_workload(JOBS, workload())
    assert said(view)[0][1]
    asyncio.run(denied.replace([event("b")]))
    assert said(view)[0][1]
    asyncio.run(denied.replace([]))
    assert said(view) == [(WorkloadPhase.STARTING, "")]


@pytest.mark.parametrize(
    "other",
    [
        event(reason="BackoffLimitExceeded"),
        event(reason="SuccessfulCreate"),
        event(about="other-job"),
        event(about=f"sw-{JOB}-2-abcdefgh"),
    ],
    ids=["another reason", "no warning", "of another user", "of another attempt"],
)
def test_other_events_say_nothing(view: ClusterView, other: EventObject) -> None:
    """Only events about a pod of this attempt that was not created count."""
    view.put_workload(JOBS, workload())
    EventSink(view).put(other)
    assert said(view) == [(WorkloadPhase.STARTING, "")]


@pytest.mark.parametrize("reason", ["FailedCreate", "FailedCreatePod", "FailedToCreateHeadPod"])
def test_controllers_have_words_of_their_own(view: ClusterView, reason: str) -> None:
    """Kubernetes', Kubeflow's and KubeRay's reasons are known."""
    view.put_workload(JOBS, workload())
    EventSink(view).put(event(reason=reason))
    assert said(view)[0][1]


def test_a_view_does_without_events_that_it_may_not_see(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Without the right to read events everything else works; the missing right is logged once."""
    with ApiServer("alpha") as server:
        furnish(server)
        fault = server.faults.error(403, "*/events*")
        server.kubeconfig(tmp_path / "alpha")
        with caplog.at_level(logging.WARNING):
            backends = KubernetesBackends(tmp_path, OPTIONS, seed=1)
            under = Under(server, backends.clusters()[0], backends.close, server)
            wait(under.received, "the first list")
            wait(lambda: fault.hits > 2, "that it is tried again")
        assert under.received()
        backends.close()
    assert caplog.text.count("events of workloads cannot be followed") == 1
