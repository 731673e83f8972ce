"""What `script/bench deploy` says of pods is so."""

from __future__ import annotations

from typing import Any

from benchmarks.clusters.landed import Seats, astray, on_nodes, seats_of
from tests.fakes.kubernetes.controllers import hami


def pod(job: str, node: str, *uuids: str) -> dict[str, Any]:
    """Return a pod that HAMi has put on cards."""
    held = hami.write_devices([[(uuid, 8192, 10) for uuid in uuids]])
    meta = {"labels": {"seaway.io/job": job}, "annotations": {hami.ALLOCATED: held}}
    return {"metadata": meta, "spec": {"nodeName": node}}


MEANT: Seats = {"a": [("n1", ("GPU-1", "GPU-2"))], "b": [("n1", ("GPU-3",)), ("n2", ("GPU-4",))]}
WELL = [pod("a", "n1", "GPU-2", "GPU-1"), pod("b", "n2", "GPU-4"), pod("b", "n1", "GPU-3")]


def test_pods_on_their_nodes_and_cards_are_not_astray() -> None:
    """In which order pods and cards are told is all the same; pods of no one's job do not count."""
    assert astray(MEANT, seats_of([*WELL, {"metadata": {}, "spec": {}}])) == 0


def test_each_job_with_a_pod_elsewhere_is_astray() -> None:
    """Another card, another node, a pod that is missing and one too many count, each job once."""
    for wrong in (pod("a", "n1", "GPU-1", "GPU-9"), pod("a", "n2", "GPU-1", "GPU-2"), pod("a", "n1")):
        assert astray(MEANT, seats_of([wrong, *WELL[1:]])) == 1
    assert astray(MEANT, seats_of(WELL[1:])) == 1
    assert astray(MEANT, seats_of([*WELL, WELL[0]])) == 1
    assert astray(MEANT, {}) == 2


def test_where_nobody_says_which_cards_only_nodes_count() -> None:
    """Real clusters without a vGPU layer are asked for nodes."""
    found = seats_of([pod("a", "n1"), pod("b", "n1"), pod("b", "n2")])
    assert astray(on_nodes(MEANT), on_nodes(found)) == 0
    assert astray(on_nodes(MEANT), on_nodes(seats_of([pod("a", "n2"), pod("b", "n1"), pod("b", "n2")]))) == 1
