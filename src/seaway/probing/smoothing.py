"""Smoothing of measurements: moving averages, quantiles of the latest rounds, and loss over a window."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from seaway.domain.network import PPM
from seaway.probing.rounds import Figures

NS_PER_S = 1_000_000_000


def ewma(before: float, value: float, elapsed_s: float, half_life_s: float) -> float:
    """Return an exponentially weighted moving average after one more value.

    The old average has the weight ``2 ** (-elapsed / half life)``, so that missed rounds count as elapsed time, not as
    rounds with the same value. With a half-life of 0, the old average has no weight.

    References
    ----------
    S. W. Roberts, "Control chart tests based on geometric moving averages", Technometrics 1 (1959), 239-250,
    doi:10.1080/00401706.1959.10489860. For values at uneven times: A. Eckner, "Algorithms for unevenly spaced time
    series: moving averages and other rolling operators" (2012), section 3, the average for the last point.
    """
    retained = 2.0 ** (-max(0.0, elapsed_s) / half_life_s) if half_life_s > 0 else 0.0
    return retained * before + (1.0 - retained) * value


def quantile(values: Sequence[int], share: float) -> int:
    """Return a quantile of values, with linear interpolation between two values.

    Raises
    ------
    ValueError
        If there are no values, or the share is not from 0 to 1.

    References
    ----------
    R. J. Hyndman and Y. Fan, "Sample quantiles in statistical packages", The American Statistician 50 (1996), 361-365,
    doi:10.1080/00031305.1996.10473566: definition 7.
    """
    if not values or not 0 <= share <= 1:
        raise ValueError(f"no quantile {share} of {len(values)} values")
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return round(ordered[below] + (at - below) * (ordered[above] - ordered[below]))


@dataclass(frozen=True, slots=True)
class Smoothing:
    """Parameters of smoothing.

    Attributes
    ----------
    half_life_s
        Half-life of the moving average, seconds.
    window
        Number of rounds for loss and quantiles; at least 1.
    share
        Quantile of latency and jitter; None for their moving average.
    """

    half_life_s: float = 30.0
    window: int = 30
    share: float | None = None


class Smoother:
    """Smoothed measurements of one link. Rounds are added in chronological order.

    Latency and jitter are moving averages over answered rounds, or quantiles of those in the window. Loss is the share
    of lost probes in the window, so every probe has the same weight; `loss_resolution_ppm` is its resolution.
    """

    __slots__ = ("_answered", "_at_ns", "_how", "_jitter_ns", "_latency_ns", "_received", "_sent", "_window")

    def __init__(self, how: Smoothing) -> None:
        self._how = how
        self._window: deque[tuple[int, int]] = deque()
        self._answered: deque[tuple[int, int]] = deque(maxlen=how.window)
        self._sent = self._received = 0
        self._at_ns = 0
        self._latency_ns: float | None = None
        self._jitter_ns = 0.0

    def add(self, at_ns: int, sent: int, received: int, latency_ns: int | None, jitter_ns: int) -> None:
        """Add a round. Only its loss counts if no probe was answered.

        Raises
        ------
        ValueError
            If no probe was sent, or more probes were answered than sent.
        """
        if sent < 1 or not 0 <= received <= sent:
            raise ValueError(f"{received} answers to {sent} probes")
        self._window.append((sent, received))
        self._sent += sent
        self._received += received
        while len(self._window) > self._how.window:
            old_sent, old_received = self._window.popleft()
            self._sent -= old_sent
            self._received -= old_received
        if latency_ns is not None:
            self._average(at_ns, latency_ns, jitter_ns)
            if self._how.share is not None:
                self._answered.append((latency_ns, jitter_ns))

    def reset(self) -> None:
        """Clear latency and jitter, for example after an outage, because the path may have changed. The loss stays."""
        self._latency_ns = None
        self._answered.clear()

    @property
    def figures(self) -> Figures:
        """Smoothed measurements; the latency is None before the first answer."""
        loss_ppm = (self._sent - self._received) * PPM // self._sent if self._sent else 0
        if self._latency_ns is None:
            return Figures(None, 0, loss_ppm)
        share = self._how.share
        if share is None:
            return Figures(round(self._latency_ns), round(self._jitter_ns), loss_ppm)
        latencies, jitters = zip(*self._answered, strict=True)
        return Figures(quantile(latencies, share), quantile(jitters, share), loss_ppm)

    @property
    def loss_resolution_ppm(self) -> int:
        """Increase of the loss by one lost probe, parts per million, rounded up."""
        return -(-PPM // self._sent) if self._sent else PPM

    @property
    def loss_bound_ppm(self) -> int:
        """Loss with one more lost probe, parts per million, rounded up: an upper bound of a loss too small to see."""
        return -(-PPM * min(self._sent - self._received + 1, self._sent) // self._sent) if self._sent else PPM

    def _average(self, at_ns: int, latency_ns: int, jitter_ns: int) -> None:
        half_life_s, elapsed_s = self._how.half_life_s, (at_ns - self._at_ns) / NS_PER_S
        if self._latency_ns is None:
            self._latency_ns, self._jitter_ns = float(latency_ns), float(jitter_ns)
        else:
            self._latency_ns = ewma(self._latency_ns, latency_ns, elapsed_s, half_life_s)
            self._jitter_ns = ewma(self._jitter_ns, jitter_ns, elapsed_s, half_life_s)
        self._at_ns = at_ns


UNREACHABLE = Figures(None, 0, PPM)
"""Published measurements of a link without answers."""


@dataclass(frozen=True, slots=True)
class Hysteresis:
    """Band around published measurements. Smaller changes are not published.

    Attributes
    ----------
    share
        Band as a share of the published latency or loss.
    jitter_share
        Band as a share of the published jitter, which is the maximum of few values and varies more.
    least_ns
        Minimum band of latency and jitter, nanoseconds.
    """

    share: float = 0.1
    jitter_share: float = 0.3
    least_ns: int = 100_000


class Published:
    """Published measurements of one link, which placement decisions use.

    Parameters
    ----------
    band
        Band around the published measurements.
    rounds
        Number of consecutive rounds without answers after which the link is down, and with answers after which it is
        up; at least 1.

    Attributes
    ----------
    figures
        Published measurements; None before the first round.
    """

    __slots__ = ("_band", "_dead", "_rounds", "_row", "figures")

    def __init__(self, band: Hysteresis, rounds: int) -> None:
        self._band = band
        self._rounds = rounds
        self._dead = False
        self._row = 0
        self.figures: Figures | None = None

    def follow(self, smoothed: Figures, *, answered: bool, steps_ppm: int) -> bool:
        """Apply the smoothed measurements after a round. Report whether the published ones changed.

        Parameters
        ----------
        answered
            Whether any probe of this round was answered.
        steps_ppm
            Resolution of the loss. Only a larger difference is published.
        """
        before = self.figures
        if before is None:
            self._dead = not answered
        elif answered != self._dead:  # no change of state
            self._row = 0
        else:
            self._row += 1
            if self._row >= self._rounds:
                self._dead, self._row = not self._dead, 0
        self.figures = UNREACHABLE if self._dead else self._next(before, smoothed, steps_ppm)
        return self.figures != before

    def _next(self, before: Figures | None, smoothed: Figures, steps_ppm: int) -> Figures:
        if before is None or before.latency_ns is None or smoothed.latency_ns is None:
            return smoothed
        band = self._band
        return Figures(
            _stable(before.latency_ns, smoothed.latency_ns, band.share, band.least_ns),
            _stable(before.jitter_ns, smoothed.jitter_ns, band.jitter_share, band.least_ns),
            _stable(before.loss_ppm, smoothed.loss_ppm, band.share, steps_ppm),
        )


def _stable(published: int, smoothed: int, share: float, least: int) -> int:
    """Return the published value if the smoothed value is within its band, else the smoothed value."""
    return published if abs(smoothed - published) <= max(least, int(published * share)) else smoothed
