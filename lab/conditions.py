"""Conditions of one direction of a link of a lab."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from seaway.domain.errors import RejectedError
from seaway.domain.network import PPM

MAX_DELAY_NS = 60 * 10**9
"""One minute; packets of a longer delay would overflow the queue."""


class Emulator(StrEnum):
    """Emulator of delay and loss."""

    NETEM = "netem"
    """The kernel's netem."""
    QUEUE = "queue"
    """A process of the lab, for kernels without netem and for measured hold times."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conditions for packets from one gateway to another.

    Attributes
    ----------
    delay_ns
        One-way delay, nanoseconds. The round trip has the delays of both directions.
    jitter_ns
        Maximum deviation from the delay, uniformly distributed, nanoseconds; at most the delay.
    loss_ppm
        Share of packets that are lost at random, parts per million.
    rate_mbps
        Rate limit, Mbit/s; 0 for no limit.
    """

    delay_ns: int = 0
    jitter_ns: int = 0
    loss_ppm: int = 0
    rate_mbps: int = 0

    def __post_init__(self) -> None:
        """Check that the conditions are possible.

        Raises
        ------
        RejectedError
            If they are not.
        """
        if not 0 <= self.delay_ns <= MAX_DELAY_NS:
            raise RejectedError("a delay may be a minute at most", where="delay")
        if not 0 <= self.jitter_ns <= self.delay_ns:
            raise RejectedError("a jitter may be as large as the delay at most: nothing arrives early", where="jitter")
        if not 0 <= self.loss_ppm <= PPM:
            raise RejectedError("a loss is a share between 0 and 100%", where="loss")
        if self.rate_mbps < 0:
            raise RejectedError("a rate cannot be negative", where="rate")
