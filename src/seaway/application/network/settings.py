"""Settings for measured links."""

from __future__ import annotations

from dataclasses import dataclass

from seaway.domain.errors import RejectedError

BY_EWMA, BY_QUANTILE = "ewma", "quantile"
WAYS = (BY_EWMA, BY_QUANTILE)
"""Estimators of latency and jitter."""


@dataclass(frozen=True, slots=True)
class LinkSettings:
    """Smoothing and expiry of measured links."""

    smoothing: str = BY_EWMA
    """Estimator of latency and jitter: `ewma`, an exponentially weighted moving average, or `quantile` of the latest
    rounds.
    """
    half_life_s: float = 30
    """Half-life of a round in the moving average; 0 uses only the latest round."""
    quantile: float = 0.9
    """Quantile for `smoothing = "quantile"`."""
    window: int = 30
    """Number of rounds for loss and for the quantile. A loss of less than one probe in the window is not visible."""
    band: float = 0.1
    """Relative change of a value that is ignored (hysteresis)."""
    jitter_band: float = 0.3
    """The same for jitter, which is a maximum and therefore varies more."""
    min_band_us: int = 100
    """Minimum change of latency and jitter that is not ignored, microseconds."""
    dead_rounds: int = 2
    """Consecutive rounds without an answer after which a link is dead. As many answered rounds restore it."""
    stale_rounds: int = 3
    """Missing rounds after which a link is stale. Its last values remain in use."""
    unknown_rounds: int = 9
    """Missing rounds after which the values of a link expire; at least `stale_rounds`."""


def wrong_links(settings: LinkSettings, where: str) -> list[RejectedError]:
    """Return the errors of settings; `where` is the prefix of their names."""
    problems = [
        RejectedError("must be more than 0", where=f"{where}{name}")
        for name in ("window", "dead_rounds", "stale_rounds", "unknown_rounds")
        if not getattr(settings, name)
    ]
    problems += [
        RejectedError("must be at most 1", where=f"{where}{name}")
        for name in ("quantile", "band", "jitter_band")
        if getattr(settings, name) > 1
    ]
    if settings.smoothing not in WAYS:
        problems.append(RejectedError(f"must be one of {', '.join(WAYS)}", where=f"{where}smoothing"))
    if settings.unknown_rounds < settings.stale_rounds:
        problems.append(RejectedError("must be at least stale_rounds", where=f"{where}unknown_rounds"))
    return problems
