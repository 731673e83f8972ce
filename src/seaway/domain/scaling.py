"""Triggers that set the number of replicas of a job while it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from seaway.domain.errors import RejectedError
from seaway.domain.reasons import Reason

UNIT = 1000
"""Number of thousandths in one."""

TOLERANCE_MILLI = 100
"""Relative difference from a target within which the number of replicas stays, thousandths, as in Kubernetes."""

SHRINK_AFTER_S = 300
"""Default of `Trigger.shrink_after_s`, as in Kubernetes."""

MAX_TRIGGERS = 8


class Metric(StrEnum):
    """Values that triggers compare with a target."""

    REQUESTS = "requests"
    """Requests per second, as the operator's query has them; the target is for each replica."""
    LATENCY = "latency"
    """Duration of requests, as the operator's query has it, seconds."""
    UTILIZATION = "utilization"
    """Share of the reserved GPU cores that is used."""
    QUEUE_DEPTH = "queue_depth"
    """Number of waiting jobs of its queue. The job shrinks while there are more."""
    QUERY = "query"
    """Result of a PromQL query of the job; the target is for each replica."""

    @property
    def divided(self) -> bool:
        """True if the value is for all replicas together, and the target for each."""
        return self in (Metric.REQUESTS, Metric.QUERY)


@dataclass(frozen=True, slots=True)
class Trigger:
    """A rule for the number of replicas: a metric with a target, or a time window.

    Attributes
    ----------
    metric
        The metric; None for a time window.
    target_milli
        Target of the metric, thousandths: of a request per second, a second, the reserved cores, a job, or the unit of
        the query.
    query
        PromQL query of the metric `QUERY`.
    start, end, timezone
        Cron expressions for the begin and the end of the time window, and the name of their time zone.
    replicas
        Number of replicas in the time window.
    shrink_after_s
        Seconds for which fewer replicas must suffice before the job shrinks.
    """

    metric: Metric | None = None
    target_milli: int = 0
    query: str = ""
    start: str = ""
    end: str = ""
    timezone: str = "UTC"
    replicas: int = 0
    shrink_after_s: int = SHRINK_AFTER_S

    def __post_init__(self) -> None:
        """Check that it is either a metric with a target, or a complete time window."""
        if self.shrink_after_s < 0:
            raise RejectedError(Reason("zero_seconds"), where="scale.shrink_after")
        if self.metric:
            self._check_metric()
        elif not (self.start and self.end and self.replicas):
            raise RejectedError(Reason("trigger_incomplete"), where="scale")
        else:
            self._check_window()

    def _check_metric(self) -> None:
        if self.start or self.end or self.replicas:
            raise RejectedError(Reason("trigger_of_both"), where="scale")
        if self.target_milli < 1:
            raise RejectedError(Reason("not_positive"), where="scale.target")
        if (self.metric is Metric.QUERY) != bool(self.query):
            raise RejectedError(Reason("query_with_metric"), where="scale.query")

    def _check_window(self) -> None:
        if self.query or self.target_milli:
            raise RejectedError(Reason("target_without_metric"), where="scale")
        try:
            ZoneInfo(self.timezone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            said = Reason("use_timezone", value=self.timezone)
            raise RejectedError(said, where="scale.timezone") from None

    @property
    def limits(self) -> bool:
        """True if it limits the number of replicas, rather than asks for them."""
        return self.metric is Metric.QUEUE_DEPTH

    @property
    def wakes(self) -> bool:
        """True if it has a value while the job has no replica."""
        return self.metric is None or self.metric.divided

    def number_for(self, value_milli: int, replicas: int) -> int | None:
        """Return the number of replicas for a value of the metric; None for a limit that is not reached.

        Within `TOLERANCE_MILLI` of the target, it is the present number. See the algorithm of the
        HorizontalPodAutoscaler of Kubernetes, whose averages and values are these two kinds of targets.

        Parameters
        ----------
        value_milli
            Value of the metric, thousandths.
        replicas
            Present number of replicas, at least 1 for a metric that is not `Metric.divided`.
        """
        if self.limits and value_milli <= self.target_milli:
            return None
        reference = self.target_milli * (replicas if self.metric and self.metric.divided else 1)
        if abs(value_milli - reference) * UNIT <= reference * TOLERANCE_MILLI:
            return replicas
        if self.limits:
            return max(replicas * self.target_milli // value_milli, 1)
        if self.metric and self.metric.divided:
            return -(-value_milli // self.target_milli)
        return -(-replicas * value_milli // self.target_milli)


def require_triggers(triggers: Sequence[Trigger], least: int, most: int) -> None:
    """Check the triggers of an elastic job.

    Parameters
    ----------
    least, most
        Bounds of its number of replicas.

    Raises
    ------
    RejectedError
        If a time window wants more than `most`, or no trigger can start the first replica again.
    """
    if len(triggers) > MAX_TRIGGERS:
        raise RejectedError(Reason("triggers_too_many", count=len(triggers), most=MAX_TRIGGERS), where="scale")
    for each in triggers:
        if each.replicas > most:
            raise RejectedError(Reason("more_than_job", value=each.replicas, most=most), where="scale.replicas")
    if not least and not any(each.wakes for each in triggers):
        said = Reason("nothing_wakes")
        raise RejectedError(said, where="replicas.min")


def wanted_number(asked: Sequence[int], limits: Sequence[int], least: int, most: int) -> int:
    """Return the number of replicas of a job: the largest that is asked for, within all limits and its bounds.

    Parameters
    ----------
    asked
        Numbers of the triggers that ask for replicas. Without any, it is as many as allowed.
    limits
        Numbers of the triggers that limit them.
    least, most
        Bounds of the number of replicas.
    """
    number = max(asked) if asked else most
    return max(min(number, most, *limits), least)
