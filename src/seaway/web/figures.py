"""Formats of numbers, times and memory sizes in pages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache

from babel.core import Locale
from babel.dates import format_timedelta
from babel.numbers import format_decimal
from babel.units import format_unit

FILTERS = ("count", "gib", "whole", "share", "percent", "ago", "duration", "clock", "span", "exact")
"""Functions that templates use as filters."""

MIB_PER_GIB = 1024
GIB_PER_TIB = 1024

UNITS = (
    (86_400, "duration-day", "d"),
    (3600, "duration-hour", "h"),
    (60, "duration-minute", "min"),
    (1, "duration-second", "s"),
)
"""Units of time: seconds, the name in Babel, and the English short form. Babel's short form is too wide for columns."""


@lru_cache(maxsize=8192)
def _decimal(number: float, pattern: str, locale: Locale) -> str:
    """Format a number. The cache speeds up large pages, which contain the same numbers many times."""
    return format_decimal(number, format=pattern, locale=locale)


def count(number: float, locale: Locale) -> str:
    """Format a number with thousands separators."""
    return _decimal(number, "#,##0", locale)


def gib(mib: float, locale: Locale) -> str:
    """Format an amount of memory, given in MiB, as GiB or TiB."""
    amount = mib / MIB_PER_GIB
    if amount >= 10 * GIB_PER_TIB:
        return f"{_decimal(amount / GIB_PER_TIB, '#,##0.0', locale)} TiB"
    return f"{_decimal(amount, '#,##0' if amount >= 10 else '#,##0.#', locale)} GiB"


def whole(milli: float, locale: Locale) -> str:
    """Format an amount given in thousandths, with at most one decimal."""
    return _decimal(milli / 1000, "#,##0.#", locale)


def share(part: float, total: float) -> float:
    """Return a part of a total in percent, 0 to 100; 0 for an empty total."""
    return min(100.0, 100.0 * part / total) if total else 0.0


def percent(number: float, locale: Locale) -> str:
    """Format a percentage given as 0 to 100. Other values are never rounded to 0 or 100."""
    if 0 < number < 0.1:
        return f"<{_decimal(0.1, '0.#', locale)} %"
    if 99.9 < number < 100:
        return f">{_decimal(99.9, '0.#', locale)} %"
    return f"{_decimal(number, '0' if 10 <= number < 99.5 or number >= 100 else '0.#', locale)} %"


def ago(moment: str, locale: Locale) -> str:
    """Format the time since a moment, which is given as RFC 3339."""
    since = datetime.now(UTC) - datetime.fromisoformat(moment)
    return format_timedelta(-since, add_direction=True, locale=locale)


def duration(seconds: float, locale: Locale) -> str:
    """Format a duration in words."""
    return format_timedelta(timedelta(seconds=seconds), locale=locale)


def clock(moment: str) -> str:
    """Format a moment given as RFC 3339 to the second, in UTC."""
    return datetime.fromisoformat(moment).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def span(seconds: float, locale: Locale) -> str:
    """Format a duration with its two largest units."""
    whole, parts = max(int(seconds), 0), list[str]()
    for size, unit, short in UNITS:
        count, whole = divmod(whole, size)
        if count or (not parts and size == 1):
            parts.append(
                f"{count} {short}" if locale.language == "en" else format_unit(count, unit, "short", locale=locale)
            )
    return " ".join(parts[:2])


def exact(number: float, digits: int, locale: Locale) -> str:
    """Format a number with a fixed number of decimals."""
    return _decimal(number, f"#,##0.{'0' * digits}" if digits else "#,##0", locale)
