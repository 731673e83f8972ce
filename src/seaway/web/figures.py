"""How figures are written for people."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from babel.core import Locale
from babel.dates import format_timedelta
from babel.numbers import format_decimal

FILTERS = ("count", "gib", "whole", "share", "percent", "ago", "lasting")
"""What templates have as filters."""

MIB_PER_GIB = 1024
GIB_PER_TIB = 1024


def count(number: float, locale: Locale) -> str:
    """Write a number with its thousands apart."""
    return format_decimal(number, format="#,##0", locale=locale)


def gib(mib: float, locale: Locale) -> str:
    """Write an amount of memory, given in MiB, in GiB or TiB."""
    amount = mib / MIB_PER_GIB
    if amount >= 10 * GIB_PER_TIB:
        return f"{format_decimal(amount / GIB_PER_TIB, format='#,##0.0', locale=locale)} TiB"
    return f"{format_decimal(amount, format='#,##0' if amount >= 10 else '#,##0.#', locale=locale)} GiB"


def whole(milli: float, locale: Locale) -> str:
    """Write an amount that is given in thousandths, with one digit where it is not whole."""
    return format_decimal(milli / 1000, format="#,##0.#", locale=locale)


def share(part: float, total: float) -> float:
    """Return how much of a total a part is, 0 to 100; 0 of nothing."""
    return min(100.0, 100.0 * part / total) if total else 0.0


def percent(number: float, locale: Locale) -> str:
    """Write a percentage, given as 0 to 100."""
    return f"{format_decimal(number, format='0' if number >= 10 else '0.#', locale=locale)} %"


def ago(moment: str, locale: Locale) -> str:
    """Write how long ago a moment was, given as RFC 3339."""
    since = datetime.now(UTC) - datetime.fromisoformat(moment)
    return format_timedelta(-since, add_direction=True, locale=locale)


def lasting(seconds: float, locale: Locale) -> str:
    """Write how long something takes."""
    return format_timedelta(timedelta(seconds=seconds), locale=locale)
