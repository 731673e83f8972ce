"""The stored summary of a pod."""

from __future__ import annotations

import pytest

from seaway.adapters.kubernetes.collect.pods import PodSummary, summarise_pod
from seaway.adapters.kubernetes.device_plugins.views import Held, PodView
from seaway.adapters.kubernetes.objects.core import Container, ContainerPort, Meta, PodObject, PodSpec
from seaway.adapters.kubernetes.templates.names import ATTEMPT, JOB, MANAGED_BY, MANAGER
from seaway.adapters.kubernetes.templates.namespaces import Namespaces
from seaway.domain import job_spec as ids

OURS = {MANAGED_BY: MANAGER, JOB: ids.encode(1), ATTEMPT: "1"}
HELD = (Held(1, "GPU-1", 1024, 100), Held(2, "GPU-2", 1024, 100), Held(-1, "GPU-3", 1024, 100), Held(0, "", 0, 0))


@pytest.mark.parametrize(
    ("labels", "annotations", "index"),
    [
        ({}, {}, -1),
        ({}, {"batch.kubernetes.io/job-completion-index": "2"}, 2),
        ({"training.kubeflow.org/replica-index": "2"}, {}, 2),
        ({}, {"volcano.sh/task-index": "2"}, 2),
    ],
)
def test_controllers_number_their_pods(labels: dict[str, str], annotations: dict[str, str], index: int) -> None:
    """So the others keep their replicas after one pod was deleted."""
    meta = Meta(name="p", namespace="n", uid="u", labels={**OURS, **labels}, annotations=annotations)
    assert summarise_pod(PodObject(metadata=meta), PodView("node-1", alive=True), Namespaces("n")).index == index


def look(labels: dict[str, str], held: tuple[Held, ...] = HELD, *, alive: bool = True) -> PodSummary:
    """Read a pod with an init container and two others."""
    spec = PodSpec(containers=(Container("main"), Container("side")), init_containers=(Container("first"),))
    pod = PodObject(metadata=Meta(name="p", namespace="n", uid="u", labels=labels), spec=spec)
    return summarise_pod(pod, PodView("node-1", alive, held), Namespaces("n"))


@pytest.mark.parametrize("labels", [{}, OURS], ids=["others", "ours"])
def test_each_share_has_the_name_of_its_container(labels: dict[str, str]) -> None:
    """Init containers count first; a share of an unknown container has no name, a card without id has no share."""
    seen = look(labels)
    assert (seen.attempt is None) == (not labels)
    assert [each.uuid for each in seen.slices] == ["GPU-1", "GPU-2", "GPU-3"]
    assert seen.holders == ("main", "side", "")


@pytest.mark.parametrize("labels", [{}, OURS], ids=["others", "ours"])
def test_a_container_that_is_not_there_has_no_name(labels: dict[str, str]) -> None:
    """An annotation may have any text."""
    assert look(labels, (Held(7, "GPU-1", 1024, 100),)).holders == ("",)
    assert look(labels, ()).holders == ()


def test_sidecars_run_in_a_pod_too_with_their_ports() -> None:
    """Sidecars are listed after the main containers; init containers do not count as running."""
    sidecar = Container("proxy", ports=(ContainerPort(container_port=15001),), restart_policy="Always")
    main = Container("main", ports=(ContainerPort(container_port=8080), ContainerPort(container_port=9090)))
    spec = PodSpec(containers=(main, Container("side")), init_containers=(Container("first"), sidecar))
    pod = PodObject(metadata=Meta(name="p", namespace="n", uid="u", labels=OURS), spec=spec)
    assert [
        (each.name, each.ports)
        for each in summarise_pod(pod, PodView("node-1", alive=True), Namespaces("n")).containers
    ] == [
        ("main", (8080, 9090)),
        ("side", ()),
        ("proxy", (15001,)),
    ]


def test_what_ended_holds_nothing_and_names_nothing() -> None:
    """There are always as many names as shares."""
    seen = look({}, alive=False)
    assert (seen.slices, seen.holders) == ((), ())


def test_what_ended_is_none_of_the_pods_of_its_node() -> None:
    """A finished pod does not count on its node, even if its claim still holds a device."""
    claimed = (Held(0, "GPU-1", 1024, 100, claim="n/c"),)
    running, ended = look({}, claimed), look({}, claimed, alive=False)
    assert ended.holds_resources
    assert ended.slices == running.slices
    assert (running.pods, ended.pods) == (1, 0)


def test_pods_of_another_seaway_are_others() -> None:
    """Two Seaways may use one cluster, with a namespace each."""
    pod = PodObject(metadata=Meta(name="p", namespace="theirs", uid="u", labels=OURS))
    assert summarise_pod(pod, PodView("node-1", alive=True), Namespaces("n")).attempt is None
