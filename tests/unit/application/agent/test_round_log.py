"""Log entries about targets."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from seaway.application.agent.rounds import SUM_S, Watch
from seaway.testing.clocks import VirtualClock
from tests.unit.application.agent.scene import result

ANSWERED = result(0)
UNREACHABLE = replace(ANSWERED, received=0, latency_ns=None)


def test_silence_is_reported_once_and_its_end_too(caplog: pytest.LogCaptureFixture) -> None:
    """A silent target is logged when it stops answering, not again meanwhile, and when it answers again."""
    watch = Watch(VirtualClock())
    for each in (ANSWERED, UNREACHABLE, UNREACHABLE, ANSWERED, ANSWERED):
        watch.see([each], 0)
    assert [each.getMessage() for each in caplog.records] == ["no answer from gw-2", "answers again: gw-2"]


def test_target_that_is_gone_does_not_answer_again(caplog: pytest.LogCaptureFixture) -> None:
    """A silent target that is no longer probed has no log entry."""
    watch = Watch(VirtualClock())
    watch.see([UNREACHABLE], 0)
    caplog.clear()
    watch.see([replace(ANSWERED, target="gw-3")], 0)
    assert caplog.records == []


def test_paths_are_distinguished(caplog: pytest.LogCaptureFixture) -> None:
    """A silent path is named with its target, and many are not all named."""
    Watch(VirtualClock()).see([replace(UNREACHABLE, path=f"via-{number:02}") for number in range(12)], 0)
    assert "gw-2 by via-00, " in caplog.text
    assert caplog.text.strip().endswith("gw-2 by via-09 and 2 more")


def test_impossible_times_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    """Discarded answers are logged with their number."""
    Watch(VirtualClock()).see([replace(ANSWERED, discarded=2), replace(ANSWERED, discarded=1)], 0)
    assert "3 answers had impossible times" in caplog.text


def test_sum_is_reported_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    """The summary is logged at intervals, not with every round."""
    caplog.set_level(logging.INFO)
    clock = VirtualClock()
    watch = Watch(clock)
    for _ in range(3 * SUM_S // 10):
        clock.advance_s(10)
        watch.see([ANSWERED, replace(ANSWERED, target="gw-3")], 7)
    reported = [each.getMessage() for each in caplog.records]
    assert reported == ["2 of 2 ways to probe answer; 7 results wait for the controller"] * 3
