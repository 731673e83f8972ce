"""How simulated clusters behave."""

from __future__ import annotations

from dataclasses import dataclass

from seaway.adapters.simulated.faults import NO_FAULTS, Faults
from seaway.domain.errors import RejectedError


@dataclass(frozen=True, slots=True)
class Options:
    """How simulated clusters behave.

    Attributes
    ----------
    faults
        What goes wrong by chance.
    start_delay_s
        How long a copy takes to start.
    timeout_s
        After how long a call that hangs gives up.
    waits
        Whether calls may wait, in real time. Without it, as suits a clock that a test moves, `changes`
        tells at once what there is, and what would hang gives up at once.
    changes_kept
        How many changes a cluster remembers at the least; who asks for older ones is told everything.
    measures
        Whether clusters say what is really used of devices.
    journal_kept
        A journal with more entries is replaced by a shorter one when the cluster starts.
    """

    faults: Faults = NO_FAULTS
    start_delay_s: float = 1
    timeout_s: float = 5
    waits: bool = True
    changes_kept: int = 65_536
    journal_kept: int = 1_000_000
    measures: bool = False

    def __post_init__(self) -> None:
        """Reject times that are none."""
        for name in ("start_delay_s", "timeout_s", "changes_kept", "journal_kept"):
            value = getattr(self, name)
            if not 0 <= value < float("inf"):
                raise RejectedError(f"is {value}, but has to be at least 0", where=name)
