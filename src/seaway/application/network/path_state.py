"""State of one path between two gateways: raw, smoothed and published figures."""

from __future__ import annotations

from dataclasses import dataclass

from seaway.application.network.settings import BY_QUANTILE, LinkSettings
from seaway.application.ports.agent import Reported
from seaway.domain.network import PPM
from seaway.probing.figures import Figures
from seaway.probing.smoothing import UNREACHABLE, Hysteresis, Published, Smoother, Smoothing

NS_PER_US = 1000


@dataclass(slots=True)
class Tally:
    """Sum of the measurements over a period.

    Attributes
    ----------
    latest_ns
        Start of its latest round.
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
        Endpoints and segments, to detect a changed path of the same name.
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

    def take(self, each: Reported) -> bool:
        """Process a round that is newer than all before; report whether the published figures changed."""
        first, self.newest = self.newest is None, each
        self._smoother.add(each.at_ns, each.sent, each.received, each.latency_ns, each.jitter_ns)
        smoothed, steps_ppm = self._smoother.figures, self._smoother.loss_resolution_ppm
        changed = self._published.follow(smoothed, answered=each.received > 0, steps_ppm=steps_ppm)
        if changed and self._published.figures == UNREACHABLE:
            self._smoother.reset()
        return changed or first

    def tally(self, stretch: int, each: Reported) -> None:
        """Add a round to the sum of its interval, also if it is late."""
        retained = self.tallies.get(stretch)
        if retained is None:
            retained = self.tallies[stretch] = Tally()
        retained.add(each)
