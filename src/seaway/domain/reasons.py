"""Catalogue of reasons: English texts by code, with named parameters."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from seaway.domain.units import time_text

Params = Mapping[str, str | int]
"""Parameters of a reason. Times are RFC 3339 in UTC, and durations seconds."""

TEXTS: Mapping[str, str] = {
    "reserved_for_job": "reserved for job {job} (starts at about {starts_at})",
    "reserved_for_job_until": "reserved for job {job} until {until} (its start is unknown)",
    "reserved_for_other_tenant": "reserved for a job of another tenant (starts at about {starts_at})",
    "reserved_for_other_tenant_until": "reserved for a job of another tenant until {until} (its start is unknown)",
    "reserved_in_advance": "reserved for others from {begin} to {end}",
    "reserved_for_maintenance": "reserved for maintenance {name} from {begin} to {end}",
    "tpu_slice": "TPU slice that needs a gang with one replica per node: {slices}",
    "model_limit": "GPU model without room under the limit of {holders}: {models}",
}
"""English texts, which are the keys of translations. Filters have the texts of their reasons themselves."""

_TIMES = frozenset({"starts_at", "until", "begin", "end"})


def text(code: str, params: Params, template: str = "") -> str:
    """Return the text of a reason.

    Parameters
    ----------
    template
        Translated template; empty for English.

    Examples
    --------
    >>> text("reserved_for_job", {"job": "train", "starts_at": "2026-11-27T14:05:00Z"})
    'reserved for job train (starts at about 2026-11-27 14:05 UTC)'
    """
    return (template or TEXTS[code]).format(**{name: _written(name, value) for name, value in params.items()})


def time_param(at_ns: int) -> str:
    """Return a time of the wall clock as a parameter, to the minute."""
    return datetime.fromtimestamp(at_ns / 1e9, UTC).strftime("%Y-%m-%dT%H:%M:00Z")


def _written(name: str, value: str | int) -> str:
    if name in _TIMES:
        return datetime.fromisoformat(str(value)).strftime("%Y-%m-%d %H:%M UTC")
    if name.endswith("_s"):
        return time_text(int(value))
    return f"{value:,}" if isinstance(value, int) else value
