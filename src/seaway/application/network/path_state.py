"""State of one path between two gateways: raw, smoothed and published figures."""

from __future__ import annotations

from dataclasses import dataclass

from seaway.application.ports.agent import Reported
from seaway.domain.errors import RejectedError
from seaway.domain.network import PPM
from seaway.domain.reasons import Reason
from seaway.probing.rounds import Figures
from seaway.probing.smoothing import UNREACHABLE, Hysteresis, Published, Smoother, Smoothing

BY_EWMA, BY_QUANTILE = "ewma", "quantile"
WAYS = (BY_EWMA, BY_QUANTILE)
"""Estimators of latency and jitter."""


@dataclass(frozen=True, slots=True)
class LinkSettings:
    """Smoothing and expiry of measured links."""

    smoothing: str = BY_EWMA
    """Estimator of latency and jitter: `ewma`, an exponentially weighted moving average, or `quantile`, a quantile of
    the latest rounds.
    """
    half_life_s: float = 30
    """Half-life of a round in the moving average, seconds; 0 uses only the latest round."""
    quantile: float = 0.9
    """Quantile for `smoothing = "quantile"`."""
    window: int = 30
    """Number of rounds for the loss and the quantile. A smaller loss than one probe per window is an upper bound."""
    band: float = 0.1
    """Relative change of a value that is ignored (hysteresis)."""
    jitter_band: float = 0.3
    """Relative change of jitter that is ignored. Jitter is a maximum and therefore varies more."""
    min_band_us: int = 100
    """Changes of latency and jitter below this value are ignored, microseconds."""
    dead_rounds: int = 2
    """Consecutive rounds without an answer after which a link is dead.

    The same number of answered rounds restores it.
    """
    stale_rounds: int = 3
    """Missing rounds after which a link is stale. Its last values remain in use."""
    unknown_rounds: int = 9
    """Missing rounds after which the values of a link expire; at least `stale_rounds`."""


def link_setting_errors(settings: LinkSettings, where: str) -> list[RejectedError]:
    """Return the errors of the settings; `where` is the prefix of their names."""
    problems = [
        RejectedError(Reason("not_positive"), where=f"{where}{name}")
        for name in ("window", "dead_rounds", "stale_rounds", "unknown_rounds")
        if not getattr(settings, name)
    ]
    problems += [
        RejectedError(Reason("at_most", bound=1), where=f"{where}{name}")
        for name in ("quantile", "band", "jitter_band")
        if getattr(settings, name) > 1
    ]
    if settings.smoothing not in WAYS:
        problems.append(RejectedError(Reason("not_one_of", names=tuple(WAYS)), where=f"{where}smoothing"))
    if settings.unknown_rounds < settings.stale_rounds:
        problems.append(RejectedError(Reason("at_least_stale_rounds"), where=f"{where}unknown_rounds"))
    return problems


NS_PER_US = 1000


@dataclass(slots=True)
class Tally:
    """Sum of measurements over a period.

    Attributes
    ----------
    latest_ns
        Start of the latest round.
    latency_sum_ns
        Sum over all answers.
    """

    latest_ns: int = 0
    sent: int = 0
    received: int = 0
    latency_sum_ns: int = 0
    jitter_ns: int = 0

    def add(self, each: Reported) -> None:
        """Add a round."""
        self.latest_ns = max(self.latest_ns, each.at_ns)
        self.sent += each.sent
        self.received += each.received
        self.latency_sum_ns += (each.latency_ns or 0) * each.received
        self.jitter_ns = max(self.jitter_ns, each.jitter_ns)

    @property
    def figures(self) -> Figures:
        """Mean latency of the answers, largest jitter, and loss of all probes."""
        loss_ppm = (self.sent - self.received) * PPM // self.sent
        if not self.received:
            return UNREACHABLE
        return Figures(round(self.latency_sum_ns / self.received), self.jitter_ns, loss_ppm)


class PathState:
    """State of one path.

    Attributes
    ----------
    way
        Endpoints and segments, which detect a changed path with the same name.
    newest
        The latest round; None before the first.
    tallies
        Sums for samples, by interval.
    """

    __slots__ = ("_published", "_smoother", "newest", "tallies", "way")

    def __init__(self, way: object, settings: LinkSettings) -> None:
        share = settings.quantile if settings.smoothing == BY_QUANTILE else None
        self._smoother = Smoother(Smoothing(settings.half_life_s, settings.window, share))
        band = Hysteresis(settings.band, settings.jitter_band, settings.min_band_us * NS_PER_US)
        self._published = Published(band, settings.dead_rounds)
        self.way = way
        self.newest: Reported | None = None
        self.tallies: dict[int, Tally] = {}

    @property
    def smoothed(self) -> Figures:
        """Figures smoothed over the latest rounds."""
        return self._smoother.figures

    @property
    def published(self) -> Figures | None:
        """Figures for decisions; None before the first round."""
        return self._published.figures

    @property
    def loss_bound_ppm(self) -> int | None:
        """Upper bound of a published loss of 0; None for other losses, which are measured."""
        figures = self._published.figures
        return None if figures is None or figures.loss_ppm else self._smoother.loss_bound_ppm

    def take(self, each: Reported) -> bool:
        """Process a round that is newer than all previous ones; report whether the published figures changed."""
        first, self.newest = self.newest is None, each
        self._smoother.add(each.at_ns, each.sent, each.received, each.latency_ns, each.jitter_ns)
        smoothed, steps_ppm = self._smoother.figures, self._smoother.loss_resolution_ppm
        changed = self._published.follow(smoothed, answered=each.received > 0, steps_ppm=steps_ppm)
        if changed and self._published.figures == UNREACHABLE:
            self._smoother.reset()
        return changed or first

    def tally(self, stretch: int, each: Reported) -> None:
        """Add a round, also a late one, to the sum of its interval."""
        retained = self.tallies.get(stretch)
        if retained is None:
            retained = self.tallies[stretch] = Tally()
        retained.add(each)
