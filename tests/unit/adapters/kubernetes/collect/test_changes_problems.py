"""Problems of objects: logged once, counted while they last."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from seaway.adapters.kubernetes.collect.health import Health
from seaway.adapters.kubernetes.collect.view import ClusterView
from seaway.adapters.kubernetes.collect.workloads import WorkloadObject
from seaway.adapters.kubernetes.objects.decode import Broken
from seaway.domain.cluster import Cluster
from tests.unit.adapters.kubernetes.device_plugins.samples import decoded

JOBS = "/apis/batch/v1/jobs"
JOB = "01k9zj5q8e0ab"
UNREADABLE = Broken(name="w", namespace="seaway", text="no number")


@pytest.fixture
def view() -> ClusterView:
    """Create an empty view."""
    return ClusterView(Cluster("alpha"), Health(()), lambda _, __: None)


def workload(attempt: str = "1", replicas: str = "0-1") -> WorkloadObject:
    """Write a workload of Seaway."""
    labels = {"seaway.io/job": JOB, "seaway.io/attempt": attempt, "app.kubernetes.io/managed-by": "seaway"}
    meta: dict[str, Any] = {"name": "w", "namespace": "seaway", "labels": labels}
    return decoded({"metadata": {**meta, "annotations": {"seaway.io/replicas": replicas}}}, WorkloadObject)


def broken(view: ClusterView) -> int:
    """Return the number of broken objects."""
    return view.collector_state().problems["broken"]


def test_a_workload_that_cannot_be_read_is_reported_once_and_counted(
    view: ClusterView, caplog: pytest.LogCaptureFixture
) -> None:
    """It keeps its last state, as it still exists and must be removed some day; other kinds may share its name."""
    view.put_workload(JOBS, workload())
    for _ in range(2):
        view.broken(JOBS, UNREADABLE)
        view.broken("/api/v1/services", UNREADABLE)
    assert broken(view) == 2
    assert len([each for each in caplog.messages if "cannot be read: no number" in each]) == 2
    assert view.objects_of((JOB, 1)) == {(JOBS, "seaway/w")}
    view.put_workload(JOBS, workload())
    view.drop_workload("/api/v1/services", "seaway/w")
    assert broken(view) == 0


def test_what_cannot_be_read_and_is_gone_counts_no_more(view: ClusterView) -> None:
    """A list shows unnoticed deletions; but an object listed as unreadable still exists."""
    view.put_workload(JOBS, workload())
    view.broken(JOBS, UNREADABLE)
    asyncio.run(view.replace_workloads(JOBS, []))
    assert broken(view) == 1
    assert view.objects_of((JOB, 1))
    asyncio.run(view.replace_workloads(JOBS, []))
    assert broken(view) == 0
    assert not view.objects_of((JOB, 1))
    view.broken("node", Broken(name="n1", text="no number"))
    asyncio.run(view.replace_nodes([]))
    assert broken(view) == 1
    asyncio.run(view.replace_nodes([]))
    assert broken(view) == 0


@pytest.mark.parametrize(
    ("spoilt", "said"),
    [
        (workload(replicas="0-x"), "seaway.io/replicas: '0-x' is not a list of numbers"),
        (workload(replicas="x"), "seaway.io/replicas: "),
        (workload(attempt="first"), "'first' are not a job and attempt"),
    ],
)
def test_broken_marks_are_reported_once_and_counted(
    view: ClusterView, caplog: pytest.LogCaptureFixture, spoilt: WorkloadObject, said: str
) -> None:
    """Without labels a workload has no owner or no replicas: others are not affected, and a warning is logged."""
    for _ in range(2):
        view.put_workload(JOBS, spoilt)
    assert broken(view) == 1
    assert len([each for each in caplog.messages if said in each]) == 1
    view.put_workload(JOBS, workload())
    assert broken(view) == 0
