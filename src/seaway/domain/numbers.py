"""Numbers in texts of any origin: a value, or None. No text raises an error or takes long to read."""

from __future__ import annotations

import re
from fractions import Fraction

LARGEST = 2**63 - 1
"""Largest number that is read."""

_WHOLE = re.compile(r"\+?0*([0-9]{1,19})")
_DECIMAL = re.compile(r"([0-9]{0,19})(?:\.([0-9]{0,18}))?(?:[eE]([+-]?[0-9]{1,2}))?")


def whole_number(value: object, most: int = LARGEST) -> int | None:
    """Return a whole number from 0 to `most`; None if the value, a text or a number, is not one.

    Examples
    --------
    >>> whole_number("08"), whole_number("1e3"), whole_number("9" * 5000)
    (8, None, None)
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value if 0 <= value <= most else None
    match = _WHOLE.fullmatch(value) if isinstance(value, str) else None
    number = int(match[1]) if match else None
    return None if number is None or number > most else number


def exact_number(value: object, most: int = LARGEST) -> Fraction | None:
    """Return a decimal number from 0 to `most` exactly; None if the value, a text or a number, is not one.

    Examples
    --------
    >>> exact_number("2.50"), exact_number("1e999999"), exact_number("nan")
    (Fraction(5, 2), None, None)
    """
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    if isinstance(value, int):
        return Fraction(value) if 0 <= value <= most else None
    match = _DECIMAL.fullmatch(value if isinstance(value, str) else repr(value))
    if match is None or not (match[1] or match[2]):
        return None
    digits = match[2] or ""
    number = Fraction(int((match[1] or "") + digits)) * Fraction(10) ** (int(match[3] or 0) - len(digits))
    return number if number <= most else None
