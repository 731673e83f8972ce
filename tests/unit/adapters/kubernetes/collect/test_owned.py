"""Seaway's objects in a control plane, and the notification when a workload is deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from seaway.adapters.kubernetes.collect.owned import AttemptKey, OwnedSink, OwnerIndex
from seaway.adapters.kubernetes.objects.core import OwnedItem
from seaway.adapters.kubernetes.templates.namespaces import Namespaces
from tests.unit.adapters.kubernetes.collect.test_view import JOB, copy, decoded

JOBS, POLICIES = "/apis/batch/v1/jobs", "/apis/policy.karmada.io/v1alpha1/propagationpolicies"
KEY = (JOB, 1, "alpha")


def item(name: str) -> OwnedItem:
    """Write an object of the attempt."""
    meta = {"name": name, "namespace": "seaway", "labels": copy().metadata.labels}
    return decoded({"metadata": {**meta, "annotations": {"seaway.io/cluster": "alpha"}}}, OwnedItem)


def test_a_workload_that_goes_is_missed_once() -> None:
    """A deletion is noticed once, by a watch or a new list; deleted policies change nothing else."""
    missed: list[AttemptKey] = []
    owned = OwnerIndex(Namespaces(), missed.append)
    jobs, policies = OwnedSink(owned, JOBS, runs=True), OwnedSink(owned, POLICIES)
    policies.put(item("sw"))
    asyncio.run(jobs.replace([item("sw-a"), item("sw-b")]))
    asyncio.run(jobs.replace([item("sw-b")]))
    assert missed == [KEY]
    jobs.drop(item("sw-b"))
    assert missed == [KEY, KEY]
    jobs.drop(item("sw-b"))
    policies.drop(item("sw"))
    assert missed == [KEY, KEY]
    assert not owned.of(KEY)


def test_idle_is_what_has_objects_and_no_workload() -> None:
    """Objects without a workload are idle, in any order of events; the set is kept up to date, as a scan takes long."""
    owned = OwnerIndex(Namespaces(), lambda _: None)
    jobs, policies = OwnedSink(owned, JOBS, runs=True), OwnedSink(owned, POLICIES)
    changes: list[Callable[[], None]] = [
        lambda: policies.put(item("sw")),
        lambda: jobs.put(item("sw-a")),
        lambda: jobs.put(item("sw-b")),
        lambda: jobs.drop(item("sw-a")),
        lambda: jobs.drop(item("sw-b")),
        lambda: policies.drop(item("sw")),
        lambda: jobs.put(item("sw-a")),
        lambda: jobs.drop(item("sw-a")),
    ]
    seen = []
    for change in changes:
        change()
        seen.append(set(owned.idle()))
    assert seen == [{KEY}, set(), set(), set(), {KEY}, set(), set(), set()]
