"""What agents report."""

from __future__ import annotations

from dataclasses import dataclass

ANSWERED, LOSSY, UNANSWERED = "answered", "lossy", "unanswered"
"""How a round ended: all its probes were answered, some were, none was."""


@dataclass(frozen=True, slots=True)
class Reported:
    """A round of probes from one gateway to another, as its agent reports it.

    Attributes
    ----------
    target
        Name of the gateway that was probed.
    path
        Along which path; empty for the way that routes lead.
    at_ns
        When the round began, by the agent's clock, nanoseconds since 1970.
    sent, received
        Probes, and how many were answered.
    latency_ns
        Mean round-trip time of the answered ones; None when nothing was.
    jitter_ns
        As in `seaway.probing.figures.Figures`.
    discarded
        Answers with an impossible time.
    """

    target: str
    path: str
    at_ns: int
    sent: int
    received: int
    latency_ns: int | None
    jitter_ns: int = 0
    discarded: int = 0

    @property
    def outcome(self) -> str:
        """How it ended: `ANSWERED`, `LOSSY` or `UNANSWERED`."""
        if self.received == 0:
            return UNANSWERED
        return ANSWERED if self.received == self.sent else LOSSY
