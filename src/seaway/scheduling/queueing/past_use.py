"""Mean amounts that queues and tenants held in the past. Recent use counts more: its weight halves with each half-life.

References
----------
Kay, Lauder: A Fair Share Scheduler. CACM 31(1), 1988, doi:10.1145/35043.35047.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from seaway.domain.amounts import Amounts

LaneName = tuple[str, str]
"""Queue and tenant."""

NEGLIGIBLE = 0.5
"""Amounts below it are dropped. Units are thousandths of devices and MiB."""


class PastUse:
    """Decaying means of amounts.

    A constant use of an amount approaches it: after one half-life, the mean is half of it.

    Parameters
    ----------
    half_life_s
        Seconds after which a use counts half.
    """

    def __init__(self, half_life_s: float) -> None:
        self._half_life_s = half_life_s
        self._means: dict[LaneName, dict[str, float]] = {}
        self._at_s: float | None = None

    def add(self, lane: LaneName, amounts: Amounts, began_s: float, ended_s: float, now_s: float) -> None:
        """Add a use that ended before the first call of `advance`."""
        if ended_s <= began_s:
            return
        share = self._left(now_s - ended_s) - self._left(now_s - began_s)
        means = self._means.setdefault(lane, {})
        for name, amount in amounts.items():
            means[name] = means.get(name, 0.0) + amount * share

    def advance(self, now_s: float, uses: Iterable[tuple[str, str, Amounts]]) -> None:
        """Add the amounts that were held since the last call. If the clock went back, only the time changes."""
        since_s = 0.0 if self._at_s is None else max(0.0, now_s - self._at_s)
        self._at_s = now_s
        left = self._left(since_s)
        for means in self._means.values():
            for name in means:
                means[name] *= left
        for queue, tenant, amounts in uses:
            if amounts:
                means = self._means.setdefault((queue, tenant), {})
                for name, amount in amounts.items():
                    means[name] = means.get(name, 0.0) + amount * (1 - left)
        for lane, means in list(self._means.items()):
            if all(mean < NEGLIGIBLE for mean in means.values()):
                del self._means[lane]

    def means(self) -> Mapping[LaneName, Amounts]:
        """Return the means in whole units."""
        return {lane: {name: round(mean) for name, mean in means.items()} for lane, means in self._means.items()}

    def _left(self, seconds: float) -> float:
        """Return the weight of a use that lies some time back."""
        return float(2.0 ** (-max(0.0, seconds) / self._half_life_s))
