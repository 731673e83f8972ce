"""Changes of others to Seaway's objects, by the owners of their fields."""

from __future__ import annotations

import json
from typing import Any

from seaway.adapters.kubernetes.collect.drift import DriftTracker
from seaway.adapters.kubernetes.objects.core import OwnedItem, OwnedMeta
from seaway.adapters.kubernetes.objects.decode import Broken, read_item

PLACE = ("/apis/apps/v1/deployments", "seaway/sw")
REPLICAS: dict[str, Any] = {"f:replicas": {}}
IMAGE: dict[str, Any] = {"f:containers": {'k:{"name":"main"}': {".": {}, "f:image": {}}}}
ALL = {"f:spec": {**REPLICAS, "f:template": {"f:spec": IMAGE}}}


def meta(*owners: tuple[str, dict[str, Any]], at: str = "1", labels: dict[str, str] | None = None) -> OwnedMeta:
    """Read metadata with these owners of fields."""
    managed = [
        {"manager": owner.partition("/")[0], "subresource": owner.partition("/")[2], "time": at, "fieldsV1": fields}
        for owner, fields in owners
    ]
    body = {"metadata": {"name": "sw", "namespace": "seaway", "labels": labels or {}, "managedFields": managed}}
    item = read_item(json.dumps(body).encode(), OwnedItem)
    assert not isinstance(item, Broken)
    return item.metadata


def seen(*states: OwnedMeta) -> list[str]:
    """Return what a tracker reports for successive states of an object."""
    tracker = DriftTracker()
    return [tracker.look(PLACE, each).text for each in states]


def test_a_changed_field_has_another_owner_until_it_is_written_again() -> None:
    """The manager of the change is named; after Seaway's next write nothing is reported."""
    edited = meta(("seaway", {"f:spec": REPLICAS}), ("kubectl-edit", {"f:spec": {"f:template": {"f:spec": IMAGE}}}))
    path = "spec.template.spec.containers[name=main].image"
    found = seen(meta(("seaway", ALL)), edited, meta(("seaway", ALL), at="2"))
    assert found == ["", f"deployments/sw: kubectl-edit changed {path}", ""]


def test_a_scaled_workload_has_the_manager_of_the_scale() -> None:
    """A change through a subresource other than the status counts."""
    scaled = meta(("seaway", {"f:spec": {"f:template": {"f:spec": IMAGE}}}), ("kubectl/scale", {"f:spec": REPLICAS}))
    assert seen(meta(("seaway", ALL)), scaled)[1] == "deployments/sw: kubectl changed spec.replicas"


def test_a_removed_field_has_no_owner() -> None:
    """A field that a user removed is reported without a manager."""
    removed = meta(("seaway", {"f:spec": REPLICAS}))
    assert seen(meta(("seaway", ALL)), removed)[1].endswith("containers[name=main].image was removed")


def test_what_others_own_besides_is_no_drift() -> None:
    """Neither status, nor fields that Seaway does not write, nor a field that both own with equal values."""
    others = (("controller/status", {"f:status": REPLICAS}), ("user", {"f:spec": {"f:paused": {}, **REPLICAS}}))
    assert seen(meta(("seaway", ALL)), meta(("seaway", ALL), *others)) == ["", ""]


def test_fields_that_seaway_gives_up_are_no_drift() -> None:
    """A later version of Seaway may write fewer fields."""
    assert seen(meta(("seaway", ALL)), meta(("seaway", {"f:spec": REPLICAS}), at="2")) == ["", ""]


def test_a_change_before_the_first_look_counts_for_usual_fields() -> None:
    """After a restart, a field that Seaway usually writes and others own has changed; other fields may be theirs."""
    edited = meta(("seaway", {"f:spec": REPLICAS}), ("user", {"f:spec": {"f:paused": {}, "f:selector": {}}}))
    assert seen(edited) == ["deployments/sw: user changed spec.selector"]


def test_objects_of_others_do_not_drift() -> None:
    """Karmada writes a member's objects, and Kueue changes those that name its queue."""
    assert seen(meta(("karmada", ALL))) == [""]
    queued = {"kueue.x-k8s.io/queue-name": "default"}
    assert seen(meta(("seaway", ALL), labels=queued), meta(("kueue", ALL), labels=queued)) == ["", ""]
