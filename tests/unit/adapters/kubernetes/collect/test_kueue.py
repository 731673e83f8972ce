"""Kueue's reasons against a Job are reported, and infeasible Jobs fail after a timeout."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec import structs

from seaway.adapters.kubernetes.collect.attempts import Gate
from seaway.adapters.kubernetes.collect.kueue import GROUP, KueueSink, KueueWorkload, follow_kueue, read_gate
from seaway.adapters.kubernetes.collect.view import ClusterView
from seaway.adapters.kubernetes.collect.workloads import WorkloadObject
from seaway.adapters.kubernetes.connection.api import Api
from seaway.adapters.kubernetes.connection.backoff import Backoff
from seaway.adapters.kubernetes.connection.credentials import Credentials
from seaway.adapters.kubernetes.connection.responses import ApiError
from seaway.domain.deployment import Cause, WorkloadPhase
from tests.unit.adapters.kubernetes.collect.test_informers_events import JOBS, NAME, said
from tests.unit.adapters.kubernetes.collect.test_view import JOB, Timers, copy, decoded, timers, view

__all__ = ["timers", "view"]  # fixtures

QUOTA = "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor default"
LET_IN = "Kueue does not admit it"
SUSPENDED = "it is suspended there: Job suspended"


def quota(reason: str, message: str, status: str = "False") -> dict[str, str]:
    """Write Kueue's condition for quota."""
    return {"type": "QuotaReserved", "status": status, "reason": reason, "message": message}


def queued(*conditions: dict[str, str], name: str = "job-sw", owner: str = NAME, **more: Any) -> KueueWorkload:  # noqa: ANN401
    """Write the Workload of a Job."""
    owners = [{"kind": "Job", "name": owner, "uid": "u", "controller": True}]
    meta = {"name": name, "namespace": "seaway", "ownerReferences": owners}
    spec = {"queueName": "gpu", "active": more.pop("active", True)}
    return decoded({"metadata": meta, "spec": spec, "status": {"conditions": list(conditions), **more}}, KueueWorkload)


def suspended() -> WorkloadObject:
    """Write the Job of an attempt that Kueue has not admitted."""
    labels = {"seaway.io/job": JOB, "seaway.io/attempt": "1", "app.kubernetes.io/managed-by": "seaway"}
    meta = {"name": NAME, "namespace": "seaway", "uid": "u", "labels": labels}
    condition = {"type": "Suspended", "status": "True", "message": "Job suspended"}
    marked = {**meta, "annotations": {"seaway.io/replicas": "0"}}
    return decoded({"metadata": marked, "status": {"conditions": [condition]}}, WorkloadObject)


@pytest.mark.parametrize(
    ("reason", "infeasible"),
    [
        ("Pending", False),
        ("Inadmissible", True),
        ("Waiting", False),
        ("WaitingForQuota", False),
        ("WaitingForPreemptedWorkloads", False),
        ("TopologyPlacementFailed", False),
        ("AdmissionGated", False),
        ("NoMatchingFlavor", True),
        ("ExceedsMaxQuota", True),
        ("Misconfigured", True),
        ("Suspended", True),
    ],
)
def test_why_there_is_no_quota(reason: str, infeasible: bool) -> None:
    """Kueue's reason is reported; infeasible is what no end of other jobs changes. The first three are old reasons."""
    assert read_gate(queued(quota(reason, "no  quota"))) == Gate(f"{LET_IN}: no quota", infeasible)


def evicted(reason: str = "Preempted", message: str = "") -> dict[str, str]:
    """Write an eviction by Kueue."""
    return {"type": "Evicted", "status": "True", "reason": reason, "message": message}


def test_what_was_deactivated_is_never_let_in() -> None:
    """Its eviction states the reason, if it was admitted before."""
    gone = f"{LET_IN}: its Workload was deactivated"
    assert read_gate(queued(active=False)) == Gate(gone, is_permanent=True)
    why = evicted("Deactivated", "requeued too often")
    assert read_gate(queued(why, active=False)) == Gate(gone, True, "Kueue evicted it: requeued too often")


