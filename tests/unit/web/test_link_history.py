"""What links were like, as lines."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from seaway.web.parts.link_history import MOST_POINTS, Line, chart, points_of
from seaway.wire.fleet import LinkSampleOut

START = datetime(2026, 11, 21, 10, tzinfo=UTC)
LATENCY = Line("Latency", "var(--core)", "latency_ms")


def sample(minute: int, latency_ms: int | None = 10, **fields: int) -> LinkSampleOut:
    """Make a sample."""
    usual = {"jitter_ns": 1_000_000, "loss_ppm": 0, "bandwidth_mbps": 1000, "used_mbps": 0}
    at = (START + timedelta(minutes=minute)).isoformat()
    latency_ns = None if latency_ms is None else latency_ms * 1_000_000
    ends = {"source": "gw-1", "target": "gw-2", "path": ""}
    return LinkSampleOut.model_validate(ends | usual | {"at": at, "latency_ns": latency_ns} | fields)


def test_many_samples_become_few_points() -> None:
    """A week of minutes is drawn as no more points than are seen apart: means of latency, the largest jitter."""
    week = [sample(minute, 10 + minute % 2 * 2, jitter_ns=minute) for minute in range(7 * 24 * 60)]
    points = points_of(week, 7 * 24 * 3600)
    assert len(points) <= MOST_POINTS + 1
    assert points[1].latency_ms == 11
    assert points[-1].jitter_ms == week[-1].jitter_ns / 1_000_000


def test_what_answered_nothing_has_loss_and_no_times() -> None:
    """The line of latency ends there, that of loss is at 100."""
    (point,) = points_of([sample(0, None, loss_ppm=1_000_000, bandwidth_mbps=0)], 3600)
    assert (point.latency_ms, point.jitter_ms, point.loss_percent, point.capacity_mbps) == (None, None, 100, None)


def test_a_line_breaks_where_nothing_was_written_down() -> None:
    """Five minutes without a sample among samples of each minute are a gap, not a straight line."""
    points = points_of([sample(minute) for minute in (0, 1, 2, 3, 8, 9)], 3600)
    data = chart(points, [LATENCY], "ms", (0, 1))["series"][0]["data"]
    assert [value for _, value in data] == [10, 10, 10, 10, None, 10, 10]
