"""A Lease has one holder at a time, whatever the clocks and the order of requests."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from seaway.adapters.kubernetes.connection.api import Api
from seaway.adapters.kubernetes.connection.credentials import Credentials
from seaway.adapters.kubernetes.connection.event_loop import EventLoopThread
from seaway.adapters.kubernetes.connection.responses import ApiError
from seaway.adapters.kubernetes.leadership import (
    LEADER_LABEL,
    Candidate,
    LeadershipStatus,
    LeaseDurations,
    NoLeaderLabel,
    PodLeaderLabel,
    lead,
)
from seaway.domain.errors import UnavailableError
from tests.fakes.kubernetes import ApiServer
from tests.fakes.kubernetes.kinds import LEASES, PODS

TERMS = LeaseDurations(lease_duration_s=15, renew_deadline_s=10, retry_period_s=2)
QUICK = LeaseDurations(lease_duration_s=2, renew_deadline_s=0.3, retry_period_s=0.02)
CALL_S = 2.0


@dataclass
class Rig:
    """An API server, and candidates whose clock a test advances."""

    server: ApiServer
    file: Path
    reactor: EventLoopThread
    now_s: float = 0.0
    apis: list[Api] = field(default_factory=list)

    def candidate(self, who: str, clock: Callable[[], float] | None = None, terms: LeaseDurations = TERMS) -> Candidate:
        """Create a candidate."""
        api = Api("alpha", Credentials(self.file, "alpha"), request_timeout_s=CALL_S)
        self.apis.append(api)
        return Candidate(api, "default", "seaway", who, terms, clock or (lambda: self.now_s))

    def attempt(self, candidate: Candidate) -> bool:
        """Make one try."""
        return self.reactor.run(candidate.attempt(), 30)

    @property
    def spec(self) -> dict[str, Any]:
        """The present Lease."""
        found: dict[str, Any] = (self.server.get(LEASES, "default", "seaway") or {"spec": {}})["spec"]
        return found

    def close(self) -> None:
        """Close everything."""
        for each in self.apis:
            self.reactor.run(each.close(), 5)
        self.reactor.close()


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """Start a server."""
    with ApiServer("alpha") as server:
        rig = Rig(server, server.kubeconfig(tmp_path / "alpha"), EventLoopThread())
        yield rig
        server.faults.clear()
        rig.close()


def test_the_first_makes_the_lease_and_keeps_it(rig: Rig) -> None:
    """The first candidate creates it; later ones wait, and see its holder."""
    first, second = rig.candidate("first"), rig.candidate("second")
    assert rig.attempt(first)
    made = rig.spec
    assert (made["holderIdentity"], made["leaseDurationSeconds"], made["leaseTransitions"]) == ("first", 15, 1)
    assert not rig.attempt(second)
    assert second.leader == "first"
    assert second.lost
    assert rig.attempt(first)
    assert rig.spec["acquireTime"] == made["acquireTime"]
    assert rig.spec["renewTime"] > made["renewTime"]
    assert rig.spec["leaseTransitions"] == 1


def test_a_lease_is_gone_when_it_was_seen_not_to_change_for_its_time(rig: Rig) -> None:
    """The waiting candidate's own clock counts how long the Lease is unchanged; every renewal starts over."""
    first, second = rig.candidate("first"), rig.candidate("second")
    rig.attempt(first)
    rig.now_s = 1_000.0  # the second reads it for the first time
    assert not rig.attempt(second)
    rig.now_s += 14
    assert not rig.attempt(second)
    rig.attempt(first)
    rig.now_s += 14
    assert not rig.attempt(second), "it was renewed"
    rig.now_s += 15
    assert rig.attempt(second)
    assert rig.spec["holderIdentity"] == "second"
    assert rig.spec["leaseTransitions"] == 2
    assert not rig.attempt(first)
    assert first.lost


@pytest.mark.parametrize("reported", ["1999-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z"])
def test_times_that_others_write_decide_nothing(rig: Rig, reported: str) -> None:
    """A leader whose clock is years off is respected like any other."""
    rig.attempt(rig.candidate("first"))
    rig.server.patch(LEASES, "default", "seaway", {"spec": {"renewTime": reported, "acquireTime": reported}})
    second = rig.candidate("second")
    assert not rig.attempt(second)
    rig.now_s += 15.0
    assert rig.attempt(second)


def test_the_leader_stops_before_anybody_else_may_think_it_gone(rig: Rig) -> None:
    """Its time counts from before its request; a process that was stopped knows immediately that it lost the Lease."""
    first, second = rig.candidate("first"), rig.candidate("second")
    rig.attempt(first)
    rig.attempt(second)
    holds = []
    for rig.now_s in (9.9, 10.0):
        holds.append(first.holds)
    assert holds == [True, False]
    assert not rig.attempt(second), "there are five seconds in between"


def test_of_two_that_take_a_lease_at_once_one_gets_it(rig: Rig) -> None:
    """A Lease that changed since it was read is not written."""
    first, second, third = (rig.candidate(each) for each in ("first", "second", "third"))
    rig.attempt(first)
    for each in (second, third):
        rig.attempt(each)
    rig.now_s = 20.0
    slow = rig.server.faults.hang("*/leases/*", "PUT", times=1)
    late = rig.reactor.submit(second.attempt())
    while not slow.hits:
        assert not late.done()
    assert rig.attempt(third)
    rig.server.faults.end(slow)
    assert not late.result(5)
    assert rig.spec["holderIdentity"] == "third"
    assert not second.holds


