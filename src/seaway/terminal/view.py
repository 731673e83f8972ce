"""Protocol of the views: query the server, select relevant events, and return the selection."""

from __future__ import annotations

from collections.abc import Sequence

from seaway.client.aio import AsyncClient
from seaway.terminal.words import Body


class View:
    """Part of the screen with data of the server; the visible one is refreshed."""

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
        """Report whether an event can change the view."""
        return True

    def find(self, text: str) -> None:
        """Search for a text; empty shows all."""

    @property
    def job(self) -> Body | None:
        """Selected job with its `id` and, if known, `name` and `state`; None for none."""
        return None

    @property
    def place(self) -> Body | None:
        """Selected cluster or node with its `cluster`, `node` (empty for none) and `cordon`."""
        return None

    def focus_on(self) -> None:
        """Move the focus to the view."""
