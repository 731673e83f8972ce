"""Quantities in Kubernetes' format: ``500m``, ``2``, ``16Gi``, ``1e3``."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal, InvalidOperation

_SUFFIXES = {
    **{name: Decimal(1024) ** power for power, name in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)},
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    **{name: Decimal(1000) ** power for power, name in enumerate(("k", "M", "G", "T", "P", "E"), 1)},
}


def milli(quantity: object) -> int:
    """Return a quantity in thousandths, rounded up.

    Examples
    --------
    >>> milli("1.5"), milli("250m"), milli("1Ki"), milli(2)
    (1500, 250, 1024000, 2000)

    Raises
    ------
    ValueError
        If it is not a quantity.
    """
    text = str(quantity)
    suffix = next((one for one in _SUFFIXES if text.endswith(one)), "")
    try:
        number = Decimal(text[: len(text) - len(suffix)]) * _SUFFIXES.get(suffix, Decimal(1))
        return int((number * 1000).to_integral_value(ROUND_CEILING))
    except InvalidOperation:
        raise ValueError(f"no quantity: {text}") from None


def written(thousandths: int) -> str:
    """Write a quantity in thousandths.

    Examples
    --------
    >>> written(1500), written(2000)
    ('1500m', '2')
    """
    return str(thousandths // 1000) if thousandths % 1000 == 0 else f"{thousandths}m"
