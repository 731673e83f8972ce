"""Watches: every change once and in order, from the version that was asked for."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from tests.fakes.kubernetes import ApiServer
from tests.fakes.kubernetes.kinds import Json

PATH = "/api/v1/namespaces/default/configmaps"
MERGE = {"content-type": "application/merge-patch+json"}


def make(api: httpx.Client, name: str, **labels: str) -> str:
    """Create an object and return its version."""
    made = api.post(PATH, json={"metadata": {"name": name, "labels": labels}})
    return str(made.json()["metadata"]["resourceVersion"])


def label(api: httpx.Client, name: str, **labels: str | None) -> None:
    """Change the labels of an object."""
    api.patch(f"{PATH}/{name}", json={"metadata": {"labels": labels}}, headers=MERGE)


@contextmanager
def watch(api: httpx.Client, **query: str) -> Iterator[Iterator[Json]]:
    """Follow what happens; yields the events."""
    with api.stream("GET", PATH, params={"watch": "1", **query}) as response:
        assert response.status_code == 200
        yield (json.loads(line) for line in response.iter_lines())


def reported(events: Iterator[Json], count: int) -> list[str]:
    """Return what the next events say."""
    found = (next(events) for _ in range(count))
    return [f"{event['type']} {event['object']['metadata']['name']}" for event in found]


def test_watch_goes_on_from_a_version(api: httpx.Client) -> None:
    """A watch from a version tells of every later change, then of new ones as they come."""
    version = make(api, "a")
    make(api, "b")
    api.delete(f"{PATH}/a")
    with watch(api, resourceVersion=version) as events:
        assert reported(events, 2) == ["ADDED b", "DELETED a"]
        label(api, "b", x="y")
        assert reported(events, 1) == ["MODIFIED b"]


def test_watch_without_a_version_begins_with_what_there_is(api: httpx.Client) -> None:
    """Without a version all objects come as ADDED first."""
    make(api, "b")
    make(api, "a")
    with watch(api) as events:
        assert reported(events, 2) == ["ADDED a", "ADDED b"]
        make(api, "c")
        assert reported(events, 1) == ["ADDED c"]


def test_deleted_object_has_the_version_of_its_end(api: httpx.Client, server: ApiServer) -> None:
    """The event of a deletion has a version above the object's last."""
    version = make(api, "a")
    api.delete(f"{PATH}/a")
    with watch(api, resourceVersion=version) as events:
        assert next(events)["object"]["metadata"]["resourceVersion"] == str(server.version)


def test_selectors_turn_changes_into_comings_and_goings(api: httpx.Client) -> None:
    """An object that a change brings into the selection is ADDED, one that it takes out of it DELETED."""
    version = make(api, "a")
    with watch(api, resourceVersion=version, labelSelector="x=y") as events:
        label(api, "a", x="y")
        label(api, "a", z="1")
        label(api, "a", x=None)
        label(api, "a", z="2")
        label(api, "a", x="y")
        assert reported(events, 4) == ["ADDED a", "MODIFIED a", "DELETED a", "ADDED a"]


def test_version_that_is_too_old_is_an_error(api: httpx.Client, server: ApiServer) -> None:
    """From before the history the only event is an ERROR with code 410."""
    version = make(api, "a")
    server.forget_history()
    with watch(api, resourceVersion=version) as events:
        event = next(events)
        assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")
        assert next(events, None) is None


def test_history_is_bounded() -> None:
    """A server keeps the last changes of each kind only."""
    with ApiServer(history=3) as server, httpx.Client(base_url=server.url, headers=server.headers) as api:
        versions = [make(api, name) for name in "abcdef"]
        with watch(api, resourceVersion=versions[1]) as events:
            assert next(events)["type"] == "ERROR"
        with watch(api, resourceVersion=versions[2]) as events:
            assert reported(events, 3) == ["ADDED d", "ADDED e", "ADDED f"]


def test_watch_ends_in_time(api: httpx.Client) -> None:
    """After timeoutSeconds the watch ends as HTTP ends it."""
    with watch(api, timeoutSeconds="1") as events:
        assert list(events) == []


def test_bookmarks_tell_how_far_it_is() -> None:
    """A user who allows bookmarks observes the latest version now and then, also if nothing of his has changed."""
    with ApiServer(bookmark_s=0.02) as server, httpx.Client(base_url=server.url, headers=server.headers) as api:
        version = make(api, "a")
        with watch(api, resourceVersion=version, allowWatchBookmarks="true") as events:
            api.post("/api/v1/namespaces", json={"metadata": {"name": "b"}})
            event = next(event for event in events if event["object"]["metadata"]["resourceVersion"] != version)
            assert event["type"] == "BOOKMARK"
            assert event["object"]["kind"] == "ConfigMap"
            assert event["object"]["metadata"]["resourceVersion"] == str(server.version)


def test_initial_events_end_with_a_bookmark(api: httpx.Client) -> None:
    """With sendInitialEvents a bookmark says where what there was ends."""
    make(api, "a")
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    with watch(api, **query) as events:
        assert next(events)["type"] == "ADDED"
        assert next(events)["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_cut_watch_breaks_off(api: httpx.Client, server: ApiServer) -> None:
    """A watch that is cut ends without the last chunk, which clients see as an error."""
    make(api, "a")
    with watch(api) as events:
        next(events)
        assert server.faults.cut_watches("*/configmaps") == 1
        with pytest.raises(httpx.RemoteProtocolError):
            next(events)


def test_watch_of_a_client_that_left_is_over(api: httpx.Client, server: ApiServer) -> None:
    """The server forgets a watch when its client closes the connection."""
    with watch(api):
        assert len(server.watches.open) == 1
    deadline = threading.Event()
    for _ in range(500):
        if not server.watches.open:
            break
        deadline.wait(0.01)
    assert not server.watches.open
