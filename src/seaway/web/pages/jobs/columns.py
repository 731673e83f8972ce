"""Columns of the list of jobs, filters by date, and exported files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import TYPE_CHECKING

from seaway.web.words import clock

if TYPE_CHECKING:
    from seaway.wire.job_out import JobOut

DATES = ("submitted_from", "submitted_until", "ended_from", "ended_until")
"""Filters by time: a date, or a time with its zone."""

COLUMNS = {
    "placement": "Placement",
    "request": "Request",
    "gpus": "GPUs held",
    "queue": "Queue",
    "tenant": "Tenant",
    "priority": "Priority",
    "labels": "Labels",
    "wait": "Wait",
    "submitted": "Submitted",
    "started": "Started",
    "ended": "Ended",
    "duration": "Duration",
    "gpu_hours": "GPU-hours",
    "cost": "Cost",
}
"""Columns to choose, besides the job and its state, with their titles in English."""

DEFAULT_COLUMNS = ("placement", "request", "gpus", "queue", "priority", "wait", "submitted")

NUMBERS = frozenset({"gpus", "priority", "wait", "submitted", "started", "ended", "duration", "gpu_hours", "cost"})
"""Columns of figures, which are aligned to the right."""

WIDTHS_PX = {"placement": 130, "request": 120, "gpus": 58, "queue": 112, "priority": 68, "wait": 108, "gpu_hours": 84}
"""Widths of columns; others have `WIDTH_PX`. State and reason have the rest."""

WIDTH_PX = 122

FIRST_PX = 34 + 200 + 180
"""Least width of the job, its box and its state."""

SORTS = {
    "name": "name",
    "state": "state",
    "queue": "queue",
    "tenant": "tenant",
    "submitted": "-submitted",
    "started": "-started",
    "ended": "-ended",
    "duration": "-duration",
    "gpu_hours": "-gpu_hours",
    "cost": "-cost",
}
"""Sortable columns, and their order after the first click."""


def least_px(columns: Sequence[str]) -> int:
    """Return the width below which a table with these columns scrolls, in pixels."""
    return FIRST_PX + sum(WIDTHS_PX.get(name, WIDTH_PX) for name in columns)


def waited_s(job: JobOut) -> float | None:
    """Return the seconds from the submission of a job to its first start, or until now; None if it ended before."""
    if job.ended_at and not job.started_at:
        return None
    until = datetime.fromisoformat(job.started_at) if job.started_at else datetime.now(UTC)
    return (until - datetime.fromisoformat(job.submitted_at)).total_seconds()


def lasted_s(job: JobOut) -> float | None:
    """Return the seconds since the first start of a job, until its end or until now; None if it never started."""
    if not job.started_at:
        return None
    end = datetime.fromisoformat(job.ended_at) if job.ended_at else datetime.now(UTC)
    return (end - datetime.fromisoformat(job.started_at)).total_seconds()


def moment_of(name: str, value: str, zone: tzinfo = UTC) -> str:
    """Return a filter as the API needs it. A date is its start in a time zone, or at the end of a range its end."""
    if name not in DATES or len(value) > len("2026-11-21"):
        return value
    try:
        day = date.fromisoformat(value) + timedelta(days=name.endswith("_until"))
        return datetime.combine(day, time(), zone).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError):
        return value


def date_of(name: str, value: str) -> str:
    """Return the date of a filter by time; empty for an invalid one."""
    try:
        last = datetime.fromisoformat(moment_of(name, value)) - timedelta(microseconds=name.endswith("_until"))
    except (ValueError, OverflowError):
        return ""
    return last.date().isoformat()


def time_of(name: str, value: str) -> str:
    """Return the time of a filter as pages show it, or an invalid one as it is."""
    try:
        return clock(moment_of(name, value))
    except ValueError:
        return value


FIELDS = (
    "id",
    "name",
    "tenant",
    "queue",
    "state",
    "reason",
    "message",
    "priority",
    "replicas",
    "held_replicas",
    "held_gpus",
    "clusters",
    "nodes",
    "submitted_by",
    "submitted_at",
    "started_at",
    "ended_at",
    "duration_s",
    "gpu_hours",
    "cost",
    "unpriced_gpu_hours",
    "labels",
)
"""Columns of an exported file."""

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters of texts that spreadsheets would run as formulas."""


def csv_of(rows: Sequence[JobOut]) -> bytes:
    """Return jobs as CSV (RFC 4180), in UTF-8."""
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\r\n")
    writer.writerow(FIELDS)
    writer.writerows(list(_cells(job)) for job in rows)
    return made.getvalue().encode()


def _cells(job: JobOut) -> Iterator[object]:
    seconds = lasted_s(job)
    labels = job.spec.get("labels") or {}
    own = {
        "reason": job.reason.code,
        "duration_s": None if seconds is None else round(seconds),
        "clusters": " ".join(job.clusters),
        "nodes": " ".join(job.nodes),
        "labels": " ".join(f"{name}={value}" for name, value in labels.items()),
        "cost": job.cost.cost if job.cost else None,
        "unpriced_gpu_hours": job.cost.unpriced_gpu_hours if job.cost else None,
    }
    for name in FIELDS:
        value = own[name] if name in own else getattr(job, name)
        yield f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
