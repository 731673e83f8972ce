"""Why a job waits, or why it is where it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seaway.client.calls import jobs
from seaway.web.fragment import Fragment
from seaway.web.latest import Turn
from seaway.web.pages.job_tab import Tab
from seaway.web.reasons import by_cluster, mends

if TYPE_CHECKING:
    from seaway.wire.explanations import ReasonOut


class Why(Tab):
    """Why it waits, or why it is where it is."""

    name = "why"

    def make(self) -> None:
        """Make what is seen, empty."""
        self._shown = Fragment("job_why", self.words)

    async def look(self, turn: Turn) -> None:
        """Begin to follow what is seen."""
        await self.follow_beside(turn, jobs.explain(self.job.id), self._heard_reason)

    def _heard_reason(self, reason: ReasonOut) -> None:
        explained = reason.explanation
        self._shown.show(
            reason=reason,
            clusters=by_cluster(explained, self.nodes) if explained else [],
            mends=list(mends(explained.remedies)) if explained else [],
            plugins=list(explained.candidates[0].scores) if explained and explained.candidates else [],
        )