def test_checks_are_waited_for() -> None:
    """With quota, a Workload may still wait for admission checks, such as node provisioning."""
    checks = [{"name": "a", "state": "Ready"}, {"name": "nodes", "state": "Pending", "message": "nodes are made"}]
    reserved = quota("QuotaReserved", "", "True")
    said = Gate(f"{LET_IN}: the admission check nodes is Pending: nodes are made")
    assert read_gate(queued(reserved, admissionChecks=checks)) == said
    assert read_gate(queued(reserved)) is None


@pytest.mark.parametrize(
    "conditions",
    [
        (),
        (quota("PendingEvaluation", "not looked at"),),
        (quota("Pending", "no quota"), {"type": "Finished", "status": "True"}),
        (quota("QuotaReserved", "", "True"), {"type": "Admitted", "status": "True"}),
    ],
    ids=["new", "not looked at", "finished", "let in"],
)
def test_others_are_not_deferred(conditions: tuple[dict[str, str], ...]) -> None:
    """An admitted, finished or new Workload has no reason."""
    assert read_gate(queued(*conditions)) is None


def test_what_is_taken_out_again_says_so() -> None:
    """The eviction is reported while it still counts as admitted, then while it waits again."""
    taken = "Kueue evicted it: for a more important one"
    out, still = evicted(message="for a more important one"), {"type": "Admitted", "status": "True"}
    assert read_gate(queued(out, still, quota("QuotaReserved", "", "True"))) == Gate(taken, evicted=taken)
    assert read_gate(queued(out, quota("PendingEvaluation", "for more"))) == Gate(taken, evicted=taken)
    assert read_gate(queued(out, quota("Pending", "no quota"))) == Gate(f"{LET_IN}: no quota", evicted=taken)
    assert read_gate(queued(evicted())) == Gate("Kueue evicted it: Preempted", evicted="Kueue evicted it: Preempted")
    assert read_gate(queued({**out, "status": "False"}, still)) is None


def test_pods_that_end_as_they_were_taken_out_say_that(view: ClusterView) -> None:
    """Containers that SIGTERM ended have no reason of their own; those that failed by themselves have."""
    kueue = KueueSink(view)
    kueue.put(queued(evicted()))
    killed = {"exitCode": 143, "reason": "Error"}
    crashed = copy("n1", phase="Failed", containerStatuses=[{"name": "main", "state": {"terminated": killed}}])
    view.put_pod(crashed)
    assert said(view) == [(WorkloadPhase.FAILED, "container main was ended by SIGTERM")]
    leaves = structs.replace(crashed.metadata, deletion_timestamp="2026-11-21T09:15:27Z")
    view.put_pod(structs.replace(crashed, metadata=leaves))
    assert said(view) == [(WorkloadPhase.FAILED, "Kueue evicted it: Preempted")]


def test_a_waiting_user_for_quota_waits_and_says_so(view: ClusterView, timers: Timers) -> None:
    """A wait for quota has no timeout; after admission nothing is reported."""
    kueue = KueueSink(view)
    view.put_workload(JOBS, suspended())
    kueue.put(queued(quota("Pending", QUOTA)))
    assert said(view) == [(WorkloadPhase.STARTING, f"{LET_IN}: {QUOTA}")]
    timers.pass_by()
    assert said(view) == [(WorkloadPhase.STARTING, f"{LET_IN}: {QUOTA}")]
    kueue.put(queued(quota("QuotaReserved", "", "True"), {"type": "Admitted", "status": "True"}))
    assert said(view) == [(WorkloadPhase.STARTING, SUSPENDED)]


