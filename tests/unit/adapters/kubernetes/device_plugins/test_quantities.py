"""Kubernetes' quantities become whole numbers, exactly."""

from __future__ import annotations

import pytest

from seaway.adapters.kubernetes.quantities import integer, mebibytes, milli
from seaway.domain.errors import RejectedError


@pytest.mark.parametrize(
    ("quantity", "thousandths"),
    [("500m", 500), ("4", 4000), (4, 4000), ("0.1", 100), ("1.5", 1500), (0.5, 500), ("1e3", 1_000_000),
     ("2k", 2_000_000), ("100u", 1), ("1n", 1), ("+1", 1000), (".5", 500), ("5.", 5000), ("0", 0), ("-0", 0)],
)  # fmt: skip
def test_cpu_is_read_in_thousandths_and_rounded_up(quantity: str | float, thousandths: int) -> None:
    """A request is never rounded down."""
    assert milli(quantity) == thousandths


@pytest.mark.parametrize(
    ("quantity", "mib"),
    [("1Gi", 1024), ("512Mi", 512), ("1Ki", 1), ("1048576", 1), ("1048577", 2), ("1G", 954), ("1.5Gi", 1536),
     ("1E", 953_674_316_407), ("1E6", 1), ("1e9", 954), ("1Ti", 1 << 20), ("1Pi", 1 << 30), ("1Ei", 1 << 40),
     ("128974848000m", 123)],
)  # fmt: skip
def test_memory_is_read_in_mib_and_rounded_up(quantity: str, mib: int) -> None:
    """Suffixes of both kinds, exponents, and an E that is a suffix and not an exponent."""
    assert mebibytes(quantity) == mib


def test_what_there_is_is_rounded_down() -> None:
    """A node with a little less than 2 MiB has 1."""
    assert (mebibytes("2097151", down=True), milli("1999u", down=True), integer("1999m", down=True)) == (1, 1, 1)


@pytest.mark.parametrize(
    "quantity",
    ["", ".", "-1", "1ki", "1 Gi", "1e3Ki", "e3", "1e", "1e999", "10Ei", "0x10", "1_000", "٣", "inf", "nan", "9" * 400],
)
def test_what_is_no_quantity_is_rejected(quantity: str) -> None:
    """The error shows the text, and parsing never takes long or much memory."""
    with pytest.raises(RejectedError, match="quantity"):
        milli(quantity)


def test_units_do_not_lose_a_byte() -> None:
    """No float is used: 2^53 + 1 bytes stay exact."""
    assert integer("9007199254740993") == 2**53 + 1
