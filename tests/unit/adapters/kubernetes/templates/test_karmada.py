"""Objects for Karmada, and their order."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from seaway.adapters.kubernetes.device_plugins.views import DeviceResources
from seaway.adapters.kubernetes.templates import karmada
from seaway.adapters.kubernetes.templates.karmada import binding, for_karmada
from seaway.adapters.kubernetes.templates.manifest import Manifest, Pin
from seaway.adapters.kubernetes.templates.registry import BUILT_IN, render
from seaway.domain.deployment import Deployment
from seaway.domain.errors import InvariantError, RejectedError
from seaway.domain.job import NodeRules
from tests.unit.adapters.kubernetes.templates import sample
from tests.unit.adapters.kubernetes.templates.sample import deployment, options, share
from tests.unit.adapters.kubernetes.templates.schemas import validate

through = pytest.mark.parametrize("template", sorted(set(BUILT_IN) - {"kueue"}))


def sent(made: Deployment, **chosen: Any) -> list[Manifest]:  # noqa: ANN401  # fields of options
    """Return the objects for Karmada of a deployment."""
    wanted = options(**chosen)
    return for_karmada(made, wanted, render(made, wanted))


def patched(body: dict[str, Any], patches: list[dict[str, Any]]) -> dict[str, Any]:
    """Apply plaintext overriders as Karmada does: JSON patches (RFC 6902), of which only ``add`` is used."""
    body = deepcopy(body)
    for patch in patches:
        at: Any = body
        *way, last = [step.replace("~1", "/").replace("~0", "~") for step in patch["path"].split("/")[1:]]
        for step in way:
            at = at[int(step)] if isinstance(at, list) else at[step]
        assert patch["operator"] == "add"
        assert isinstance(at, dict)
        at[last] = patch["value"]
    return body


@through
@pytest.mark.parametrize("terms", [sample.HAMI, sample.NVIDIA_DRA])
def test_overrides_give_what_is_sent_directly(template: str, terms: DeviceResources) -> None:
    """A neutral template with its overrides equals the object for a direct cluster."""
    made = deployment(template, nodes=NodeRules((("zone", "a"),)))
    straight = {(each.kind, each.name): each.pinned() for each in render(made, options(terms))}
    written = sent(made, terms=terms)
    overrides = {}
    for each in written:
        if each.kind == "OverridePolicy":
            (selector,) = each.body["spec"]["resourceSelectors"]
            (rule,) = each.body["spec"]["overrideRules"]
            assert rule["targetCluster"] == {"clusterNames": ["alpha"]}
            overrides[selector["kind"], selector["name"]] = rule["overriders"]["plaintext"]
    arrived = {
        (each.kind, each.name): patched(each.body, overrides.get((each.kind, each.name), []))
        for each in written
        if not each.kind.endswith("Policy")
    }
    assert arrived == straight


@through
def test_the_order_is_overrides_policies_objects(template: str) -> None:
    """Every object comes after its prerequisites, and has no pins of its own."""
    written = sent(deployment(template))
    order = [
        ("OverridePolicy", "PropagationPolicy").index(each.kind) if "Policy" in each.kind else 2 for each in written
    ]
    assert order == sorted(order)
    assert {0, 1, 2} == set(order)
    assert not any(each.pins for each in written)
    assert len({(each.kind, each.name) for each in written}) == len(written)


@through
def test_policies_are_valid_and_the_same_each_time(template: str) -> None:
    """A second write changes nothing."""
    made = deployment(template)
    for each in sent(made):
        validate(each.body)
    assert sample.same_bytes(sent(made), sent(made))


@through
def test_everything_but_policies_is_selected_once(template: str) -> None:
    """Each object is named by one PropagationPolicy, with Seaway as its scheduler."""
    written = sent(deployment(template))
    selected = [
        (selector["apiVersion"], selector["kind"], selector["namespace"], selector["name"])
        for policy in written
        if policy.kind == "PropagationPolicy"
        for selector in policy.body["spec"]["resourceSelectors"]
    ]
    objects = [
        (each.body["apiVersion"], each.kind, each.body["metadata"]["namespace"], each.name)
        for each in written
        if not each.kind.endswith("Policy")
    ]
    assert selected == objects


def test_two_clusters_do_not_meet() -> None:
    """The parts of one attempt in two clusters share no name in Karmada's one namespace."""
    placed = [("node-0", (share("GPU-a"),))]
    for template in sorted(set(BUILT_IN) - {"kueue"}):
        here = {each.name for each in sent(deployment(template, placed), shared=True)}
        there = {each.name for each in sent(deployment(template, placed, cluster="beta"), shared=True)}
        assert not here & there


def test_many_objects_are_spread_over_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    """No policy exceeds the size limit of a server."""
    monkeypatch.setattr(karmada, "MAX_SELECTED", 2)
    written = sent(deployment(placed=[(f"node-{i}", (share(f"GPU-{i}"),)) for i in range(5)]))
    policies = [each for each in written if each.kind == "PropagationPolicy"]
    assert [len(each.body["spec"]["resourceSelectors"]) for each in policies] == [2, 2, 2]
    assert len({each.name for each in policies}) == 3


def test_bindings_say_cluster_and_replicas() -> None:
    """The binding of each object, found by name, gets its cluster."""
    made = deployment("deployment")
    service, first, second = (binding(made, each) for each in render(made, options()))
    assert service.name.endswith("-service")
    assert service.clusters == ({"name": "alpha"},)
    assert first.name.endswith("-deployment")
    assert first.clusters == ({"name": "alpha", "replicas": 2},)
    assert second.clusters == ({"name": "alpha", "replicas": 1},)


def test_what_others_change_does_not_go_through_karmada() -> None:
    """Karmada reverts others' changes, so Kueue could never admit a Job."""
    with pytest.raises(RejectedError, match="kueue"):
        sent(deployment("kueue"))


def test_a_pin_needs_something_to_hold_on_to() -> None:
    """A pin without its place in the object is a bug, not silently lost."""
    assert Pin(("a", 0, "b/c~d"), 1).pointer == "/a/0/b~1c~0d"
    assert Manifest({"a": [{}]}, (Pin(("a", 0, "b"), 1),)).pinned() == {"a": [{"b": 1}]}
    with pytest.raises(InvariantError, match="/a/b"):
        Manifest({"a": 1}, (Pin(("a", "b"), 1),)).pinned()
