"""Amounts with units, such as ``24GB``, ``500m``, ``20ms`` or ``0.1%``, and their integer values.

Numbers are parsed exactly, without binary fractions, and rounded up to a whole unit. A bound therefore never becomes 0,
which would mean no bound. White space around a number and before its unit is ignored. An invalid amount raises
`RejectedError` with the accepted forms. So do booleans, negative numbers, NaN, and numbers above `LARGEST`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from math import ceil, isfinite
from typing import Any

from seaway.domain.errors import RejectedError
from seaway.domain.reasons import Reason, also, time_text

LARGEST = 2**53
"""Maximum amount. Floats and JSON parsers cannot represent larger integers exactly."""

LONGEST = 40
"""Maximum length of an amount, characters."""

FIGURE = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
AMOUNT = re.compile(rf"\s*({FIGURE})\s*([A-Za-zµμ%/]*)\s*", re.ASCII)
DURATION = re.compile(rf"\s*(?:{FIGURE}\s*[a-zµμ]+\s*)+", re.ASCII)
DURATION_PART = re.compile(rf"({FIGURE})\s*([a-zµμ]+)", re.ASCII)

MIB = Fraction(2**20)

_DECIMAL = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "p": 10**15}
_BINARY = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40, "pi": 2**50}
MEMORY_UNITS: dict[str, Fraction] = {
    unit + end: Fraction(size) / MIB for unit, size in {**_DECIMAL, **_BINARY}.items() for end in ("", "b")
}
"""MiB in each unit of memory, in lower case: k, M, G are powers of 1,000 and Ki, Mi, Gi powers of 1,024."""

CPU_UNITS = {"": Fraction(1000), "m": Fraction(1)}

NS_BY_UNIT = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "min": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86_400 * 10**9,
}
"""Nanoseconds in each unit of time."""

RATE_UNITS: dict[str, Fraction] = {"": Fraction(1)} | {
    prefix + end: size
    for prefix, size in {
        "": Fraction(1, 10**6),
        "k": Fraction(1, 1000),
        "m": Fraction(1),
        "g": Fraction(1000),
        "t": Fraction(10**6),
    }.items()
    for end in ("bps", "bit/s", "bit")
}
"""Mbit/s in each unit of bandwidth, in lower case. A number without a unit is in Mbit/s."""

SHARE_UNITS = {"": Fraction(1), "%": Fraction(1, 100)}

MEMORY_FORM = (
    "an amount of memory with its unit, like 24GB (24 times 1,000 to the 3rd) or 24Gi (24 times 1,024 to the 3rd)"
)
CPU_FORM = "a number of CPU cores, like 2, 0.5 or 500m"
GPU_FORM = "a number of GPUs, like 2, 0.5 or 500m"
DURATION_FORM = "a time with its unit, like 600us, 20ms, 1.5s, 10m, 2h or 1h30m"
SECONDS_FORM = "a time, like 90s, 10m, 2h, 1h30m or 60 (in seconds)"
RATE_FORM = "a bandwidth, like 10Gbps, 500Mbps or 500 (in Mbit/s)"
SHARE_FORM = "a share, like 0.1% or 0.001"
PERCENT_FORM = "a share of a device, like 30% or 0.3"


def memory_mib(value: object, *, where: str = "") -> int:
    """Parse an amount of memory, MiB.

    As in Kubernetes, ``k``, ``M``, ``G``, ``T`` and ``P`` are powers of 1,000, and ``Ki``, ``Mi``, ``Gi``, ``Ti`` and
    ``Pi`` powers of 1,024. A ``B`` may follow and is ignored: ``24GB`` is ``24G``, 22,889 MiB, and ``24GiB`` is
    ``24Gi``, 24,576 MiB. Case is ignored, except that ``m`` alone is rejected, because it means thousandths in
    Kubernetes. A number without a unit is rejected unless it is 0: Kubernetes reads it as bytes, the vGPU layer as
    MiB.

    Parameters
    ----------
    value
        The value as the user wrote it.
    where
        Position for the error message.
    """
    figure, unit = _amount(value, MEMORY_FORM, where)
    if unit == "" and figure == 0:
        return 0
    factor = None if unit == "m" else MEMORY_UNITS.get(unit.lower())
    return _whole(figure, factor, value, MEMORY_FORM, where)


def cpu_milli(value: object, *, where: str = "", form: str = CPU_FORM) -> int:
    """Parse a number of CPU cores, or of what `form` says, such as ``2``, ``0.5`` or ``500m``; thousandths of one."""
    figure, unit = _amount(value, form, where)
    return _whole(figure, CPU_UNITS.get(unit), value, form, where)


def duration_ns(value: object, *, where: str = "") -> int:
    """Parse a duration, nanoseconds.

    Units are ``ns``, ``us`` (or ``µs``), ``ms``, ``s``, ``m`` (or ``min``), ``h`` and ``d``, and can be combined, as in
    ``1h30m``. A number without a unit is rejected unless it is 0.
    """
    return _duration_ns(value, None, DURATION_FORM, where)


def seconds_ns(value: object, *, where: str = "") -> int:
    """Parse a duration as `duration_ns` does, but read a number without a unit as seconds; nanoseconds."""
    return _duration_ns(value, NS_BY_UNIT["s"], SECONDS_FORM, where)


def _duration_ns(value: object, plain_ns: int | None, form: str, where: str) -> int:
    if isinstance(value, str) and len(value) <= LONGEST and DURATION.fullmatch(value):
        total = Fraction(0)
        for figure, unit in DURATION_PART.findall(value):
            if unit not in NS_BY_UNIT:
                raise _invalid(value, form, where)
            total += Fraction(figure) * NS_BY_UNIT[unit]
        return _whole(total, Fraction(1), value, form, where)
    figure, unit = _amount(value, form, where)
    plain = 1 if figure == 0 else plain_ns
    return _whole(figure, Fraction(plain) if unit == "" and plain else None, value, form, where)


def rate_mbps(value: object, *, where: str = "") -> int:
    """Parse a bandwidth, Mbit/s: ``10Gbps``, ``500Mbps``, ``500Mbit/s``, or a number without a unit in Mbit/s.

    A capital ``B`` is rejected, because it may mean bytes.
    """
    figure, unit = _amount(value, RATE_FORM, where)
    factor = None if "B" in unit else RATE_UNITS.get(unit.lower())
    return _whole(figure, factor, value, RATE_FORM, where)


def share_ppm(value: object, *, where: str = "") -> int:
    """Parse a share, parts per million: ``0.1%`` or ``0.001``; at most 100%."""
    return _share(value, 1_000_000, SHARE_FORM, where)


def percent_milli(value: object, *, where: str = "") -> int:
    """Parse a share of a device's cores, thousandths: ``30%`` or ``0.3``; at most 100%."""
    return _share(value, 1000, PERCENT_FORM, where)


