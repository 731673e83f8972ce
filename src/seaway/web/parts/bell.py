"""Notifications of every page: firing alerts, and the visitor's own jobs that ended."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from nicegui import ui

from seaway.client.calls import jobs, service
from seaway.domain.errors import SeawayError
from seaway.web import cookies
from seaway.web.fragment import Fragment
from seaway.web.latest import Latest
from seaway.web.parts.form import dialog
from seaway.web.visit import Visit
from seaway.web.words import Words

if TYPE_CHECKING:
    from seaway.wire.alerts import AlertList
    from seaway.wire.job_out import JobCount, JobPage

ENDED = ("completed", "failed")
MOST = 8
"""Maximum number of jobs in the list."""

ALERTS_S, JOBS_S = 5.0, 15.0
"""Intervals of queries in seconds."""

FIRST = timedelta(days=1)
"""Age of jobs that are new to a visitor who has never opened the list."""

Texts = Callable[["AlertList", Words], list[dict[str, str]]]
"""Function that returns the texts and addresses of alerts."""


class Bell:
    """Button with the number of what is new, which opens the list.

    Parameters
    ----------
    texts
        Describes alerts as the overview does.
    """

    def __init__(self, visit: Visit, texts: Texts) -> None:
        self._visit, self._texts = visit, texts
        self._alerts: list[dict[str, str]] = []
        self._ended = 0
        self._counting = Latest(visit)
        self._seen = cookies.seen_of(visit.request.cookies) or (datetime.now(UTC) - FIRST).isoformat()
        self._button = ui.element("button").classes("tool bell").on("click", self._open)
        with self._button:
            ui.icon("notifications").props("aria-hidden=true")
            self._number = ui.label().classes("bell-number").props("aria-hidden=true")
        self._draw()

    async def follow(self) -> None:
        """Follow alerts and the number of the visitor's jobs that ended since the list was opened."""
        with suppress(SeawayError):  # the page itself reports an unavailable API
            await self._visit.follow(service.alerts(), self._on_alerts, ALERTS_S)
        await self._count()

    async def _count(self) -> None:
        call = jobs.count(submitted_by=self._visit.who.name, state=ENDED, ended_from=self._seen)
        with suppress(SeawayError):
            await self._counting.begin().follow(call, self._on_count, JOBS_S)

    def _on_alerts(self, value: AlertList) -> None:
        self._alerts = self._texts(value, self._visit.words)
        self._draw()

    def _on_count(self, value: JobCount) -> None:
        self._ended = value.total
        self._draw()

    def _draw(self) -> None:
        words, number = self._visit.words, self._ended + sum(not each["by"] for each in self._alerts)
        label = words("Notifications: {n} new", n=number)
        self._button.props(f'type=button aria-label="{label}" title="{label}"')
        self._number.set_text(str(number) if number < 100 else "99+")
        self._number.set_visibility(number > 0)

    async def _open(self) -> None:
        visit, words = self._visit, self._visit.words
        with dialog(words("Notifications")) as made:
            made.props("position=top").classes("bell-dialog")
            shown, latest = Fragment("bell", words), Latest(visit)
            made.on("hide", latest.end)

        def draw(page: JobPage) -> None:
            shown.show(alerts=self._alerts, jobs=page.jobs, who=visit.who.name)

        call = jobs.jobs(submitted_by=visit.who.name, state=ENDED, sort="-ended", limit=MOST).first
        await latest.begin().follow(call, draw, JOBS_S)
        self._seen = datetime.now(UTC).isoformat()
        ui.run_javascript(f"document.cookie = {json.dumps(cookies.seen(self._seen))}")
        await self._count()
