"""Denials of a cluster: decisive messages, timeouts, and the reported phase of workloads."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from seaway.adapters.kubernetes.collect.rejections import (
    Rejection,
    Rejections,
    RejectionTimeouts,
    attempt_named,
    is_final,
    pods_rejected,
)
from seaway.domain.deployment import Cause, ReplicaStatus, Workload, WorkloadPhase

KEY = ("01k9zj5q8e0ab", 3)
QUOTA = 'pods "sw-x-7xk2p" is forbidden: exceeded quota: team, requested: pods=1, used: pods=4, limited: pods=4'
PAUSES = RejectionTimeouts(final_s=5, other_s=300)


class Ledger:
    """Denials with timers that a test fires, and the reported keys."""

    def __init__(self) -> None:
        self.due: list[tuple[float, Callable[[], None]]] = []
        self.reported: list[tuple[str, int]] = []
        self.rejections = Rejections("alpha", lambda *timer: self.due.append(timer), self.reported.append, PAUSES)

    def pass_by(self) -> None:
        """Fire all timers."""
        due, self.due = self.due, []
        for _, call in due:
            call()


@pytest.fixture
def link_table() -> Ledger:
    """Return an empty set of rejections."""
    return Ledger()


def copy(*pods: str, phase: WorkloadPhase = WorkloadPhase.STARTING) -> Workload:
    """Create a workload whose replicas have these pods; empty for none."""
    return Workload(*KEY, "alpha", phase, tuple(ReplicaStatus(at, phase, "n", pod=pod) for at, pod in enumerate(pods)))


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("sw-01k9zj5q8e0ab-3-abcdefgh", KEY),
        ("sw-01k9zj5q8e0ab-3-abcdefgh-7f6d9b5c4d", KEY),
        ("web-sw-01k9zj5q8e0ab-3-abcdefgh", KEY),
        ("sw-01k9zj5q8e0ab-abcdefgh", None),
        ("sw-short-3-abcdefgh", None),
        ("other", None),
    ],
)
def test_an_object_is_known_by_its_name(name: str, key: tuple[str, int] | None) -> None:
    """Events and bindings have no labels of Seaway, nor have dependents of its objects."""
    assert attempt_named(name) == key


@pytest.mark.parametrize(
    ("said", "decided"),
    [
        (QUOTA, True),
        ('pods "a" is forbidden: violates PodSecurity "restricted:latest": privileged', True),
        ('admission webhook "gpu.example" denied the request: no cards for you', True),
        ('no matches for kind "PyTorchJob" in version "kubeflow.org/v1"', True),
        ('Internal error occurred: failed calling webhook "gpu.example": context deadline exceeded', False),
        ('Operation cannot be fulfilled on resourcequotas "team": the object has been modified', False),
        ('pods "a" is forbidden: error looking up service account seaway/default: not found', False),
        ("something that no one has seen yet", False),
    ],
)
def test_what_may_pass_is_reported_from_what_was_decided(said: str, decided: bool) -> None:
    """A conflict or a webhook without an answer may pass; unknown messages get the same time."""
    assert is_final(said) is decided


@pytest.mark.parametrize(
    "said",
    [
        f"Error creating: {QUOTA}",
        f"(combined from similar events): Error creating: {QUOTA}",
        f"create Pod sw-x-0 in StatefulSet sw-x failed error: {QUOTA}",
    ],
)
def test_a_reason_has_no_names_that_change(said: str) -> None:
    """Pod names change with each try; they would fill the timeline with new reasons."""
    assert pods_rejected(said).reason == (
        "its pods cannot be created: exceeded quota: team, requested: pods=1, used: pods=4, limited: pods=4"
    )


def test_a_denial_is_reported_at_once_and_fails_the_copy_when_it_lasts(link_table: Ledger) -> None:
    """A denial is reported immediately, and fails the workload when it lasts, so that another cluster is tried."""
    link_table.rejections.reject(KEY, "event a", pods_rejected(QUOTA))
    said = link_table.rejections.apply(KEY, copy("", "ns/p"))
    assert said is not None
    assert (said.phase, "exceeded quota" in said.reason) == (WorkloadPhase.STARTING, True)
    assert [seconds for seconds, _ in link_table.due] == [5]
    link_table.pass_by()
    assert link_table.reported == [KEY, KEY]
    said = link_table.rejections.apply(KEY, copy("", "ns/p"))
    assert said is not None
    assert (said.phase, said.cause) == (WorkloadPhase.FAILED, Cause.REJECTED)


def test_what_may_pass_is_given_time_until_a_user_decides(link_table: Ledger) -> None:
    """After a decision the shorter timeout counts."""
    link_table.rejections.reject(KEY, "event a", pods_rejected("failed calling webhook: context deadline exceeded"))
    assert [seconds for seconds, _ in link_table.due] == [300]
    link_table.rejections.reject(KEY, "event b", pods_rejected(QUOTA))
    assert [seconds for seconds, _ in link_table.due] == [300, 5]
    said = link_table.rejections.apply(KEY, copy(""))
    assert said is not None
    assert "exceeded quota" in said.reason


def test_once_all_pods_are_there_nothing_is_denied_any_more(link_table: Ledger) -> None:
    """Events stay for an hour: they no longer count then, even if a pod is deleted later."""
    link_table.rejections.reject(KEY, "event a", pods_rejected(QUOTA))
    there = copy("ns/p", phase=WorkloadPhase.RUNNING)
    assert link_table.rejections.apply(KEY, there) == there
    link_table.pass_by()
    assert link_table.rejections.apply(KEY, copy("")) == copy("")


def test_an_object_that_is_denied_is_a_copy_though_nothing_is_there(link_table: Ledger) -> None:
    """Karmada created nothing, so the member has no object to report until the write is allowed or withdrawn."""
    link_table.rejections.reject(
        KEY, "binding a", Rejection("its Job cannot be made there", is_final=True, rejects_objects=True)
    )
    assert link_table.rejections.without_objects == {KEY}
    said = link_table.rejections.apply(KEY, None)
    assert said is not None
    assert (said.phase, said.replicas, said.reason) == (WorkloadPhase.STARTING, (), "its Job cannot be made there")
    link_table.rejections.allow("binding a")
    assert link_table.rejections.apply(KEY, None) is None
    assert link_table.rejections.without_objects == set()


@pytest.mark.parametrize("never_created", [True, False])
def test_a_running_copy_fails_only_without_an_object_that_it_never_got(
    link_table: Ledger, *, never_created: bool
) -> None:
    """Its service is denied although its pods run; a denied change of an existing service does not stop it."""
    denial = Rejection("its Service", is_final=True, rejects_objects=True, never_created=never_created)
    link_table.rejections.reject(KEY, "binding a", denial)
    there = copy("ns/p", phase=WorkloadPhase.RUNNING)
    assert link_table.rejections.apply(KEY, there) == there
    link_table.pass_by()
    said = link_table.rejections.apply(KEY, there)
    assert said is not None
    assert (said.phase is WorkloadPhase.FAILED) == never_created


def test_pods_that_are_denied_make_no_copy_of_what_is_gone(link_table: Ledger) -> None:
    """Events outlive their objects."""
    link_table.rejections.reject(KEY, "event a", pods_rejected(QUOTA))
    assert link_table.rejections.apply(KEY, None) is None