def _share(value: object, parts: int, form: str, where: str) -> int:
    figure, unit = _amount(value, form, where)
    read = _whole(figure * parts, SHARE_UNITS.get(unit), value, form, where)
    if read > parts:
        raise _more_than_all(value, where, is_percent=unit == "" and figure <= 100)
    return read


def _amount(value: object, form: str, where: str) -> tuple[Fraction, str]:
    """Split `value` into number and unit; the unit is empty if `value` is a number."""
    if isinstance(value, float) and isfinite(value) and value >= 0:
        return Fraction(repr(value)), ""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return Fraction(value), ""
    if isinstance(value, str) and len(value) <= LONGEST:
        match = AMOUNT.fullmatch(value)
        if match:
            return Fraction(match[1]), match[2]
    raise _invalid(value, form, where)


def _whole(figure: Fraction, factor: Fraction | None, value: object, form: str, where: str) -> int:
    """Return `figure` times `factor`, rounded up. A `factor` of None marks an unknown unit and raises."""
    if factor is None:
        raise _invalid(value, form, where)
    read = ceil(figure * factor)
    if read > LARGEST:
        raise _invalid(value, form, where, "too_large")
    return read


def _invalid(value: object, form: str, where: str, code: str = "not_valid") -> RejectedError:
    return RejectedError(also(Reason(code, value=_shown(value)), Reason("use", form=form)), where=where)


def _more_than_all(value: object, where: str, *, is_percent: bool) -> RejectedError:
    hint = Reason("percent_perhaps", value=str(value)) if is_percent else ""
    return RejectedError(also(Reason("more_than_all", value=repr(value)), hint), where=where)


def _shown(value: object) -> str:
    """Return a value for a message, truncated if it is long."""
    if isinstance(value, int) and abs(value) > LARGEST:
        return f"a figure of {value.bit_length()} bits"
    if isinstance(value, Mapping | list | tuple | set):
        return f"a {type(value).__name__}"
    shown = repr(value)
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…"


MIB_PER_GIB = 1024
GB_MIB = 10**9 / 2**20

_SMALL_TIMES = ((10**9, "s"), (10**6, "ms"), (10**3, "us"), (1, "ns"))


@lru_cache(4096)
def memory_text(mib: int) -> str:
    """Format memory as whole Gi or GB if exact, else as Mi."""
    if mib % MIB_PER_GIB == 0:
        return f"{mib // MIB_PER_GIB}Gi" if mib else "0"
    gb = round(mib / GB_MIB)
    if gb and memory_mib(f"{gb}GB") == mib:
        return f"{gb}GB"
    return f"{mib}Mi"


def size_text(size: int) -> str:
    """Format a number of bytes, such as that of a file."""
    return f"{size / (1 << 20):,.1f} MiB" if size >= 1 << 20 else f"{max(size / 1024, 0.1):,.1f} KiB"


