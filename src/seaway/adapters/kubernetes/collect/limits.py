"""How a view of a cluster deals with what takes long."""

from __future__ import annotations

from dataclasses import dataclass

from seaway.adapters.kubernetes.collect.feedback import Wait


@dataclass(frozen=True, slots=True)
class Limits:
    """How a view deals with what takes long.

    Attributes
    ----------
    patience_s
        How long something of a cluster may not answer before nothing that it said counts any more.
    refused_s
        How long no node takes a pod before it is taken for refused: its cluster's scheduler may only be slow.
    stuck_s
        How long a pod may hold devices that cannot start until somebody mends it, before it fails.
    turn_s
        How long a pod waits for its cluster's scheduler before that is told.
    kept
        Changes that cursors may point back over, at the least.
    """

    patience_s: float = 10.0
    refused_s: float = 5.0
    stuck_s: float = 300.0
    turn_s: float = 3.0
    kept: int = 20_000

    def of(self, wait: Wait) -> float:
        """Return how long a pod may wait for something, seconds."""
        return {Wait.TURN: self.turn_s, Wait.MENDING: self.stuck_s}.get(wait, self.refused_s)
