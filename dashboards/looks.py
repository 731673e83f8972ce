"""Colours, thresholds and units that all dashboards share."""

from __future__ import annotations

from collections.abc import Sequence

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.models import dashboard as models

GOOD, DOUBTFUL, BAD, CALM, NEUTRAL = "green", "orange", "red", "blue", "text"

ALLOCATED, USED, IDLE = "blue", "purple", "#8e8e8e"

STEADY = {
    "running": GOOD,
    "completed": GOOD,
    "taken": GOOD,
    "answered": GOOD,
    "measured": GOOD,
    "read": GOOD,
    "up": GOOD,
    "reported": CALM,
    "scheduled": CALM,
    "deploying": "light-blue",
    "pending": "#8e8e8e",
    "held": "light-blue",
    "skipped": "#8e8e8e",
    "queued": DOUBTFUL,
    "stale": DOUBTFUL,
    "lossy": DOUBTFUL,
    "late": DOUBTFUL,
    "suspended": "yellow",
    "preempted": "purple",
    "unknown": "#8e8e8e",
    "cancelled": "#8e8e8e",
    "deleted": "dark-purple",
    "failed": BAD,
    "refused": BAD,
    "unanswered": BAD,
    "lost": BAD,
}
"""Colours of series by their names, if the name implies good or bad."""

PERCENT, SHARE, SECONDS, NANOSECONDS, BYTES, MBITS, PER_SECOND, NUMBER = (
    "percent",
    "percentunit",
    "s",
    "ns",
    "bytes",
    "Mbits",
    "ops",
    "short",
)

Steps = Sequence[tuple[float | None, str]]
"""Thresholds with their colours, in ascending order; the first value is None."""

FILL: Steps = ((None, CALM), (50, GOOD), (85, DOUBTFUL), (98, BAD))
"""Thresholds for allocation, percent: low values are not good either."""

PRESSURE: Steps = ((None, GOOD), (70, DOUBTFUL), (90, BAD))
"""Thresholds for utilisation that should stay low, percent."""

SILENCE_S: Steps = ((None, GOOD), (15, DOUBTFUL), (60, BAD))
"""Thresholds for the time since the last report of a cluster, seconds: no new jobs, then jobs move elsewhere."""

WAIT_S: Steps = ((None, GOOD), (600, DOUBTFUL), (3600, BAD))
LOSS: Steps = ((None, GOOD), (0.001, DOUBTFUL), (0.02, BAD))
ANY: Steps = ((None, GOOD), (1, BAD))
SOME: Steps = ((None, GOOD), (1, DOUBTFUL))
READY: Steps = ((None, BAD), (1, GOOD))
PLAIN: Steps = ((None, CALM),)


def thresholds(steps: Steps) -> builders.ThresholdsConfig:
    """Return thresholds for Grafana."""
    return (
        builders.ThresholdsConfig()
        .mode(models.ThresholdsMode.ABSOLUTE)
        .steps([models.Threshold(value, colour) for value, colour in steps])
    )


def by_steps() -> builders.FieldColor:
    """Return the colour mode by thresholds."""
    return builders.FieldColor().mode(models.FieldColorModeId.THRESHOLDS)


def by_name() -> builders.FieldColor:
    """Return the colour mode by the name of a series, so that a cluster has the same colour in all panels."""
    return builders.FieldColor().mode(models.FieldColorModeId.PALETTE_CLASSIC_BY_NAME)


def fixed(colour: str) -> list[models.DynamicConfigValue]:
    """Return the property of a fixed colour."""
    return [models.DynamicConfigValue("color", {"mode": "fixed", "fixedColor": colour})]
