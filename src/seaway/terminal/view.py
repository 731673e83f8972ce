"""What each view of the screen can do: look at the server, know what concerns it, and say what is chosen in it."""

from __future__ import annotations

from collections.abc import Sequence

from seaway.client.aio import AsyncClient
from seaway.terminal.words import Body


class View:
    """A part of the screen that shows what the server says; the one that is seen is kept fresh."""

    hint = ""
    """What may be typed behind `/`; empty where nothing can be found by that."""

    async def look(self, client: AsyncClient, clusters: Sequence[Body]) -> None:
        """Ask the server, and show what it says.

        Parameters
        ----------
        clusters
            All clusters, as they were told just before.

        Raises
        ------
        SeawayError
            When it does not answer, or not that.
        """

    def touched_by(self, event: Body) -> bool:
        """Tell whether what is shown may be otherwise after an event."""
        return True

    def find(self, text: str) -> None:
        """Show only what goes with a text; empty shows all."""

    @property
    def job(self) -> Body | None:
        """The job that is chosen, with its `id` and, where that is known, `name` and `state`; None for none."""
        return None

    @property
    def place(self) -> Body | None:
        """The cluster or node that is chosen, with its `cluster`, `node` (empty for none) and `cordon`."""
        return None

    def focus_on(self) -> None:
        """Take the keys."""
