"""Objects are decoded one by one, and broken ones are reported."""

from __future__ import annotations

import json
from typing import Any

import pytest

from seaway.adapters.kubernetes.collect.services import ServiceObject
from seaway.adapters.kubernetes.objects.core import Item, NodeObject, PodObject
from seaway.adapters.kubernetes.objects.decode import (
    Broken,
    Failure,
    UndecodableError,
    read_event,
    read_item,
    read_page,
)
from seaway.adapters.kubernetes.objects.dra import ResourceClaim


def page(*items: Any) -> bytes:  # noqa: ANN401
    """Write a page of a list."""
    return json.dumps({"metadata": {"resourceVersion": "7", "continue": "more"}, "items": items}).encode()


def test_one_broken_item_does_not_lose_its_page() -> None:
    """The others are decoded, and the broken one is named."""
    bad = {"metadata": {"name": "b", "namespace": "x", "uid": "u", "resourceVersion": "3"}, "spec": {"nodeName": 3}}
    found = read_page(page({"metadata": {"name": "a"}}, bad, {"metadata": {"name": "c"}}), PodObject)
    assert [item.metadata.name for item in found.items] == ["a", "c"]
    (broken,) = found.broken
    assert (broken.name, broken.namespace, broken.uid, broken.resource_version) == ("b", "x", "u", "3")
    assert "spec.nodeName" in broken.text


def test_a_page_says_where_it_stands() -> None:
    """A page has its resource version and continue token."""
    found = read_page(page(), PodObject)
    assert (found.metadata.resource_version, found.metadata.next_page) == ("7", "more")


@pytest.mark.parametrize("data", [b"{}", b'{"items":null}', b'{"items":[]}'])
def test_a_list_without_items_is_empty(data: bytes) -> None:
    """Some lists have null for no items."""
    assert read_page(data, PodObject).items == ()


@pytest.mark.parametrize("data", [b"", b"<html>", b"[]", b'{"items":3}', b"\xff", b"[" * 100_000])
def test_what_is_no_page_is_refused(data: bytes) -> None:
    """A proxy's error page is not an empty list."""
    with pytest.raises(UndecodableError):
        read_page(data, PodObject)


def test_nulls_count_as_not_there() -> None:
    """Kubernetes sends null for times that are not set."""
    raw = b'{"metadata":{"name":"a","creationTimestamp":null,"labels":null},"spec":{"containers":null}}'
    found = read_item(raw, PodObject)
    assert isinstance(found, PodObject)
    assert (found.metadata.name, found.metadata.labels, found.spec.containers) == ("a", {}, ())


def test_fields_that_are_not_read_may_be_anything() -> None:
    """Seaway works with later versions of Kubernetes."""
    found = read_item(b'{"metadata":{"name":"a","new":{"x":[1]}},"status":{"nodeInfo":3}}', NodeObject)
    assert isinstance(found, NodeObject)


@pytest.mark.parametrize("raw", [b"", b"3", b"null", b"\xff\xfe", b'{"metadata":3}', b'{"a":' * 50_000])
def test_an_item_that_is_no_object_is_broken(raw: bytes) -> None:
    """It never raises."""
    assert isinstance(read_item(raw, PodObject), Broken)


def test_names_that_python_would_spell_otherwise_are_found() -> None:
    """Field names have capital abbreviations and reserved words of Python."""
    service = read_item(b'{"spec":{"clusterIP":"10.0.0.1"}}', ServiceObject)
    claim = read_item(b'{"status":{"allocation":{"devices":{"results":[{"shareID":"s"}]}}}}', ResourceClaim)
    assert isinstance(service, ServiceObject)
    assert service.spec.cluster_ip == "10.0.0.1"
    assert isinstance(claim, ResourceClaim)
    assert claim.status.allocation is not None
    assert claim.status.allocation.devices.results[0].share_id == "s"


def test_events_keep_their_object_for_later() -> None:
    """A bookmark has only metadata, an error is a status."""
    bookmark = read_event(b'{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"9"}}}')
    item = read_item(bookmark.object, Item)
    assert isinstance(item, Item)
    assert (bookmark.type, item.metadata.resource_version) == ("BOOKMARK", "9")
    error = read_event(b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}')
    failure = read_item(error.object, Failure)
    assert isinstance(failure, Failure)
    assert failure.code == 410
