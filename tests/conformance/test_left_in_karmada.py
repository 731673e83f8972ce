"""Objects of an attempt that remain only in Karmada are reported and removed: on API servers in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from seaway.adapters.kubernetes import karmada
from seaway.adapters.kubernetes.karmada import KarmadaBackends
from seaway.domain.deployment import Workload, WorkloadPhase
from seaway.testing.backends import deploy, removal
from tests.conformance.test_kubernetes_backends import OPTIONS, Under, furnish, wait
from tests.conformance.test_own_templates import answer
from tests.fakes.kubernetes import KarmadaWorld
from tests.fakes.kubernetes.kinds import JOBS, OVERRIDES, PODS, POLICIES

MARKED = "app.kubernetes.io/managed-by=seaway"


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[KarmadaWorld]:
    """Start a control plane with one member; remaining objects are looked up all the time."""
    monkeypatch.setattr(karmada, "LEFTOVER_INTERVAL_S", 0.1)
    with KarmadaWorld(["alpha"]) as world:
        furnish(world.members["alpha"])
        yield world


@pytest.fixture
def under(world: KarmadaWorld, tmp_path: Path) -> Iterator[Under]:
    """Join the cluster."""
    backends = KarmadaBackends(world.kubeconfig(tmp_path / "karmada"), OPTIONS, seed=1)
    yield Under(world.members["alpha"], backends.clusters()[0], backends.close, world.control)
    backends.close()


def policies(world: KarmadaWorld) -> list[str]:
    """Return the names of Seaway's policies."""
    return [
        each["metadata"]["name"]
        for kind in (POLICIES, OVERRIDES)
        for each in world.control.list(kind, "seaway-default", "seaway.io/job")
    ]


def workloads(under: Under, cursor: str = "") -> list[Workload]:
    """Return the reported workloads."""
    return list(under.cluster.changes(cursor, 0).workloads)


def test_policies_without_a_workload_are_reported_and_removed(world: KarmadaWorld, under: Under) -> None:
    """After a user deletes a workload, no member has it: it is reported again as remaining in Karmada, and removed."""
    one = deploy(under.made())
    assert answer(under.cluster, one).done
    wait(lambda: [each.phase for each in workloads(under)] == [WorkloadPhase.RUNNING], "the job running")
    for each in world.control.list(JOBS, "seaway-default", MARKED):
        world.control.delete(JOBS, "seaway-default", each["metadata"]["name"], propagation="Background")
    wait(lambda: not world.members["alpha"].list(PODS, "seaway-default"), "no pods")
    cursor = under.cluster.changes("", 0).cursor
    wait(lambda: under.cluster.changes(cursor, 0).complete, "a complete report")
    wait(lambda: [each.phase for each in workloads(under)] == [WorkloadPhase.GONE], "what is left")
    assert [(each.job_id, each.attempt) for each in workloads(under)] == [(one.job_id, one.attempt)]
    assert policies(world)
    assert answer(under.cluster, removal(one)).done
    wait(lambda: not policies(world) and not workloads(under), "that nothing is left")


def test_what_runs_is_not_reported_as_left(under: Under) -> None:
    """Policies of a running workload exist as long as it does, and are not reported as remaining."""
    one = deploy(under.made())
    assert answer(under.cluster, one).done
    wait(lambda: [each.phase for each in workloads(under)] == [WorkloadPhase.RUNNING], "the job running")
    reported = under.cluster.changes("", 0)
    assert not under.cluster.changes(reported.cursor, 2.0).complete
    assert [each.phase for each in workloads(under)] == [WorkloadPhase.RUNNING]


def test_it_is_found_by_another_process(world: KarmadaWorld, under: Under) -> None:
    """A process that is killed while it writes leaves policies without a workload; another process finds them."""
    labels = {"seaway.io/job": "01k9zj5q8e0ab", "seaway.io/attempt": "3", "app.kubernetes.io/managed-by": "seaway"}
    world.control.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "seaway"}})
    meta = {"name": "sw", "namespace": "seaway", "labels": labels, "annotations": {"seaway.io/cluster": "alpha"}}
    body = {"apiVersion": POLICIES.api_version, "kind": POLICIES.kind, "metadata": meta}
    selected = [{"apiVersion": "batch/v1", "kind": "Job", "name": "sw"}]
    world.control.put({**body, "spec": {"resourceSelectors": selected}})
    under.made()
    left = Workload("01k9zj5q8e0ab", 3, "alpha", WorkloadPhase.GONE)
    wait(lambda: workloads(under) == [left], "what is left")
