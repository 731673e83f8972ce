"""What the menu needs to know of a page."""

from __future__ import annotations

from typing import Protocol


class Entry(Protocol):
    """A line of the menu."""

    @property
    def path(self) -> str:
        """Where it leads."""
        ...

    @property
    def title(self) -> str:
        """What it is called, in English."""
        ...

    @property
    def icon(self) -> str:
        """Its sign."""
        ...