def cpu_text(milli: int) -> str:
    """Format CPU as whole cores if exact, else as thousandths."""
    return f"{milli}m" if milli % 1000 else str(milli // 1000)


def share_text(milli: int) -> str:
    """Format thousandths as a percentage."""
    return f"{milli // 10}%" if milli % 10 == 0 else f"{milli / 10}%"


def loss_text(ppm: int) -> str:
    """Format parts per million as a percentage."""
    whole, rest = divmod(ppm, 10_000)
    return f"{whole}.{rest:04d}".rstrip("0").rstrip(".") + "%"


def loss_bound_percent(ppm: int) -> str:
    """Format the upper bound of a loss as a number of percent, rounded up to two digits.

    Examples
    --------
    >>> [loss_bound_percent(ppm) for ppm in (200_000, 6_667, 3_334, 1_000_000, 12)]
    ['20', '0.67', '0.34', '100', '0.0012']
    """
    step = 10 ** max(0, len(str(ppm)) - 2)
    whole, rest = divmod(-(-ppm // step) * step, 10_000)
    return f"{whole}.{rest:04d}".rstrip("0").rstrip(".")


def rate_text(mbps: int) -> str:
    """Format a bandwidth as whole Gbps if exact, else as Mbps."""
    return f"{mbps}Mbps" if mbps % 1000 or not mbps else f"{mbps // 1000}Gbps"


def short_time_text(ns: int) -> str:
    """Format nanoseconds in the largest exact unit; whole microseconds above 1 ms as a fraction of milliseconds.

    Examples
    --------
    >>> [short_time_text(ns) for ns in (2 * 10**9, 20_000_000, 12_300_000, 250_000)]
    ['2s', '20ms', '12.3ms', '250us']
    """
    if ns > 10**6 and ns % 10**6 and ns % 10**3 == 0:
        whole, rest = divmod(ns, 10**6)
        return f"{whole}.{rest // 10**3:03d}".rstrip("0") + "ms"
    size, unit = next(each for each in _SMALL_TIMES if ns % each[0] == 0)
    return f"{ns // size}{unit}" if ns else "0"


def rough_time_text(seconds: int) -> str:
    """Format seconds as an approximate duration in one unit.

    Examples
    --------
    >>> [rough_time_text(seconds) for seconds in (0, 59, 1_600, 7_200, 200_000)]
    ['0 s', '59 s', '27 min', '2 h', '2 days']
    """
    for size, unit, most in ((1, "s", 60), (60, "min", 120), (3600, "h", 48)):
        count = (seconds + size // 2) // size
        if count < most:
            return f"{count} {unit}"
    return f"{(seconds + 43_200) // 86_400:,} days"


FIGURES: dict[str, tuple[str, Callable[[Any], str]]] = {
    "replicas": ("replicas", str),
    "between_replicas": ("between_replicas", str),
    "time_limit_s": ("time_limit", time_text),
    "gpus": ("gpus", str),
    "gpu_memory_mib": ("gpu_memory", memory_text),
    "gpu_memory_percent": ("gpu_memory", lambda percent: f"{percent}%"),
    "gpu_milli": ("gpu_cores", share_text),
    "mig": ("mig", str),
    "gpu_topology": ("gpu_topology", str),
    "cpu_milli": ("cpu", cpu_text),
    "memory_mib": ("memory", memory_text),
    "max_latency_ns": ("max_latency", short_time_text),
    "max_jitter_ns": ("max_jitter", short_time_text),
    "max_loss_ppm": ("max_loss", loss_text),
    "min_bandwidth_mbps": ("min_bandwidth", rate_text),
    "regions": ("regions", str),
    "hardware": ("hardware", str),
    "cluster_labels": ("cluster_labels", str),
    "max_microprice": ("max_price_per_gpu_hour", str),
    "node_labels": ("node_labels", str),
    "models": ("gpu_model", str),
    "modes": ("gpu_mode", str),
    "use_types": ("gpu_use_types", str),
    "avoid_types": ("gpu_avoid_types", str),
    "use_uuids": ("gpu_uuids", str),
    "avoid_uuids": ("gpu_avoid_uuids", str),
}
"""Fields of a demand, with the name and the format that job files use for each."""


def figure_text(field: str, value: int | str) -> tuple[str, str]:
    """Return a field of a demand and its value as in a job file.

    Returns
    -------
    tuple of str and str
        Name of the field, and the formatted value.

    Examples
    --------
    >>> figure_text("gpu_memory_mib", 81_920)
    ('gpu_memory', '80Gi')
    >>> figure_text("max_latency_ns", 4_000_000)
    ('max_latency', '4ms')
    """
    word, written = FIGURES.get(field, (field, str))
    return word, written(value)


def ranges(numbers: Iterable[int]) -> str:
    """Format numbers with ranges.

    Examples
    --------
    >>> ranges([0, 1, 2, 5])
    '0-2, 5'
    """
    runs: list[list[int]] = []
    for each in sorted(numbers):
        if runs and runs[-1][-1] == each - 1:
            runs[-1][1:] = [each]
        else:
            runs.append([each])
    return ", ".join("-".join(map(str, run)) for run in runs)
