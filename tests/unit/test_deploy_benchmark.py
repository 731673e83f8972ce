"""Check of pods in `script/bench deploy`."""

from __future__ import annotations

from typing import Any

from benchmarks.clusters.landed import Seats, astray, on_nodes, seats_of
from tests.fakes.kubernetes.controllers import hami


def pod(job: str, node: str, *uuids: str) -> dict[str, Any]:
    """Return a pod that HAMi has bound to devices."""
    held = hami.write_devices([[(uuid, 8192, 10) for uuid in uuids]])
    meta = {"labels": {"seaway.io/job": job}, "annotations": {hami.ALLOCATED: held}}
    return {"metadata": meta, "spec": {"nodeName": node}}


EXPECTED: Seats = {"a": [("n1", ("GPU-1", "GPU-2"))], "b": [("n1", ("GPU-3",)), ("n2", ("GPU-4",))]}
CORRECT = [pod("a", "n1", "GPU-2", "GPU-1"), pod("b", "n2", "GPU-4"), pod("b", "n1", "GPU-3")]


def test_pods_on_expected_nodes_and_devices_are_not_misplaced() -> None:
    """The order of pods and devices does not matter; pods of no job do not count."""
    assert astray(EXPECTED, seats_of([*CORRECT, {"metadata": {}, "spec": {}}])) == 0


def test_job_with_misplaced_pod_is_counted_once() -> None:
    """Another device, another node, a missing pod and an extra pod count."""
    for wrong in (pod("a", "n1", "GPU-1", "GPU-9"), pod("a", "n2", "GPU-1", "GPU-2"), pod("a", "n1")):
        assert astray(EXPECTED, seats_of([wrong, *CORRECT[1:]])) == 1
    assert astray(EXPECTED, seats_of(CORRECT[1:])) == 1
    assert astray(EXPECTED, seats_of([*CORRECT, CORRECT[0]])) == 1
    assert astray(EXPECTED, {}) == 2


def test_only_nodes_count_without_device_assignments() -> None:
    """Real clusters without a vGPU layer report nodes only."""
    found = seats_of([pod("a", "n1"), pod("b", "n1"), pod("b", "n2")])
    assert astray(on_nodes(EXPECTED), on_nodes(found)) == 0
    assert astray(on_nodes(EXPECTED), on_nodes(seats_of([pod("a", "n2"), pod("b", "n1"), pod("b", "n2")]))) == 1
