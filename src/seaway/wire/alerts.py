"""Views of alerts."""

from __future__ import annotations

from typing import Any, Literal

from seaway.application.monitoring.alerts import Alert
from seaway.wire.message import Shown
from seaway.wire.times import moment


class AlertOut(Shown):
    """Something that is wrong."""

    name: str
    """Name of the Prometheus alert with the same bound, such as `SeawayQueueLong`."""
    severity: Literal["critical", "warning", "info"]
    of: str
    """The queue, cluster or gateway, or a link as `from/to`; empty for Seaway itself and its database."""
    value: float
    """The figure that is past its bound: seconds, percent, a share from 0 to 1, or how many."""
    bound: float
    since: str


class AlertList(Shown):
    """Firing alerts, most severe first."""

    alerts: list[AlertOut]


def alert_fields(alert: Alert) -> dict[str, Any]:
    """Show what is wrong as the fields of `AlertOut`."""
    return {
        "name": alert.rule.name,
        "severity": alert.rule.severity,
        "of": alert.of,
        "value": round(alert.value, 3),
        "bound": alert.rule.bound,
        "since": moment(alert.since_ns),
    }
