"""Health of a cluster's connection: required and optional sources."""

from __future__ import annotations

import logging

import pytest

from seaway.adapters.kubernetes.collect.changes import Limits
from seaway.adapters.kubernetes.collect.health import LIVEZ, OPTIONAL_TIMEOUT_S, Health

PATIENCE_S = 10.0


class Clock:
    """A clock that a test advances."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        """Return the time, seconds."""
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    """Return a clock."""
    return Clock()


@pytest.fixture
def health(clock: Clock) -> Health:
    """Return the health of a server that answers, with listed nodes; Rays are optional."""
    made = Health((LIVEZ, "nodes", "rays"), clock)
    made.succeeded(LIVEZ)
    made.succeeded("nodes")
    return made


def test_what_can_be_spared_never_makes_what_was_observed_before_old(health: Health, clock: Clock) -> None:
    """A required kind that fails makes the view stale after the patience; an optional one never does."""
    health.succeeded("rays")
    health.failed("rays", "its webhook is down", optional=True)
    clock.now_s += 1000
    assert health.unreachable_reason(PATIENCE_S) == ""
    assert health.failing()["rays"] == 1000
    health.failed("nodes", "refused")
    clock.now_s += PATIENCE_S
    assert health.unreachable_reason(PATIENCE_S) == "refused"


def test_a_view_is_begun_without_what_fails_for_long(
    health: Health, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """It is waited for at first; then the view begins without it, with a log entry and a metric, until it returns."""
    begun: list[bool] = []
    health.on_complete = lambda: begun.append(True)
    health.failed("rays", "east: its webhook is down", optional=True)
    clock.now_s += OPTIONAL_TIMEOUT_S - 1
    health.failed("rays", "east: its webhook is down", optional=True)
    assert health.unreachable_reason(PATIENCE_S) == "east: its webhook is down"
    assert not begun
    assert not health.unavailable()
    clock.now_s += 1
    with caplog.at_level(logging.WARNING):
        health.failed("rays", "east: its webhook is down", optional=True)
        health.failed("rays", "east: its webhook is still down", optional=True)
    assert health.unreachable_reason(PATIENCE_S) == ""
    assert begun == [True]
    assert health.unavailable() == {"rays": "east: its webhook is still down"}
    assert health.counts() == {"forbidden": 0, "failing": 1}
    assert [each.getMessage().partition(". ")[0] for each in caplog.records] == ["east: its webhook is down"]
    health.succeeded("rays")
    assert not health.unavailable()
    assert begun == [True]


def test_a_server_that_does_not_answer_says_nothing_of_a_kind(health: Health, clock: Clock) -> None:
    """The failure of a kind counts from the server's return: all fail before, and most recover then."""
    health.failed(LIVEZ, "no route")
    health.failed("rays", "no route", optional=True)
    clock.now_s += 1000
    health.failed("rays", "no route", optional=True)
    health.succeeded(LIVEZ)
    health.failed("rays", "not ready", optional=True)
    assert not health.complete
    clock.now_s += OPTIONAL_TIMEOUT_S / 2
    health.failed(LIVEZ, "no route")
    health.succeeded(LIVEZ)
    clock.now_s += OPTIONAL_TIMEOUT_S / 2
    health.failed("rays", "not ready", optional=True)
    assert not health.complete
    clock.now_s += OPTIONAL_TIMEOUT_S
    health.failed("rays", "not ready", optional=True)
    assert health.complete


def test_how_old_a_view_is_counts_from_the_first_failure(health: Health, clock: Clock) -> None:
    """Of all failing required sources the first one counts; a request without an answer counts, too."""
    assert health.age_s == 0
    health.ping_started()
    clock.now_s += 2
    assert health.age_s == 2
    health.succeeded(LIVEZ)
    assert health.age_s == 0
    health.failed("rays", "its webhook is down", optional=True)
    health.failed("nodes", "refused")
    clock.now_s += 3
    health.failed("nodes", "refused again")
    health.ping_started()
    clock.now_s += 4
    assert health.age_s == 7
    health.failed(LIVEZ, "no answer within 4 s")
    health.succeeded("nodes")
    assert (health.age_s, health.failing()[LIVEZ]) == (4, 4)
    health.succeeded(LIVEZ)
    assert health.age_s == 0


def test_a_question_ages_no_view_while_watches_tell(health: Health, clock: Clock) -> None:
    """A request may wait for a credential program; the outage begins with the last observation."""
    health.ping_started()
    for _ in range(4):
        clock.now_s += 5
        health.succeeded("nodes")
        assert health.age_s == 0
    clock.now_s += 3
    assert health.age_s == 3
    health.failed(LIVEZ, "no answer within 10 s")
    clock.now_s += 1
    assert (health.age_s, health.failing()[LIVEZ]) == (4, 4)


@pytest.mark.parametrize(("stale_after_s", "patience_s"), [(1.5, 1), (15, 10), (600, 10)])
def test_patience_ends_before_a_unreachable_cluster_gets_no_new_work(stale_after_s: float, patience_s: float) -> None:
    """The reason is known when the cluster gets no new jobs; a longer time until then does not extend the patience."""
    limits = Limits.within(stale_after_s, pod_start_timeout_s=7)
    assert limits.unreachable_timeout_s == pytest.approx(patience_s)
    assert limits.pod_start_timeout_s == 7
