"""Parser of Kubernetes quantities with exact arithmetic.

References
----------
Kubernetes API, v1.36: apimachinery/pkg/api/resource, the grammar of ``Quantity``.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

from seaway.domain.errors import RejectedError

MIB = 1 << 20
LARGEST = (1 << 63) - 1
"""Largest quantity that Kubernetes stores."""

_FORM = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]{0,30})(?:\.(?P<part>[0-9]{0,30}))?"
    r"(?P<unit>[numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2}|)"
)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


REMEMBERED = 4096
"""Number of cached quantities per unit. The pods of a cluster request the same few quantities."""


def exact(quantity: str | int | float) -> Fraction:
    """Return the value of a quantity, such as ``500m``, ``1.5Gi``, ``2e3`` or 4.

    Raises
    ------
    RejectedError
        When it is not a quantity, is negative, or exceeds the limit of Kubernetes.
    """
    text = str(quantity)
    found = _FORM.fullmatch(text)
    if found is None or not (found["whole"] or found["part"]):
        raise RejectedError(f"{_short(text)} is not a quantity; they look like 500m, 4, 16Gi or 1e3")
    part = found["part"] or ""
    value = Fraction(int(found["whole"] + part or "0"), 10 ** len(part)) * _factor(found["unit"])
    if found["sign"] == "-" and value:
        raise RejectedError(f"the quantity {_short(text)} is negative")
    if value > LARGEST:
        raise RejectedError(f"the quantity {_short(text)} is beyond 2^63 - 1")
    return value


@lru_cache(REMEMBERED)
def milli(quantity: str | int | float, *, down: bool = False) -> int:
    """Return a quantity in thousandths; round requests up, and capacities `down`.

    Raises
    ------
    RejectedError
        As for `exact`.
    """
    return _rounded(exact(quantity) * 1000, down)


@lru_cache(REMEMBERED)
def mebibytes(quantity: str | int | float, *, down: bool = False) -> int:
    """Return a quantity of bytes in MiB; round requests up, and capacities `down`.

    Raises
    ------
    RejectedError
        As for `exact`.
    """
    return _rounded(exact(quantity) / MIB, down)


@lru_cache(REMEMBERED)
def integer(quantity: str | int | float, *, down: bool = False) -> int:
    """Return a quantity as an integer, rounded up (as Kubernetes does) or down.

    Raises
    ------
    RejectedError
        As for `exact`.
    """
    return _rounded(exact(quantity), down)


def _factor(unit: str) -> Fraction:
    if unit in _BINARY:
        return Fraction(1 << _BINARY[unit])
    return Fraction(10) ** (_DECIMAL[unit] if unit in _DECIMAL else int(unit[1:]))


def _rounded(value: Fraction, down: bool) -> int:
    return value.numerator // value.denominator if down else -(-value.numerator // value.denominator)


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")
