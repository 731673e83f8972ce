"""Cache of exporters' values, their age, and their problems."""

from __future__ import annotations

import logging

import pytest

from seaway.adapters.kubernetes.usage.measured import Exporter, ScrapeOutcome, UsageReadings
from seaway.adapters.kubernetes.usage.parse import Reading
from seaway.application.ports.usage import NodeUsage, Used, add_up

HAMI = Exporter("hami", "monitor", 9394, "host1", 0)
DCGM = Exporter("gpu", "dcgm", 9400, "host1", 1)
OTHER = Exporter("gpu", "dcgm-2", 9400, "host2", 1)


class Clock:
    """A clock that a test sets."""

    now_s = 100.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now_s


def test_figures_have_an_age_and_then_none() -> None:
    """An expired value is missing, rather than zero."""
    clock = Clock()
    measured = UsageReadings("east", 30, clock)
    measured.read(HAMI, Reading({"GPU-0": Used(5, 10)}, {}, 0))
    clock.now_s = 130
    usage = measured.usage()["host1"]
    assert usage.device("GPU-0") == Used(5, 10, 30)
    assert usage.device("GPU-1") is None
    clock.now_s = 130.1
    assert measured.usage() == {}


def test_of_two_exporters_on_a_node_the_first_in_rank_counts() -> None:
    """The rule applies to each value; the age is that of the older one, and an expired value does not count."""
    clock = Clock()
    measured = UsageReadings("east", 30, clock)
    measured.read(DCGM, Reading({"GPU-0": Used(7, 20), "GPU-1": Used(8, 30)}, {}, 0))
    clock.now_s = 110
    containers = {("GPU-0", "a", "b"): {"c": Used(1, 2)}}
    measured.read(HAMI, Reading({"GPU-0": Used(5, None)}, containers, 0))
    assert measured.usage()["host1"] == NodeUsage(10, {"GPU-0": Used(5, 20), "GPU-1": Used(8, 30)}, containers)
    clock.now_s = 135
    assert measured.usage()["host1"].devices == {"GPU-0": Used(5, None)}


def test_an_exporter_that_fails_or_goes_takes_no_others_figures() -> None:
    """The last values of a broken exporter stay until they expire; those of a deleted one end."""
    measured = UsageReadings("east", 30, Clock())
    for each in (HAMI, OTHER):
        measured.read(each, Reading({"GPU-0": Used(5, 10)}, {}, 0))
    measured.failed(HAMI, ScrapeOutcome.UNREACHABLE, "it hangs")
    assert measured.usage().keys() == {"host1", "host2"}
    measured.forget(HAMI)
    assert measured.usage().keys() == {"host2"}


def test_each_trouble_is_counted_every_time_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """A problem of many exporters is one log entry, again only after it ended for all. Its text stays one line."""
    measured = UsageReadings("east", 30, Clock())
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            for each in (HAMI, DCGM, OTHER):
                measured.failed(each, ScrapeOutcome.FORBIDDEN, "no\nright " + "x" * 1000)
        assert [each.levelno for each in caplog.records] == [logging.INFO]  # the right is optional
        assert "\n" not in caplog.text.strip()
        assert len(caplog.text) < 600
        measured.read(HAMI, Reading({}, {}, 2))
        assert "2 of its figures" in caplog.messages[-1]
        for each in (HAMI, DCGM, OTHER):
            measured.read(each, Reading({}, {}, 0))
        measured.failed(DCGM, ScrapeOutcome.FORBIDDEN, "no right")
    assert len(caplog.records) == 3
    assert measured.counts() == {"read": 3, "broken": 1, "unreadable": 0, "refused": 10, "unreachable": 0}


def test_a_container_without_a_name_uses_what_its_pod_does() -> None:
    """If a share's container is not known, the pod's whole use of that device counts."""
    there = {"a": Used(1, 10), "b": Used(2, None)}
    usage = NodeUsage(0, {}, {("GPU-0", "ns", "pod"): there})
    assert usage.container("GPU-0", "ns", "pod", "a") == Used(1, 10)
    assert usage.container("GPU-0", "ns", "pod", "c") is None
    assert usage.container("GPU-0", "ns", "pod", "") == Used(3, None)
    assert usage.container("GPU-1", "ns", "pod", "") is None


def test_a_sum_lacks_what_a_part_lacks() -> None:
    """Unknown is not zero."""
    assert add_up([Used(1, 2), Used(3, 4)]) == Used(4, 6)
    assert add_up([Used(1, None), Used(3, 4)]) == Used(4, None)
    assert add_up([Used(1, 2), None]) is None
    assert add_up([]) is None
