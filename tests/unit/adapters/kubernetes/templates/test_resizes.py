"""Objects of an attempt that gets more or fewer replicas."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from seaway.adapters.kubernetes.templates.manifest import Manifest
from seaway.adapters.kubernetes.templates.registry import render
from seaway.domain.deployment import Deployment
from seaway.domain.placement import Placement
from tests.unit.adapters.kubernetes.templates.sample import deployment, options, share

COUNTS = ("completions", "parallelism", "replicas", "minReplicas", "maxReplicas", "minAvailable")


def made(template: str, **fields: int) -> Deployment:
    """Create a deployment of two replicas on one device and one elsewhere."""
    return deployment(template, (), gang=template == "volcanojob", **fields)  # type: ignore[arg-type]  # of a spec


def grown(before: Deployment) -> Deployment:
    """Add two replicas on the place of the first ones."""
    like = before.placements[0]
    added = tuple(replace(like, replica=number, wave=7) for number in (3, 4))
    return replace(before, placements=(*before.placements, *added))


def without(before: Deployment, *leaving: int) -> Deployment:
    """Let replicas leave."""
    placements = tuple(replace(each, leaving=each.replica in leaving) for each in before.placements)
    return replace(before, placements=placements)


def workloads(written: Deployment) -> dict[str, Manifest]:
    """Return the objects with replicas, by name."""
    return {each.name: each for each in render(written, options()) if each.replicas or each.absent}


def counted(value: Any) -> Any:  # noqa: ANN401  # any value of YAML
    """Return an object without its numbers of replicas."""
    if isinstance(value, dict):
        kept = {key: counted(each) for key, each in value.items() if key not in COUNTS}
        return {key: each for key, each in kept.items() if key != "seaway.io/replicas" or "pod" in kept}
    return [counted(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("template", ["job", "deployment", "volcanojob"])
def test_more_replicas_leave_the_objects_of_the_others_as_they_are(template: str) -> None:
    """New replicas have objects of their own, also on the same devices."""
    before = made(template)
    old, new = workloads(before), workloads(grown(before))
    assert {name: new[name].pinned() for name in old} == {name: each.pinned() for name, each in old.items()}
    assert [each.replicas for name, each in new.items() if name not in old] == [(3, 4)]


@pytest.mark.parametrize("template", ["job", "deployment", "volcanojob", "raycluster"])
def test_leaving_replicas_change_only_numbers(template: str) -> None:
    """Pod templates stay, with the replicas that they began with, until and after the leaving ones are gone."""
    before = grown(made(template))
    objects = workloads(before)
    left = without(before, 4)
    gone = replace(left, placements=tuple(_beside(each) for each in left.placements if not each.leaving))
    for after in (left, gone):
        for name, each in workloads(after).items():
            assert counted(each.pinned()) == counted(objects[name].pinned())
    key = "completions" if template == "job" else "replicas"
    assert f"'{key}': 2" in str(sorted(objects.items())[-1]) or template != "job"


def _beside(placement: Placement) -> Placement:
    return replace(placement, beside="3-4") if placement.wave else placement


@pytest.mark.parametrize("template", ["job", "deployment", "volcanojob"])
def test_an_object_whose_replicas_all_leave_is_deleted(template: str) -> None:
    """It is rendered as absent, without its pod template, so that a device that is gone does not matter."""
    before = grown(made(template))
    after = workloads(without(before, 3, 4))
    assert [each.replicas for each in after.values() if each.absent] == [()]
    assert sum(each.absent for each in after.values()) == 1


def test_a_ray_cluster_gets_more_worker_groups_and_keeps_empty_ones() -> None:
    """KubeRay keeps the pods of a removed group, so a group that leaves has no replicas first."""
    before = made("raycluster")
    after = grown(before)

    def groups(written: Deployment) -> list[dict[str, Any]]:
        (only,) = workloads(written).values()
        return list(only.body["spec"]["workerGroupSpecs"])

    assert groups(after)[: len(groups(before))] == groups(before)
    assert [each["replicas"] for each in groups(after)] == [1, 1, 2]
    assert [each["replicas"] for each in groups(without(after, 3, 4))] == [1, 1, 0]


def test_an_elastic_training_has_workers_with_a_rendezvous() -> None:
    """It has no master. More workers change only the number and the pins, so that running pods are as before."""
    before = made("pytorchjob", min_replicas=2, max_replicas=8)
    (old,), (new,) = workloads(before).values(), workloads(grown(before)).values()
    assert old.body["spec"]["elasticPolicy"] == {"rdzvBackend": "c10d", "minReplicas": 2, "maxReplicas": 8}
    assert list(old.body["spec"]["pytorchReplicaSpecs"]) == ["Worker"]
    assert counted(old.body) == counted(new.body)
    assert new.body["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] == 5


def test_the_devices_of_a_deleted_object_may_be_gone() -> None:
    """A replica on a node that failed leaves as any other."""
    before = grown(made("job"))
    lost = tuple(replace(each, slices=(share("GPU-lost"),)) if each.wave else each for each in before.placements)
    seen = options()
    known = replace(seen, accesses=lambda node, uuid: None if uuid == "GPU-lost" else seen.accesses(node, uuid))
    written = render(without(replace(before, placements=lost), 3, 4), known)
    assert sum(each.absent for each in written) == 1
