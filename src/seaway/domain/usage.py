"""Groupings and lengths of the history of use."""

from __future__ import annotations

from enum import StrEnum


class UsageBy(StrEnum):
    """Grouping of a history."""

    FLEET = "fleet"
    CLUSTER = "cluster"
    TENANT = "tenant"
    QUEUE = "queue"


class UsageSpan(StrEnum):
    """Length of a history, until now."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"

    @property
    def length_s(self) -> int:
        """Length, seconds."""
        return {"hour": 3600, "day": 86_400, "week": 7 * 86_400, "month": 30 * 86_400}[self.value]

    @property
    def step_s(self) -> int:
        """Length of a step, seconds."""
        return {"hour": 60, "day": 900, "week": 3600, "month": 4 * 3600}[self.value]
