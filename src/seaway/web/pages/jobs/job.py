"""Job page: state, placement and reasons, history, manifests and logs."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from nicegui import background_tasks, ui

from seaway.client.calls import fleet, jobs
from seaway.domain.errors import SeawayError, UnknownError
from seaway.domain.job_state import JobState
from seaway.web.fragment import Fragment
from seaway.web.latest import Latest
from seaway.web.pages.jobs.history import Events, Manifests, Overview, Why
from seaway.web.pages.jobs.log import Log
from seaway.web.pages.jobs.tab import Tab
from seaway.web.parts.job_actions import Actions
from seaway.web.reasons import gpus
from seaway.web.visit import Visit

if TYPE_CHECKING:
    from seaway.wire.fleet import ClusterList
    from seaway.wire.job_out import JobOut

AGED_S = 5.0
"""Interval at which running times are rendered again."""

EVERY_S = 0.8
"""Interval of queries for the job, so that a change is visible within a second."""

OVER_S = 5.0
"""Interval for a finished job."""

OVER = frozenset(state.value for state in JobState if state.final)


async def build(visit: Visit) -> None:
    """Build the page."""
    job = await visit.ask(jobs.job(visit.part("job")))
    await _Job(visit, job).make()


class _Job:
    """Job page of one visitor."""

    def __init__(self, visit: Visit, job: JobOut) -> None:
        self.visit, self.words, self.job = visit, visit.words, job
        self._tabs: dict[str, Tab] = {}
        self._latest = Latest(visit)
        self._gone = False

    async def make(self) -> None:
        """Draw the page, and follow its data."""
        visit, words, job = self.visit, self.words, self.job
        ui.page_title(f"{job.name} · Seaway")
        with ui.element("section").classes("panel job-top"):
            self._head = Fragment("job_head", words)
            self._actions = Actions(visit, job)
        self._tabs = {
            "overview": Overview(visit, job),
            "events": Events(visit, job),
            "why": Why(visit, job),
            "manifests": Manifests(visit, job),
            "logs": Log(visit, job),
        }
        wanted = visit.query.get("tab", "")
        first = wanted if wanted in self._tabs else "overview"
        labels = {
            "overview": words("Overview"),
            "events": words("Events"),
            "why": words("Why"),
            "manifests": words("Manifests"),
            "logs": words("Logs"),
        }
        with ui.tabs().classes("job-tabs") as tabs:
            tabs.props("no-caps inline-label align=left dense outside-arrows mobile-arrows")
            for name, label in labels.items():
                ui.tab(name, label)
        with ui.tab_panels(tabs, value=first, animated=False, keep_alive=True).classes("job-panels") as panels:
            for name, tab in self._tabs.items():
                with ui.tab_panel(name):
                    tab.make()
        tabs.on_value_change(lambda event: self._turned(str(event.value)))
        self._below = (tabs, panels)
        self._stops = [await visit.follow(fleet.clusters(), self._on_clusters), self._latest.end]
        await self._watch()
        await self._tabs[first].open()
        self._stops.append(ui.timer(AGED_S, self._draw).cancel)
        visit.error_listeners.append(self._show_error)

    async def _turned(self, to: str) -> None:
        """Change the tab; hidden tabs make no queries."""
        for name, tab in self._tabs.items():
            if name != to:
                tab.close()
        self._tabs[to].keep()
        await self._tabs[to].open()

    def _show_error(self, error: SeawayError | None) -> None:
        """Check for the job after an error that reports something as missing."""
        if isinstance(error, UnknownError) and not self._gone:
            background_tasks.create(self._see_whether_it_is_gone(), name=f"see whether {self.job.id} is gone")

    async def _see_whether_it_is_gone(self) -> None:
        with suppress(SeawayError):  # the follower reports the error
            try:
                await self.visit.ask(jobs.job(self.job.id))
            except UnknownError:
                self._end()

    def _end(self) -> None:
        """Report that the job was deleted, and stop all queries."""
        self._gone = True
        for tab in self._tabs.values():
            tab.close()
        for stop in self._stops:
            stop()
        for each in self._below:
            each.set_visibility(False)
        self._actions.end()
        self._draw()

    async def _watch(self) -> None:
        """Follow the job, less often once it is finished."""
        interval_s = OVER_S if self.job.state in OVER else EVERY_S
        await self._latest.begin().follow(jobs.job(self.job.id), self._received, interval_s)

    async def _received(self, job: JobOut) -> None:
        before, self.job = self.job, job
        self._draw()
        self._actions.show(job)
        for tab in self._tabs.values():
            await tab.callback(job)
        if (job.state in OVER) != (before.state in OVER):
            await self._watch()

    def _on_clusters(self, value: ClusterList) -> None:
        for tab in self._tabs.values():
            tab.nodes = {each.name: each.nodes for each in value.clusters}

    def _draw(self) -> None:
        self._head.show(job=self.job, gpus=gpus(self.job), over=self.job.state in OVER, gone=self._gone)
        for tab in self._tabs.values():
            if tab.is_open:
                tab.draw()