def test_what_is_infeasible_is_refused_after_a_while(view: ClusterView, timers: Timers) -> None:
    """Devices are reserved for it, so it fails; a fix in time, or a pod, prevents that."""
    kueue = KueueSink(view)
    view.put_workload(JOBS, suspended())
    missing = queued(quota("Inadmissible", "LocalQueue gpu doesn't exist"))
    kueue.put(missing)
    timers.pass_by()
    (reported,) = view.changes("", 0).workloads
    assert (reported.phase, reported.cause) == (WorkloadPhase.FAILED, Cause.REJECTED)
    assert reported.reason == f"{LET_IN}: LocalQueue gpu doesn't exist"
    kueue.put(queued(quota("Pending", QUOTA)))
    assert said(view) == [(WorkloadPhase.STARTING, f"{LET_IN}: {QUOTA}")]
    kueue.put(missing)
    assert said(view) == [(WorkloadPhase.STARTING, f"{LET_IN}: LocalQueue gpu doesn't exist")], "it starts over"
    view.put_pod(copy("n1"))
    timers.pass_by()
    assert said(view) == [(WorkloadPhase.STARTING, "")]


def test_figures_are_not_reported_again(view: ClusterView) -> None:
    """The missing amount changes with every other job, so it is not reported again."""
    kueue = KueueSink(view)
    view.put_workload(JOBS, suspended())
    kueue.put(queued(quota("Pending", f"{QUOTA}, 8 more needed")))
    before = view.changes("", 0)
    kueue.put(queued(quota("Pending", f"{QUOTA}, 12Gi more needed")))
    assert not view.changes(before.cursor, 0).workloads
    kueue.put(queued(quota("Pending", "something else")))
    assert [each.reason for each in view.changes(before.cursor, 0).workloads] == [f"{LET_IN}: something else"]


def test_a_workload_that_is_gone_says_nothing(view: ClusterView) -> None:
    """A deleted Workload has no effect, by event or by list; those of unmanaged Jobs are ignored."""
    kueue = KueueSink(view)
    view.put_workload(JOBS, suspended())
    waits = quota("Pending", QUOTA)
    asyncio.run(kueue.replace([queued(waits, name="a"), queued(waits, name="b"), queued(waits, owner="else")]))
    kueue.drop(queued(name="a"))
    assert said(view)[0][1]
    asyncio.run(kueue.replace([]))
    assert said(view) == [(WorkloadPhase.STARTING, "")]


async def nothing(for_s: float) -> AsyncIterator[bytes]:
    """Send nothing, then end."""
    await asyncio.sleep(for_s)
    for line in list[bytes]():
        yield line


class Upgraded(Api):
    """A server with a Workload of Kueue, which is upgraded to another version once it is watched."""

    def __init__(self) -> None:
        super().__init__("alpha", Credentials(Path("none"), "alpha"))
        self.version = "v1beta1"

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> bytes:
        """Return the versions, the objects of one, and Kueue's reasons."""
        if path == f"/apis/{GROUP}":
            return json.dumps({"preferredVersion": {"groupVersion": f"{GROUP}/{self.version}"}}).encode()
        self._served(path)
        if path == f"/apis/{GROUP}/{self.version}":
            return json.dumps({"resources": [{"name": "workloads", "kind": "Workload", "namespaced": True}]}).encode()
        owners = [{"kind": "Job", "name": NAME, "uid": "u", "controller": True}]
        item = {
            "metadata": {"name": "job-sw", "namespace": "seaway", "ownerReferences": owners},
            "status": {"conditions": [quota("Pending", f"by {self.version}")]},
        }
        return json.dumps({"metadata": {"resourceVersion": "1"}, "items": [item]}).encode()

    @asynccontextmanager
    async def stream(
        self, path: str, params: Mapping[str, str], idle_timeout_s: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Upgrade; then send nothing."""
        self.version = "v1beta2"
        self._served(path)
        yield nothing(idle_timeout_s)

    def _served(self, path: str) -> None:
        if f"/{self.version}" not in path:
            raise ApiError(404, "NotFound", "the server could not find the requested resource")


def test_a_kueue_that_is_upgraded_is_looked_for_again(view: ClusterView) -> None:
    """A version that is no longer served is no longer watched; the new one is."""
    view.put_workload(JOBS, suspended())

    async def follow() -> None:
        following = asyncio.create_task(follow_kueue(Upgraded(), view, lambda: Backoff(Random(1), 0.01, 0.01)))
        async with asyncio.timeout(10):
            while said(view)[0][1] != f"{LET_IN}: by v1beta2":
                await asyncio.sleep(0.01)
        following.cancel()

    asyncio.run(follow())
