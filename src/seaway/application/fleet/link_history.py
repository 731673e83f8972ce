"""History of a link in steps. Steps without measurements are omitted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from statistics import median_low
from threading import Lock

from seaway.application.network.views import Usual
from seaway.application.ports.clock import Clock
from seaway.application.ports.store import MAX_ROWS, Store
from seaway.application.records import LinkSample
from seaway.domain.errors import UnavailableError
from seaway.domain.network import Ends

NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Spread:
    """Minimum, mean and maximum of some values."""

    least: int
    mean: float
    most: int


@dataclass(frozen=True, slots=True)
class LinkStep:
    """Summary of a link over one step.

    Attributes
    ----------
    at_ns, until_ns
        Times of the first and last samples.
    samples
        Number of samples.
    latency_ns, jitter_ns
        Over the samples with an answer; None without such samples.
    loss_ppm
        Over all samples.
    bandwidth_mbps, used_mbps
        Over the samples with a known bandwidth; None without such samples.
    """

    at_ns: int
    until_ns: int
    samples: int
    latency_ns: Spread | None
    jitter_ns: Spread | None
    loss_ppm: Spread
    bandwidth_mbps: Spread | None
    used_mbps: Spread | None


USUAL_H = 24
"""Hours of samples in the usual figures of a link."""

MIN_SAMPLES = 3
"""Minimum number of samples for a usual figure."""

USUAL_CACHE_NS = 600 * NS
"""Lifetime of usual figures, nanoseconds."""


class UsualFigures:
    """Usual figures of links: medians of the samples of the last day, up to a thousand of each hour. Thread-safe.

    A median ignores a fault of some hours, and samples survive restarts.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock, self._lock = store, clock, Lock()
        self._made_ns, self._known = -USUAL_CACHE_NS, dict[Ends, Usual]()

    def known(self) -> Mapping[Ends, Usual]:
        """Return the usual figures of each link."""
        with self._lock:
            now_ns = self._clock.monotonic_ns()
            if now_ns - self._made_ns >= USUAL_CACHE_NS:
                self._made_ns = now_ns
                with suppress(UnavailableError):
                    self._known = self._read()
            return self._known

    def _read(self) -> dict[Ends, Usual]:
        found: defaultdict[Ends, list[LinkSample]] = defaultdict(list)
        for hours in range(1, USUAL_H + 1):
            from_ns = self._clock.now_ns() - hours * 3600 * NS
            for each in self._store.link_samples("", "", from_ns, MAX_ROWS):
                if each.at_ns < from_ns + 3600 * NS:
                    found[each.source, each.target].append(each)
        return {ends: _usual(samples) for ends, samples in found.items()}


def _usual(samples: Sequence[LinkSample]) -> Usual:
    answered = [each for each in samples if each.latency_ns is not None]
    return Usual(
        _median([each.latency_ns for each in answered if each.latency_ns is not None]),
        _median([each.jitter_ns for each in answered]),
        _median([each.loss_ppm for each in samples]),
        _median([each.used_mbps for each in samples if each.bandwidth_mbps]),
    )


def _median(values: Sequence[int]) -> int | None:
    return median_low(values) if len(values) >= MIN_SAMPLES else None


def steps_of(store: Store, source: str, target: str, from_ns: int, step_s: int) -> list[LinkStep]:
    """Return the history of a link since a time, in steps aligned to multiples of `step_s` since 1970."""
    together = groupby(_samples(store, source, target, from_ns), key=lambda each: each.at_ns // (step_s * NS))
    return [_step(list(samples)) for _, samples in together]


def _samples(store: Store, source: str, target: str, from_ns: int) -> Iterator[LinkSample]:
    after = ("", "")
    while rows := store.link_samples(source, target, from_ns, MAX_ROWS, after):
        yield from rows
        if len(rows) < MAX_ROWS:
            return
        from_ns, after = rows[-1].at_ns, (source, target)


def _step(samples: Sequence[LinkSample]) -> LinkStep:
    answered = [each for each in samples if each.latency_ns is not None]
    known = [each for each in samples if each.bandwidth_mbps]
    return LinkStep(
        samples[0].at_ns,
        samples[-1].at_ns,
        len(samples),
        _spread(each.latency_ns for each in answered if each.latency_ns is not None),
        _spread(each.jitter_ns for each in answered),
        _spread(each.loss_ppm for each in samples) or Spread(0, 0.0, 0),
        _spread(each.bandwidth_mbps for each in known),
        _spread(each.used_mbps for each in known),
    )


def _spread(figures: Iterable[int]) -> Spread | None:
    listed = list(figures)
    return Spread(min(listed), sum(listed) / len(listed), max(listed)) if listed else None
