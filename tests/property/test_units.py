"""Amounts with units: examples, and rules for every amount."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seaway.domain.errors import RejectedError
from seaway.domain.units import (
    LARGEST,
    MEMORY_UNITS,
    NS_BY_UNIT,
    RATE_UNITS,
    cpu_milli,
    duration_ns,
    memory_mib,
    percent_milli,
    rate_mbps,
    share_ppm,
)

READERS: tuple[Callable[[object], int], ...] = (
    memory_mib,
    cpu_milli,
    duration_ns,
    rate_mbps,
    share_ppm,
    percent_milli,
)

FIGURES = st.integers(0, 10**6).map(str) | st.decimals(0, 10**6, places=3, allow_nan=False).map(str)


@pytest.mark.parametrize(
    ("read", "value", "means"),
    [
        (memory_mib, "24Gi", 24_576),
        (memory_mib, "24GiB", 24_576),
        (memory_mib, "24576Mi", 24_576),
        (memory_mib, "24GB", 22_889),
        (memory_mib, "24G", 22_889),
        (memory_mib, "24g", 22_889),
        (memory_mib, " 1.5 Gi ", 1_536),
        (memory_mib, "1k", 1),
        (memory_mib, 0, 0),
        (cpu_milli, "500m", 500),
        (cpu_milli, "2", 2_000),
        (cpu_milli, 2, 2_000),
        (cpu_milli, 0.1, 100),
        (cpu_milli, "0.0001", 1),
        (duration_ns, "20ms", 20_000_000),
        (duration_ns, "600us", 600_000),
        (duration_ns, "600µs", 600_000),
        (duration_ns, "1.5s", 1_500_000_000),
        (duration_ns, "10m", 600 * 10**9),
        (duration_ns, "1h30m", 5_400 * 10**9),
        (duration_ns, 0, 0),
        (rate_mbps, "10Gbps", 10_000),
        (rate_mbps, "500Mbps", 500),
        (rate_mbps, "500 Mbit/s", 500),
        (rate_mbps, 500, 500),
        (rate_mbps, "1kbps", 1),
        (share_ppm, "0.1%", 1_000),
        (share_ppm, 0.001, 1_000),
        (share_ppm, 1, 1_000_000),
        (percent_milli, "30%", 300),
        (percent_milli, 0.3, 300),
        (percent_milli, "100 %", 1_000),
    ],
)
def test_amounts_are_read_as_people_mean_them(read: Callable[[object], int], value: object, means: int) -> None:
    """Each unit counts as documented, and a part of Seaway's own unit counts whole."""
    assert read(value) == means


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (memory_mib, 24),
        (memory_mib, "24"),
        (memory_mib, "24m"),
        (memory_mib, "24GBB"),
        (cpu_milli, "2 cores"),
        (cpu_milli, "2M"),
        (duration_ns, 20),
        (duration_ns, "20"),
        (duration_ns, "20 parsecs"),
        (duration_ns, "20 M"),
        (rate_mbps, "10GBps"),
        (share_ppm, 1.1),
        (share_ppm, "101%"),
        (percent_milli, 30),
    ],
)
def test_what_could_mean_something_else_is_refused(read: Callable[[object], int], value: object) -> None:
    """An amount without its unit, or with an ambiguous one, is rejected rather than guessed."""
    with pytest.raises(RejectedError):
        read(value)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    "value",
    [
        *(True, False, None, -1, -0.5, "-1", "-1Gi", float("nan"), float("inf"), "nan", "inf", "", "%", "1e99", "٣Gi"),
        *(10**400, "9" * 39, "9" * 10**6, b"1", [1], {"a": 1}, 1j),
    ],
    ids=lambda value: repr(value)[:12],
)
def test_what_is_no_amount_is_refused_by_all(read: Callable[[object], int], value: object) -> None:
    """Booleans, NaN, negative and absurd amounts and other types are rejected, and the error lists valid forms."""
    with pytest.raises(RejectedError, match=r"use .*like|more than all") as reported:
        read(value)
    assert len(str(reported.value)) < 250


def test_the_error_says_where() -> None:
    """The error can name the place in a file."""
    with pytest.raises(RejectedError, match=r"^fleet\.yaml:3:cpu: 'x' is not valid"):
        cpu_milli("x", where="fleet.yaml:3:cpu")


@given(FIGURES, st.sampled_from(sorted(MEMORY_UNITS.keys() - {"m"})))
def test_memory_is_exact_and_rounded_up(figure: str, unit: str) -> None:
    """The MiB are enough for the amount, and one less would not be; capital letters do not matter."""
    exact = Fraction(figure) * MEMORY_UNITS[unit]
    if exact > LARGEST:
        return
    assert memory_mib(figure + unit) == memory_mib(figure + unit.upper()) == ceil(exact)


@given(st.lists(st.tuples(FIGURES, st.sampled_from(sorted(NS_BY_UNIT))), min_size=1, max_size=2))
def test_times_add_up(parts: list[tuple[str, str]]) -> None:
    """A time of several parts is their sum."""
    exact = sum((Fraction(figure) * NS_BY_UNIT[unit] for figure, unit in parts), Fraction(0))
    if exact <= LARGEST:
        assert duration_ns("".join(figure + unit for figure, unit in parts)) == ceil(exact)


@given(FIGURES, st.sampled_from(sorted(RATE_UNITS)))
def test_bandwidth_is_exact_and_rounded_up(figure: str, unit: str) -> None:
    """A bandwidth above zero never reads as 0, which would set no bound."""
    read = rate_mbps(figure + unit)
    assert read == ceil(Fraction(figure) * RATE_UNITS[unit])
    assert (read == 0) == (Fraction(figure) == 0)


@given(st.integers(0, 1_000_000))
def test_shares_return_whole(parts: int) -> None:
    """A share in percent, as text or as a float, reads as its original parts."""
    assert share_ppm(f"{parts / 10_000:.4f}%") == share_ppm(parts / 1_000_000) == parts
    if parts <= 1000:
        assert percent_milli(f"{parts / 10:.1f}%") == percent_milli(parts / 1000) == parts


@given(st.sampled_from(READERS), st.text(max_size=50) | st.floats() | st.integers())
def test_anything_is_read_or_refused(read: Callable[[object], int], value: object) -> None:
    """For any value, the result is an amount in range or a `RejectedError`."""
    with suppress(RejectedError):
        assert 0 <= read(value) <= LARGEST
