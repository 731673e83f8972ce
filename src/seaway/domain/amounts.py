"""Exact amounts as people read them; `seaway.domain.units` reads every one of them back to the same integer."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from seaway.domain.units import memory_mib

MIB_PER_GIB = 1024
GB_MIB = 10**9 / 2**20

_TIMES = ((86_400, "d"), (3600, "h"), (60, "m"), (1, "s"))
_SMALL_TIMES = ((10**9, "s"), (10**6, "ms"), (10**3, "us"), (1, "ns"))


@lru_cache(4096)
def memory_text(mib: int) -> str:
    """Write memory as whole Gi or GB where that is exact, else as Mi."""
    if mib % MIB_PER_GIB == 0:
        return f"{mib // MIB_PER_GIB}Gi" if mib else "0"
    gb = round(mib / GB_MIB)
    if gb and memory_mib(f"{gb}GB") == mib:
        return f"{gb}GB"
    return f"{mib}Mi"


def cpu_text(milli: int) -> str:
    """Write CPU as whole cores where that is exact, else as thousandths."""
    return f"{milli}m" if milli % 1000 else str(milli // 1000)


def share_text(milli: int) -> str:
    """Write thousandths as a percentage."""
    return f"{milli // 10}%" if milli % 10 == 0 else f"{milli / 10}%"


def loss_text(ppm: int) -> str:
    """Write parts per million as a percentage."""
    whole, rest = divmod(ppm, 10_000)
    return f"{whole}.{rest:04d}".rstrip("0").rstrip(".") + "%"


def rate_text(mbps: int) -> str:
    """Write a bandwidth as whole Gbps where that is exact, else as Mbps."""
    return f"{mbps}Mbps" if mbps % 1000 or not mbps else f"{mbps // 1000}Gbps"


def short_time_text(ns: int) -> str:
    """Write nanoseconds in the largest unit that is exact; whole microseconds above a millisecond as parts of it.

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


def time_text(seconds: int) -> str:
    """Write seconds, like ``1h30m``."""
    parts = []
    for size, unit in _TIMES:
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def rough_time_text(seconds: int) -> str:
    """Write seconds about as long as they are, in one unit.

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


FIGURES: dict[str, tuple[str, Callable[[int], str]]] = {
    "gpus": ("gpus", str),
    "gpu_memory_mib": ("gpu_memory", memory_text),
    "gpu_memory_percent": ("gpu_memory", lambda percent: f"{percent}%"),
    "gpu_milli": ("gpu_cores", share_text),
    "cpu_milli": ("cpu", cpu_text),
    "memory_mib": ("memory", memory_text),
    "max_latency_ns": ("max_latency", short_time_text),
    "max_jitter_ns": ("max_jitter", short_time_text),
    "max_loss_ppm": ("max_loss", loss_text),
    "min_bandwidth_mbps": ("min_bandwidth", rate_text),
    "regions": ("regions", str),
    "hardware": ("hardware", str),
    "node_labels": ("node_labels", str),
    "models": ("gpu_model", str),
    "vendors": ("gpu_vendor", str),
    "modes": ("gpu_mode", str),
    "use_types": ("gpu_use_types", str),
    "avoid_types": ("gpu_avoid_types", str),
    "use_uuids": ("gpu_uuids", str),
    "avoid_uuids": ("gpu_avoid_uuids", str),
}
"""Figures of a demand: what job files call each, and how its amount is written there."""


def figure_text(field: str, value: int) -> tuple[str, str]:
    """Write a figure of a demand as a job file does.

    Returns
    -------
    tuple of str and str
        What it is called there, and its amount.

    Examples
    --------
    >>> figure_text("gpu_memory_mib", 81_920)
    ('gpu_memory', '80Gi')
    >>> figure_text("max_latency_ns", 4_000_000)
    ('max_latency', '4ms')
    """
    word, written = FIGURES.get(field, (field, str))
    return word, written(value)