def test_a_lease_that_was_given_back_is_free_at_once(rig: Rig) -> None:
    """Other candidates need not wait for its expiry; the process that released it no longer leads."""
    first, second = rig.candidate("first"), rig.candidate("second")
    rig.attempt(first)
    rig.attempt(second)
    rig.reactor.run(first.release(), 5)
    assert not first.holds
    assert rig.spec["holderIdentity"] == ""
    assert rig.attempt(second)
    rig.reactor.run(first.release(), 5)
    assert rig.spec["holderIdentity"] == "second", "what is another's is not given back"


def test_what_others_wrote_into_the_lease_stays(rig: Rig) -> None:
    """Unknown fields and annotations are left alone."""
    rig.attempt(rig.candidate("first"))
    change = {"metadata": {"annotations": {"team": "a"}}, "spec": {"strategy": "OldestEmulationVersion"}}
    rig.server.patch(LEASES, "default", "seaway", change)
    rig.attempt(rig.candidate("first"))
    assert rig.spec["strategy"] == "OldestEmulationVersion"
    assert (rig.server.get(LEASES, "default", "seaway") or {})["metadata"]["annotations"] == {"team": "a"}


def test_refusals_and_silence_are_distinguished_from_leaders(rig: Rig) -> None:
    """A missing right to read the Lease is reported; a hanging server is waited for no longer than a call."""
    first = rig.candidate("first")
    fault = rig.server.faults.error(403, "*/leases/*")
    with pytest.raises(ApiError, match="forbidden"):
        rig.attempt(first)
    rig.server.faults.end(fault)
    rig.server.faults.hang("*/leases/*")
    with pytest.raises(UnavailableError, match="did not answer"):
        rig.attempt(first)


def test_leading_ends_when_the_lease_cannot_be_renewed(rig: Rig) -> None:
    """The process waits, leads, and reports why it stops leading."""
    rig.now_s = time.monotonic()
    other = rig.candidate("other", time.monotonic)
    rig.attempt(other)
    said: list[LeadershipStatus] = []

    def receive(stand: LeadershipStatus) -> None:
        said.append(stand)
        if len(said) == 1:
            lease = {"spec": {"holderIdentity": ""}}
            rig.server.patch(LEASES, "default", "seaway", lease)
        if stand.leads:
            rig.server.faults.error(500, "*/leases/*")

    why = rig.reactor.run(
        lead(rig.candidate("first", time.monotonic, QUICK), QUICK, Random(1), NoLeaderLabel(), receive), 20
    )
    assert said[0] == LeadershipStatus("other is the leader; this process is a standby", can_take_over=True)
    assert said[-1] == LeadershipStatus()
    assert why.startswith(
        "the lease was not renewed for 0.3 s: "
    )  # then the last result: an error, or no answer in time


def test_leading_ends_when_another_user_took_the_lease(rig: Rig) -> None:
    """A process that sees another holder stops immediately."""

    def receive(stand: LeadershipStatus) -> None:
        assert stand.leads, stand
        rig.server.patch(LEASES, "default", "seaway", {"spec": {"holderIdentity": "other"}})

    candidate = rig.candidate("first", time.monotonic, replace(QUICK, renew_deadline_s=60))
    assert rig.reactor.run(lead(candidate, QUICK, Random(1), NoLeaderLabel(), receive), 20) == "other leads now"


def test_the_pod_that_leads_is_marked_and_one_that_waits_is_not(rig: Rig) -> None:
    """An old label on the pod is removed before it waits; the leader's pod is labelled soon."""
    labels = {"app": "seaway", LEADER_LABEL: "true"}
    spec = {"containers": [{"name": "seaway", "image": "seaway"}]}
    rig.server.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "me", "labels": labels}, "spec": spec})
    rig.attempt(rig.candidate("other"))
    terms = LeaseDurations(lease_duration_s=60, renew_deadline_s=60, retry_period_s=0.2)
    candidate = rig.candidate("first", time.monotonic, terms)
    sign = PodLeaderLabel(rig.apis[-1], "default", "me")
    fault = rig.server.faults.error(403, "*/pods/*", "PATCH")
    said: list[LeadershipStatus] = []

    def marked() -> bool:
        return LEADER_LABEL in (rig.server.get(PODS, "default", "me") or {})["metadata"]["labels"]

    def receive(stand: LeadershipStatus) -> None:
        said.append(stand)
        if stand.label_error:
            rig.server.faults.clear()
        elif stand.leads and said[-2].label_error:
            assert marked()
        elif stand.leads:
            assert not marked()
            rig.server.faults.error(403, "*/pods/*", "PATCH")
        elif stand.can_take_over:
            assert not marked()
            rig.server.patch(LEASES, "default", "seaway", {"spec": {"holderIdentity": ""}})
        else:
            assert marked()
            rig.server.faults.end(fault)

    leading = rig.reactor.submit(lead(candidate, terms, Random(1), sign, receive))
    until_s = time.monotonic() + 20
    while not any(each.label_error for each in said[:-1]):
        assert time.monotonic() < until_s, said
        assert not leading.done()
        time.sleep(0.01)
    leading.cancel()
    assert [bool(each.label_error) for each in said] == [False] * (len(said) - 2) + [True, False], (
        "it is reported once, and so is its end"
    )
    assert said[0].reason.startswith("the pod cannot be marked: ")
    assert not said[0].can_take_over
    assert [each.reason for each in said[-4:]] == ["other is the leader; this process is a standby", "", "", ""]
