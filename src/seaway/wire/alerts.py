"""Views of alerts."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from seaway.application.monitoring.alerts import Alert
from seaway.wire.fields import LINE_PATTERN, moment, moment_or_none
from seaway.wire.message import CodeOut, Incoming, Shown, with_message


class AlertOut(Shown):
    """A firing alert."""

    name: str
    """Name of the rule, such as `SeawayQueueLong`. Most have a Prometheus alert with the same name and threshold."""
    severity: Literal["critical", "warning", "info"]
    of: str
    """Affected queue, cluster or gateway, or a link as `from/to`; empty for Seaway itself and its database."""
    value: float
    """Value that exceeds its threshold: seconds, percent, a share from 0 to 1, or a count. For a queue below its
    guarantee or at its limit, its longest wait.
    """
    bound: float
    message: str
    """The alert in words, with its object and figure, and the reason if it is known."""
    reason: CodeOut
    nodes: list[str] = Field(default_factory=list)
    """Affected nodes of the cluster, the first ten; empty if the alert is not about nodes or their GPUs."""
    since: str
    acknowledged_by: str = ""
    """Name of the token that acknowledged it; empty if none did."""
    acknowledged_at: str | None = None


class AcknowledgeIn(Incoming):
    """Firing alert that the caller takes care of."""

    name: Annotated[str, StringConstraints(pattern=LINE_PATTERN, max_length=63)]
    of: Annotated[str, StringConstraints(pattern=LINE_PATTERN, max_length=600)] = ""
    """Field `of` of the alert."""


class AlertList(Shown):
    """Firing alerts, most severe first."""

    alerts: list[AlertOut]


def alert_fields(alert: Alert) -> dict[str, Any]:
    """Return the fields of `AlertOut` for an alert."""
    known = alert.acknowledged
    return {
        "name": alert.rule.name,
        "severity": alert.rule.severity,
        "of": alert.of,
        "value": round(alert.value, 3),
        "bound": alert.rule.bound,
        **with_message(alert.reason),
        "nodes": list(alert.nodes),
        "since": moment(alert.since_ns),
        "acknowledged_by": known.actor if known else "",
        "acknowledged_at": moment_or_none(known.at_ns if known else None),
    }
