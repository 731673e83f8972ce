"""What a link of a lab does to packets on their way, one direction of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from seaway.domain.errors import RejectedError
from seaway.domain.network import PPM

MAX_DELAY_NS = 60 * 10**9
"""A minute: more would fill any queue."""


class Emulator(StrEnum):
    """Who delays and loses packets."""

    NETEM = "netem"
    """The kernel."""
    QUEUE = "queue"
    """A process of ours, where the kernel has no netem, or where it is to say how long it held packets."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """What happens to packets from one gateway to another.

    Attributes
    ----------
    delay_ns
        How long each is on its way, nanoseconds. The round trip has the delays of both directions.
    jitter_ns
        By how much that is less or more, evenly spread, nanoseconds; at most the delay.
    loss_ppm
        Share of packets that are lost by chance, parts per million.
    rate_mbps
        How fast they leave, Mbit/s; 0 for no limit.
    """

    delay_ns: int = 0
    jitter_ns: int = 0
    loss_ppm: int = 0
    rate_mbps: int = 0

    def __post_init__(self) -> None:
        """Check that a packet can meet all of it.

        Raises
        ------
        RejectedError
            When not.
        """
        if not 0 <= self.delay_ns <= MAX_DELAY_NS:
            raise RejectedError("a delay may be a minute at most", where="delay")
        if not 0 <= self.jitter_ns <= self.delay_ns:
            raise RejectedError("a jitter may be as large as the delay at most: nothing arrives early", where="jitter")
        if not 0 <= self.loss_ppm <= PPM:
            raise RejectedError("a loss is a share between 0 and 100%", where="loss")
        if self.rate_mbps < 0:
            raise RejectedError("a rate cannot be negative", where="rate")
