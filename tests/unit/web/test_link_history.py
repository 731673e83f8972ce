"""Anything that links were like, as lines."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from seaway.web.pages.network.link import MAX_POINTS, points_of, step_s
from seaway.web.parts.chart import Line, chart
from seaway.wire.fleet import LinkStepOut

START = datetime(2026, 11, 21, 10, tzinfo=UTC)
LATENCY = Line("Latency", "var(--core)", "latency_ms")
WEEK_S = 7 * 24 * 3600


def step(minute: int, latency_ms: int | None = 10, **fields: object) -> LinkStepOut:
    """Make a step of a minute."""
    at = (START + timedelta(minutes=minute)).isoformat()
    latency_ns = None if latency_ms is None else spread(latency_ms * 1_000_000)
    usual = {"jitter_ns": spread(1_000_000), "loss_ppm": spread(0), "bandwidth_mbps": spread(1000)}
    more = {"used_mbps": spread(0), "samples": 1, "until": at}
    return LinkStepOut.model_validate({**usual, **more, "at": at, "latency_ns": latency_ns, **fields})


def spread(figure: int, most: int | None = None) -> dict[str, float]:
    """Make what was measured around a figure."""
    return {"min": figure, "mean": figure, "max": figure if most is None else most}


def test_steps_are_no_more_than_are_seen_apart() -> None:
    """A week has so many points, an hour one for each minute in which something is written down."""
    assert WEEK_S / step_s(WEEK_S) <= MAX_POINTS
    assert step_s(3600) == 60


def test_a_point_has_the_mean_latency_and_the_most_jitter() -> None:
    """Means of latency, the largest jitter and use."""
    (point,) = points_of([step(0, 11, jitter_ns=spread(1, 5_000_000), used_mbps=spread(2, 9))])
    assert (point.latency_ms, point.jitter_ms, point.capacity_mbps, point.used_mbps) == (11, 5, 1000, 9)


def test_what_answered_nothing_has_loss_and_no_times() -> None:
    """The line of latency ends there, that of loss is at 100."""
    nothing = {"jitter_ns": None, "loss_ppm": spread(1_000_000), "bandwidth_mbps": None, "used_mbps": None}
    (point,) = points_of([step(0, None, **nothing)])
    assert (point.latency_ms, point.jitter_ms, point.loss_percent, point.capacity_mbps) == (None, None, 100, None)


def test_a_line_breaks_where_nothing_was_written_down() -> None:
    """Five minutes without a step among steps of each minute are a gap, not a straight line."""
    points = points_of([step(minute) for minute in (0, 1, 2, 3, 8, 9)])
    data = chart(points, [LATENCY], "ms", (0, 1))["series"][0]["data"]
    assert [value for _, value in data] == [10, 10, 10, 10, None, 10, 10]
