"""What the same things look like on every dashboard: colours, thresholds, units."""

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
"""Colours of series by what they are called, where that says whether they are good news."""

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
"""From which value on which colour is shown, the lowest first, which is None."""

FILL: Steps = ((None, CALM), (50, GOOD), (85, DOUBTFUL), (98, BAD))
"""How full something is that is there to be filled, percent: too empty is no good sign either."""

PRESSURE: Steps = ((None, GOOD), (70, DOUBTFUL), (90, BAD))
"""How full something is that had better not be, percent."""

SILENCE_S: Steps = ((None, GOOD), (15, DOUBTFUL), (60, BAD))
"""How long nothing was heard of a cluster, seconds: it gets no new work, then its jobs go elsewhere."""

WAIT_S: Steps = ((None, GOOD), (600, DOUBTFUL), (3600, BAD))
LOSS: Steps = ((None, GOOD), (0.001, DOUBTFUL), (0.02, BAD))
ANY: Steps = ((None, GOOD), (1, BAD))
SOME: Steps = ((None, GOOD), (1, DOUBTFUL))
READY: Steps = ((None, BAD), (1, GOOD))
PLAIN: Steps = ((None, CALM),)


def thresholds(steps: Steps) -> builders.ThresholdsConfig:
    """Return steps as Grafana takes them."""
    return (
        builders.ThresholdsConfig()
        .mode(models.ThresholdsMode.ABSOLUTE)
        .steps([models.Threshold(value, colour) for value, colour in steps])
    )


def by_steps() -> builders.FieldColor:
    """Colour by thresholds."""
    return builders.FieldColor().mode(models.FieldColorModeId.THRESHOLDS)


def by_name() -> builders.FieldColor:
    """Colour by a series' name, so that a cluster has one colour wherever it is shown."""
    return builders.FieldColor().mode(models.FieldColorModeId.PALETTE_CLASSIC_BY_NAME)


def fixed(colour: str) -> list[models.DynamicConfigValue]:
    """Return the property that gives a series one colour."""
    return [models.DynamicConfigValue("color", {"mode": "fixed", "fixedColor": colour})]
