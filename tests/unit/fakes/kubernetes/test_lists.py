"""Lists: selectors, pages and versions."""

from __future__ import annotations

import httpx
import pytest

from tests.fakes.kubernetes import ApiServer
from tests.fakes.kubernetes.kinds import Json

PATH = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(autouse=True)
def objects(server: ApiServer) -> None:
    """Fill the server with five objects."""
    for index, name in enumerate("abcde"):
        labels = {"number": str(index), **({"odd": ""} if index % 2 else {"even": ""})}
        server.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}})


def names(found: httpx.Response) -> str:
    """Return the names in a list, one after another."""
    assert found.status_code == 200, found.text
    return "".join(one["metadata"]["name"] for one in found.json()["items"])


@pytest.mark.parametrize(
    ("selector", "picked"),
    [
        ("number=1", "b"),
        ("number==1", "b"),
        ("number!=1", "acde"),
        ("number in (1, 3)", "bd"),
        ("number notin (1,3)", "ace"),
        ("odd", "bd"),
        ("!odd", "ace"),
        ("even,number!=0", "ce"),
        ("none=1", ""),
        ("none!=1", "abcde"),
    ],
)
def test_labels_select(api: httpx.Client, selector: str, picked: str) -> None:
    """A label selector picks what its requirements all allow."""
    assert names(api.get(PATH, params={"labelSelector": selector})) == picked


def test_fields_select(api: httpx.Client, server: ApiServer) -> None:
    """Name and namespace can be selected everywhere, other fields where the kind offers them; the rest gets 400."""
    assert names(api.get(PATH, params={"fieldSelector": "metadata.name=c"})) == "c"
    assert names(api.get(PATH, params={"fieldSelector": "metadata.name!=c"})) == "abde"
    assert api.get(PATH, params={"fieldSelector": "data.x=1"}).status_code == 400
    for name, node in (("p", "n1"), ("q", "")):
        spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": node}
        server.put({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
    assert names(api.get("/api/v1/pods", params={"fieldSelector": "spec.nodeName=n1"})) == "p"
    assert names(api.get("/api/v1/pods?fieldSelector=spec.nodeName!%3D")) == "p"


def test_pages_show_one_state(api: httpx.Client) -> None:
    """Pages are of the state at the first one, whatever is changed meanwhile."""
    first = api.get(PATH, params={"limit": 2})
    assert first.json()["metadata"]["remainingItemCount"] == 3
    api.delete(f"{PATH}/c")
    api.post(PATH, json={"metadata": {"name": "bb"}})
    second = api.get(PATH, params={"limit": 2, "continue": first.json()["metadata"]["continue"]})
    third = api.get(PATH, params={"limit": 2, "continue": second.json()["metadata"]["continue"]})
    assert names(first) + names(second) + names(third) == "abcde"
    assert "continue" not in third.json()["metadata"]
    versions = {page.json()["metadata"]["resourceVersion"] for page in (first, second, third)}
    assert len(versions) == 1


def test_old_pages_are_gone(api: httpx.Client, server: ApiServer) -> None:
    """A page of a state that was forgotten gets 410, and a token to go on at the latest state."""
    token = api.get(PATH, params={"limit": 2}).json()["metadata"]["continue"]
    server.forget_history()
    api.delete(f"{PATH}/c")
    gone = api.get(PATH, params={"limit": 9, "continue": token})
    assert gone.status_code == 410
    assert gone.json()["reason"] == "Expired"
    assert names(api.get(PATH, params={"limit": 9, "continue": gone.json()["metadata"]["continue"]})) == "de"


def test_bad_tokens_are_refused(api: httpx.Client) -> None:
    """A continue token that no one gave gets 400."""
    assert api.get(PATH, params={"limit": 2, "continue": "!"}).status_code == 400


def test_future_versions_are_not_there_yet(api: httpx.Client, server: ApiServer) -> None:
    """A list at a version that is yet to come gets 504 with the cause ResourceVersionTooLarge."""
    early = api.get(PATH, params={"resourceVersion": str(server.version + 100)})
    assert early.status_code == 504
    assert early.json()["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert names(api.get(PATH, params={"resourceVersion": "0"})) == "abcde"
    assert names(api.get(PATH, params={"resourceVersion": "1"})) == "abcde"


def test_stale_reads(api: httpx.Client, server: ApiServer) -> None:
    """While reads are stale, lists at version 0 show an old state; others the latest."""
    server.stale_reads()
    api.delete(f"{PATH}/a")
    assert names(api.get(PATH, params={"resourceVersion": "0"})) == "abcde"
    assert names(api.get(PATH)) == "bcde"
    server.stale_reads(stale=False)
    assert names(api.get(PATH, params={"resourceVersion": "0"})) == "bcde"


def test_items_name_their_kind_if_they_are_custom(api: httpx.Client) -> None:
    """Items of built-in kinds leave out kind and apiVersion; those of custom resources say them."""
    path = "/apis/ray.io/v1/namespaces/default/rayjobs"
    api.post(path, json={"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "x"}, "spec": {}})
    item: Json = api.get(path).json()["items"][0]
    assert (item["kind"], item["apiVersion"]) == ("RayJob", "ray.io/v1")
    assert "kind" not in api.get(PATH).json()["items"][0]
    assert api.get(PATH).json()["kind"] == "ConfigMapList"


def test_namespaces_are_apart(api: httpx.Client) -> None:
    """A list of a namespace has its objects only, one of none all of them."""
    api.post("/api/v1/namespaces", json={"metadata": {"name": "default-2"}})
    api.post("/api/v1/namespaces/default-2/configmaps", json={"metadata": {"name": "z"}})
    assert names(api.get(PATH)) == "abcde"
    assert names(api.get("/api/v1/namespaces/default-2/configmaps")) == "z"
    assert sorted(names(api.get("/api/v1/configmaps"))) == sorted("abcdez")


def test_selected_objects_are_deleted_together(api: httpx.Client) -> None:
    """DELETE of a collection removes what the selectors pick."""
    assert names(api.delete(PATH, params={"labelSelector": "odd"})) == "bd"
    assert names(api.get(PATH)) == "ace"
