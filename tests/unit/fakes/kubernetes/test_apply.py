"""Server-side apply: field managers and conflicts."""

from __future__ import annotations

import doctest

import httpx
import pytest

from tests.fakes.kubernetes import fields, patches, quantities
from tests.fakes.kubernetes.fields import decode, encode, fields_of
from tests.fakes.kubernetes.kinds import Json

PATH = "/apis/apps/v1/namespaces/default/deployments/web"
MAP = "/api/v1/namespaces/default/configmaps/a"
APPLY = {"content-type": "application/apply-patch+yaml"}
MERGE = {"content-type": "application/merge-patch+json"}


def deployment(**spec: object) -> Json:
    """Return what is applied: a deployment with two containers."""
    containers = [{"name": "main", "image": "a:1"}, {"name": "other", "image": "b:1"}]
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}}
    selector = {"matchLabels": {"app": "web"}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"selector": selector, "template": template, **spec},
    }


def config_map(**data: str) -> Json:
    """Return a ConfigMap to apply."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}


def apply(api: httpx.Client, path: str, body: Json, manager: str = "one", **query: str) -> httpx.Response:
    """Apply a configuration."""
    return api.patch(path, params={"fieldManager": manager, **query}, json=body, headers=APPLY)


def managers(body: Json) -> dict[str, set[tuple[str, ...]]]:
    """Return the fields that each manager owns."""
    found: dict[str, set[tuple[str, ...]]] = {}
    for entry in body["metadata"]["managedFields"]:
        found.setdefault(entry["manager"], set()).update(decode(entry["fieldsV1"]))
    return found


def test_apply_creates_and_then_changes(api: httpx.Client) -> None:
    """An apply creates what is missing (201), and changes the present state (200)."""
    assert apply(api, PATH, deployment()).status_code == 201
    changed = apply(api, PATH, deployment(replicas=3))
    assert changed.status_code == 200
    assert changed.json()["spec"]["replicas"] == 3


def test_apply_of_the_same_changes_nothing(api: httpx.Client) -> None:
    """Applying the same again leaves version and times alone."""
    first = apply(api, PATH, deployment(replicas=3)).json()
    assert apply(api, PATH, deployment(replicas=3)).json() == first


def test_apply_needs_a_manager(api: httpx.Client) -> None:
    """Without fieldManager an apply is refused, and so is one with managedFields."""
    assert api.patch(PATH, json=deployment(), headers=APPLY).status_code == 422
    body = deployment()
    body["metadata"]["managedFields"] = [{}]
    assert apply(api, PATH, body).status_code == 400


def test_apply_takes_yaml(api: httpx.Client) -> None:
    """An applied configuration may be YAML."""
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  b: c\n"
    found = api.patch(f"{MAP}?fieldManager=one", content=text, headers=APPLY)
    assert found.json()["data"] == {"b": "c"}


def test_field_of_another_is_a_conflict(api: httpx.Client) -> None:
    """A field that another manager owns cannot get another value, unless it is forced; then he owns it no more."""
    apply(api, MAP, config_map(b="1", c="1"))
    refused = apply(api, MAP, config_map(b="2"), "two")
    assert refused.status_code == 409
    cause = refused.json()["details"]["causes"][0]
    assert cause == {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.b"}
    forced = apply(api, MAP, config_map(b="2"), "two", force="true").json()
    assert forced["data"] == {"b": "2", "c": "1"}
    assert managers(forced) == {"one": {("f:data", "f:c")}, "two": {("f:data", "f:b")}}


def test_field_of_an_update_is_a_conflict(api: httpx.Client) -> None:
    """A user who patches or replaces owns what he changed, so that an apply over it is a conflict as well."""
    apply(api, PATH, deployment(replicas=1))
    scaled = api.patch(f"{PATH}?fieldManager=scaler", json={"spec": {"replicas": 5}}, headers=MERGE).json()
    assert managers(scaled)["scaler"] == {("f:spec", "f:replicas")}
    refused = apply(api, PATH, deployment(replicas=2))
    assert refused.status_code == 409
    assert 'conflict with "scaler" using apps/v1: .spec.replicas' in refused.json()["message"]


def test_same_value_is_shared(api: httpx.Client) -> None:
    """Two managers may own a field while they agree about it; it stays until both have given it up."""
    apply(api, MAP, config_map(b="1"))
    apply(api, MAP, config_map(b="1"), "two")
    assert apply(api, MAP, config_map()).json()["data"] == {"b": "1"}
    assert "b" not in apply(api, MAP, config_map(), "two").json().get("data", {})


def test_what_is_no_longer_applied_is_removed(api: httpx.Client) -> None:
    """A field or an item that a manager leaves out, and no one else owns, goes."""
    apply(api, PATH, deployment(replicas=3, minReadySeconds=5))
    body = deployment(replicas=3)
    body["spec"]["template"]["spec"]["containers"].pop()
    found = apply(api, PATH, body).json()
    assert "minReadySeconds" not in found["spec"]
    assert [one["name"] for one in found["spec"]["template"]["spec"]["containers"]] == ["main"]


def test_containers_are_merged_by_name(api: httpx.Client) -> None:
    """Two managers may each own a field of one container."""
    apply(api, PATH, deployment())
    body = deployment()
    del body["spec"]["selector"]
    limits = {"limits": {"cpu": "1"}}
    body["spec"]["template"] = {"spec": {"containers": [{"name": "main", "resources": limits}]}}
    found = apply(api, PATH, body, "two").json()
    main, other = found["spec"]["template"]["spec"]["containers"]
    assert (main["image"], main["resources"]["limits"]) == ("a:1", {"cpu": "1"})
    assert other["image"] == "b:1"


def test_status_is_applied_apart(api: httpx.Client) -> None:
    """An apply to /status owns the status only, under its own entry."""
    apply(api, PATH, deployment())
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "status": {"replicas": 2}}
    found = apply(api, f"{PATH}/status", body, "two").json()
    assert found["status"]["replicas"] == 2
    entry = next(one for one in found["metadata"]["managedFields"] if one["manager"] == "two")
    assert (entry["subresource"], entry["operation"]) == ("status", "Apply")


def test_apply_can_be_tried(api: httpx.Client) -> None:
    """A dry run reports its result, including conflicts."""
    apply(api, MAP, config_map(b="1"))
    assert apply(api, MAP, config_map(b="2"), dryRun="All").json()["data"] == {"b": "2"}
    assert apply(api, MAP, config_map(b="2"), "two", dryRun="All").status_code == 409
    assert api.get(MAP).json()["data"] == {"b": "1"}


def test_fields_survive_encoding() -> None:
    """Anything that fieldsV1 says is what was written into it."""
    paths = set(fields_of(deployment(replicas=1)))
    assert decode(encode(paths)) == paths


@pytest.mark.parametrize("module", [fields, patches, quantities])
def test_examples_run(module: object) -> None:
    """Examples in docstrings are right."""
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]
