"""History of a link in steps. Steps without measurements are omitted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from seaway.application.ports.store import MAX_ROWS, Store
from seaway.application.records import LinkSample

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
