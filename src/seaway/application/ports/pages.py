"""Reading what servers say at addresses, many at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Page:
    """An answer, whatever its status.

    Attributes
    ----------
    at_ns
        When it began, on a clock that never goes back, nanoseconds.
    """

    status: int
    body: bytes
    at_ns: int


@dataclass(frozen=True, slots=True)
class NoPage:
    """No answer in time, or none that can be read: a sentence for people.

    Attributes
    ----------
    answered
        Whether somebody was there.
    """

    why: str
    answered: bool = False


class Pages(Protocol):
    """Reads pages."""

    def read(self, addresses: Sequence[str]) -> Sequence[Page | NoPage]:
        """Read what is at each address, in order; who is slow or broken delays no other, and all ends in time."""
