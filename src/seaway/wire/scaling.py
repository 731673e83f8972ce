"""Triggers of elastic jobs in messages."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, Literal

from cronsim import CronSim, CronSimError
from pydantic import Field

from seaway.domain import units
from seaway.domain.errors import RejectedError
from seaway.domain.reasons import Reason, time_text
from seaway.domain.scaling import SHRINK_AFTER_S, UNIT, Metric, Trigger
from seaway.domain.units import short_time_text
from seaway.wire import fields
from seaway.wire.message import Incoming

CRON_FIELDS = 5
NS_PER_MILLI = 1_000_000

_number = fields.reader(partial(units.cpu_milli, form="a number like 20 or 0.5"), fields.LARGEST_INT32)
_share = fields.reader(units.percent_milli, UNIT)
_latency_ns = fields.reader(units.seconds_ns, fields.LONGEST_BOUND_NS)

Cron = Annotated[str, Field(max_length=200, examples=["0 8 * * 1-5"])]


class ScaleIn(Incoming):
    """A trigger of an elastic job: a metric with a target, or a time window."""

    metric: Literal["requests", "latency", "utilization", "queue_depth", "query"] | None = None
    """Metric. `requests` (per second) and `latency` are queries that the operator sets. `utilization` is the share of
    its GPU cores that is used. `queue_depth` is the number of waiting jobs of its queue: the job shrinks while there
    are more. `query` is a query of your own, if the operator allows it.
    """
    target: Annotated[str, Field(max_length=64)] | float | int | None = None
    """Target: `20` requests per second for each replica, `200ms`, `70%`, `5` waiting jobs, or the result of the query
    divided by the replicas. Within 10 % of it, the number stays.
    """
    query: Annotated[str, Field(max_length=2000)] = ""
    """PromQL query with one value. `{pods}` is a regular expression for the names of the pods of the job."""
    start: Cron = ""
    """Begin of a time window, as a cron expression: minute, hour, day of the month, month, day of the week."""
    end: Cron = ""
    """End of the time window, as a cron expression."""
    timezone: Annotated[str, Field(max_length=100)] = "UTC"
    """Time zone of the time window, like Europe/Berlin."""
    replicas: Annotated[int, Field(ge=1)] | None = None
    """Number of replicas in the time window."""
    shrink_after: fields.Time = time_text(SHRINK_AFTER_S)
    """Time for which fewer replicas must suffice before the job shrinks."""

    def trigger(self) -> Trigger:
        """Return the trigger.

        Raises
        ------
        RejectedError
            If a value is invalid, or fields contradict each other.
        """
        metric = None if self.metric is None else Metric(self.metric)
        for name in ("start", "end"):
            require_cron(getattr(self, name), f"scale.{name}")
        return Trigger(
            metric,
            0 if self.target is None else target_milli(metric, self.target),
            self.query,
            " ".join(self.start.split()),
            " ".join(self.end.split()),
            self.timezone,
            self.replicas or 0,
            fields.seconds(self.shrink_after),
        )


def target_milli(metric: Metric | None, value: str | float) -> int:
    """Read a target in the unit of its metric, thousandths.

    Raises
    ------
    RejectedError
        If the value has another unit.
    """
    try:
        if metric is Metric.UTILIZATION:
            return _share(value)
        if metric is Metric.LATENCY:
            return -(-_latency_ns(value) // NS_PER_MILLI)
        return _number(value)
    except RejectedError as error:
        raise RejectedError(error.message, where="scale.target") from None


def require_cron(text: str, where: str) -> None:
    """Check a cron expression; an empty one is valid.

    Raises
    ------
    RejectedError
        If it is invalid, or never due.
    """
    if not text:
        return
    try:
        known = len(text.split()) == CRON_FIELDS and next(CronSim(text, datetime.now(UTC)), None)
    except CronSimError:
        known = None
    if not known:
        raise RejectedError(Reason("not_cron", text=text), where=where)


def trigger_text(trigger: Trigger) -> dict[str, Any]:
    """Write a trigger in the format of `ScaleIn`, without fields that have their default."""
    written: dict[str, Any] = {}
    if trigger.metric:
        written = {"metric": trigger.metric.value, "target": _target_text(trigger)}
        if trigger.query:
            written["query"] = trigger.query
    else:
        written = {"start": trigger.start, "end": trigger.end, "replicas": trigger.replicas}
        if trigger.timezone != "UTC":
            written["timezone"] = trigger.timezone
    if trigger.shrink_after_s != SHRINK_AFTER_S:
        written["shrink_after"] = time_text(trigger.shrink_after_s)
    return written


def _target_text(trigger: Trigger) -> str | int | float:
    milli = trigger.target_milli
    if trigger.metric is Metric.UTILIZATION:
        return units.share_text(milli)
    if trigger.metric is Metric.LATENCY:
        return short_time_text(milli * NS_PER_MILLI)
    return milli / UNIT if milli % UNIT else milli // UNIT
