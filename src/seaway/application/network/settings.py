"""What can be set of how measured links are judged."""

from __future__ import annotations

from dataclasses import dataclass

from seaway.domain.errors import RejectedError

BY_EWMA, BY_QUANTILE = "ewma", "quantile"
WAYS = (BY_EWMA, BY_QUANTILE)
"""What latency and jitter are judged by: their moving average, or a quantile of the latest rounds."""


@dataclass(frozen=True, slots=True)
class LinkSettings:
    """From what is measured of links to what decisions go by.

    Attributes
    ----------
    smoothing
        By what latency and jitter are judged: ``ewma`` (their moving average) or ``quantile`` (of the latest rounds).
    half_life_s
        After how long a measurement counts half in the moving average.
    quantile
        Which one, as a share.
    window
        Rounds that loss is counted over, and that the quantile is of.
    band
        By which share of itself a figure has to be off before the one that decisions go by follows it.
    jitter_band
        The same for jitter, which is the largest of few and so wavers by far more.
    least_band_us
        By how much latency and jitter have to be off at least, microseconds.
    dead_rounds
        After how many rounds in a row without any answer a link is dead, and after how many with one alive again.
    stale_rounds
        After how many rounds that did not come what is known of a link is marked as stale.
    unknown_rounds
        After how many it does not count any more: the link is then one that nobody measured.
    """

    smoothing: str = BY_EWMA
    half_life_s: float = 30
    quantile: float = 0.9
    window: int = 30
    band: float = 0.1
    jitter_band: float = 0.3
    least_band_us: int = 100
    dead_rounds: int = 2
    stale_rounds: int = 3
    unknown_rounds: int = 9


def wrong_links(settings: LinkSettings, where: str) -> list[RejectedError]:
    """Find settings that make no sense; `where` is written before their names."""
    problems = [
        RejectedError("has to be more than 0", where=f"{where}{name}")
        for name in ("window", "dead_rounds", "stale_rounds", "unknown_rounds")
        if not getattr(settings, name)
    ]
    problems += [
        RejectedError("has to be at most 1", where=f"{where}{name}")
        for name in ("quantile", "band", "jitter_band")
        if getattr(settings, name) > 1
    ]
    if settings.smoothing not in WAYS:
        problems.append(RejectedError(f"has to be one of {', '.join(WAYS)}", where=f"{where}smoothing"))
    if settings.unknown_rounds < settings.stale_rounds:
        problems.append(RejectedError("has to be at least stale_rounds", where=f"{where}unknown_rounds"))
    return problems
