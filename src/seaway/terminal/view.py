"""Protocol of the views: query the server, decide which events matter, and return the selection."""

from __future__ import annotations

from collections.abc import Sequence

from seaway.client.aio import AsyncClient
from seaway.terminal.words import Body


class View:
    """A part of the screen that shows what the server says; the one that is seen is kept fresh."""

    hint = ""
    """Hint for the text after `/`; empty without a search."""

    async def look(self, client: AsyncClient, clusters: Sequence[Body]) -> None:
        """Query the server, and show the result.

        Parameters
        ----------
        clusters
            All clusters, just queried.

        Raises
        ------
        SeawayError
            When it does not answer, or answers with an error.
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
