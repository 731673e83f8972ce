"""What an agent is to do at the moment."""

from __future__ import annotations

from seaway.application.ports.reporting import Assignment


class Duty:
    """Holds what the controller said last, which counts until it says something else, also while it is away.

    One thread writes it, others read it.

    Parameters
    ----------
    first
        What is to be done until the controller says it; None for nothing.
    """

    def __init__(self, first: Assignment | None = None) -> None:
        self.now = first
        """What is to be done; None when nobody has said it."""

    def set(self, assignment: Assignment) -> bool:
        """Take what the controller says; return whether it is another thing than before."""
        changed = assignment != self.now
        self.now = assignment
        return changed
