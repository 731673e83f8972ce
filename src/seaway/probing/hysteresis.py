"""From smoothed figures to those that decisions go by, which stay where they are until it matters.

A figure that wavers around a job's bound would make the link eligible and not, again and again. The published one is
therefore a step behind: it moves to the smoothed one only when that has left a band around it. Noise that is not wider
than half the band to either side can move it once, and never again.

References
----------
The dead band, or send-on-delta: M. Miskowicz, "Send-on-delta concept: an event-based data reporting strategy",
Sensors 6 (2006), 49-63, doi:10.3390/s6010049.
"""

from __future__ import annotations

from dataclasses import dataclass

from seaway.domain.network import PPM
from seaway.probing.figures import Figures

DEAD = Figures(None, 0, PPM)
"""What is published of a link that answers nothing."""


@dataclass(frozen=True, slots=True)
class Band:
    """How far a smoothed figure may be from the published one.

    Attributes
    ----------
    share
        Of the published latency or loss.
    jitter_share
        Of the published jitter, which is the largest of few and so wavers by far more.
    least_ns
        Of latency and jitter at least, nanoseconds.
    """

    share: float = 0.1
    jitter_share: float = 0.3
    least_ns: int = 100_000


class Published:
    """The figures of one link that decisions go by.

    Parameters
    ----------
    band
        How far smoothed ones may be from them.
    rounds
        After how many rounds in a row without any answer the link is dead, and with one alive again; at least 1.

    Attributes
    ----------
    figures
        None before the first round.
    """

    __slots__ = ("_band", "_dead", "_rounds", "_row", "figures")

    def __init__(self, band: Band, rounds: int) -> None:
        self._band = band
        self._rounds = rounds
        self._dead = False
        self._row = 0
        self.figures: Figures | None = None

    def follow(self, smoothed: Figures, *, answered: bool, steps_ppm: int) -> bool:
        """Take in what is known after a round; tell whether the published figures are others now.

        Parameters
        ----------
        answered
            Whether anything answered in this round.
        steps_ppm
            How fine the loss is: it has to be off by more than that.
        """
        before = self.figures
        if before is None:
            self._dead = not answered
        elif answered != self._dead:  # it goes on as it was
            self._row = 0
        else:
            self._row += 1
            if self._row >= self._rounds:
                self._dead, self._row = not self._dead, 0
        self.figures = DEAD if self._dead else self._next(before, smoothed, steps_ppm)
        return self.figures != before

    def _next(self, before: Figures | None, smoothed: Figures, steps_ppm: int) -> Figures:
        if before is None or before.latency_ns is None or smoothed.latency_ns is None:
            return smoothed
        band = self._band
        return Figures(
            _held(before.latency_ns, smoothed.latency_ns, band.share, band.least_ns),
            _held(before.jitter_ns, smoothed.jitter_ns, band.jitter_share, band.least_ns),
            _held(before.loss_ppm, smoothed.loss_ppm, band.share, steps_ppm),
        )


def _held(published: int, smoothed: int, share: float, least: int) -> int:
    """Return the published figure where it may stay; near 0, of which a share is little, `least` decides."""
    return published if abs(smoothed - published) <= max(least, int(published * share)) else smoothed
