"""Job page: state, placement and reasons, history, manifests and logs."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from nicegui import background_tasks, ui

from seaway.client.call import Call
from seaway.client.calls import fleet, jobs
from seaway.domain.errors import ConflictError, RejectedError, SeawayError, UnknownError
from seaway.domain.job_state import JobState
from seaway.web.drafts import store_script
from seaway.web.fragment import Fragment
from seaway.web.job_document import written
from seaway.web.latest import Latest
from seaway.web.pages.jobs.history import Events, Manifests, Overview, Why
from seaway.web.pages.jobs.log import Log
from seaway.web.pages.jobs.tab import Tab
from seaway.web.pages.jobs.terminal import Terminal
from seaway.web.parts.form import Field, Form, confirm
from seaway.web.reasons import gpus
from seaway.web.visit import Visit

if TYPE_CHECKING:
    from seaway.wire.fleet import ClusterList
    from seaway.wire.job_out import CostOut, JobOut


WHOLE = "must be a whole number, like 10"
WRITTEN = re.compile(r"[+-]?[0-9]{1,18}")
"""Pattern of a whole number. No priority has more digits."""

ALWAYS = ("again", "delete")
"""Actions that a finished job also has."""


class Actions:
    """Buttons for a job's actions."""

    def __init__(self, visit: Visit, job: JobOut) -> None:
        self._visit, self._job, self._gone = visit, job, False
        self._buttons: dict[str, ui.button] = {}
        if not visit.may("user"):
            return
        words = visit.words
        with ui.element("div").classes("actions").props(f'role=group aria-label="{words("Actions")}"'):
            self._add("pause", words("Suspend"), "pause", self._pause)
            self._add("priority", words("Change priority"), "low_priority", self._prioritise)
            self._add("failover", words("Switch to standby"), "swap_horiz", self._failover)
            self._add("cancel", words("Cancel job"), "cancel", self._cancel)
            self._add("retry", words("Retry"), "replay", self._retry)
            self._add("again", words("Clone"), "content_copy", self._again)
            self._add("delete", words("Delete"), "delete", self._delete)
        self.show(job)

    def show(self, job: JobOut) -> None:
        """Show the actions that the job's state allows."""
        self._job = job
        final, suspended = JobState(job.state).final, self._is_suspended()
        for name, button in self._buttons.items():
            shown = self._may_retry() if name == "retry" else not final or name in ALWAYS
            button.set_visibility(shown and (name != "failover" or job.standby is not None))
        if pause := self._buttons.get("pause"):  # one button for both, so that it stays under the pointer
            pause.set_text(self._visit.words("Resume") if suspended else self._visit.words("Suspend"))
            pause.set_icon("play_arrow" if suspended else "pause")

    def end(self) -> None:
        """Remove all buttons except the one that submits a copy, because the job was deleted."""
        self._gone = True
        for name, button in self._buttons.items():
            button.set_visibility(name == "again")

    def _add(self, name: str, label: str, icon: str, do: Callable[[], None]) -> None:
        self._buttons[name] = (
            ui.button(label, icon=icon, on_click=do, color=None).props("flat dense no-caps").classes(f"action-{name}")
        )

    def _step(self, call: Callable[..., Call[JobOut]]) -> Callable[[dict[str, Any]], Awaitable[None]]:
        async def send(given: dict[str, Any]) -> None:
            await self._visit.ask(call(self._job.id, str(given["reason"])))

        return send

    def _load_explanation(self, title: str, verb: str, hint: str, call: Callable[..., Call[JobOut]]) -> None:
        fields = [Field("reason", self._visit.words("Reason"), hint=hint)]
        form = Form(self._visit.words, title, fields, verb, self._step(call))
        if call is jobs.cancel:
            form.mark_dangerous()

    def _may_retry(self) -> bool:
        """Report whether the job, or a task of the array, can run again."""
        failed = (self._job.tasks.states if self._job.tasks else {}).get("failed", 0)
        return self._job.state in ("failed", "cancelled", "skipped") or failed > 0

    def _retry(self) -> None:
        words = self._visit.words
        hint = words("It runs again from the start; of an array, the failed tasks do.")
        self._load_explanation(words("Retry {job}?", job=self._job.name), words("Retry"), hint, jobs.retry)

    def _is_suspended(self) -> bool:
        return JobState(self._job.state) is JobState.SUSPENDED

    def _pause(self) -> None:
        if self._is_suspended():
            self._resume()
        else:
            self._suspend()

    def _suspend(self) -> None:
        words = self._visit.words
        hint = words("The job is stopped until a user resumes it.")
        self._load_explanation(words("Suspend {job}?", job=self._job.name), words("Suspend"), hint, jobs.suspend)

    def _cancel(self) -> None:
        words = self._visit.words
        hint = words("The job is stopped permanently; its record stays.")
        self._load_explanation(words("Cancel {job}?", job=self._job.name), words("Cancel job"), hint, jobs.cancel)

    def _failover(self) -> None:
        words = self._visit.words
        hint = words("The copy in the other cluster becomes active.")
        title = words("Switch {job} to its standby?", job=self._job.name)
        self._load_explanation(title, words("Switch to standby"), hint, jobs.failover)

    def _resume(self) -> None:
        words = self._visit.words
        hint = words("It returns to its queue.")
        self._load_explanation(words("Resume {job}?", job=self._job.name), words("Resume"), hint, jobs.resume)

    def _prioritise(self) -> None:
        words, job = self._visit.words, self._job
        known = job.priority

        async def send(given: dict[str, Any]) -> None:
            nonlocal known
            wanted, before = priority_of(str(given["priority"])), known
            now = await self._visit.ask(jobs.job(job.id))
            if now.priority != before:
                known = now.priority  # a second click confirms it
                said = words("It was changed from {before} to {now} in the meantime. Press again to overwrite that.",
                             before=before, now=known)  # fmt: skip
                raise ConflictError(said)
            await self._visit.ask(jobs.update(job.id, {"priority": wanted}, seen=now))

        field = Field(
            "priority", words("Priority"), value=str(job.priority), hint=words("Priority; higher goes first.")
        )
        Form(words, words("Change the priority of {job}", job=job.name), [field], words("Change"), send)

    def _delete(self) -> None:
        words, job = self._visit.words, self._job

        async def do() -> None:
            await self._visit.ask(jobs.delete(job.id))
            ui.navigate.to("/jobs")

        text = words("It is stopped if it has not finished, and removed from the list.")
        confirm(words, words("Delete {job}?", job=job.name), text, words("Delete"), do)

    def _again(self) -> None:
        if self._gone:  # the API no longer has the job, so it becomes a draft
            ui.run_javascript(store_script(self._visit.who, written(self._job.spec)))
            ui.navigate.to("/submit")
        else:
            ui.navigate.to(f"/submit?from={quote(self._job.id)}")


def has_terminal(job: JobOut) -> bool:
    """Report whether a job can have a terminal: it has not finished, and it is no array, whose tasks have one each."""
    return not JobState(job.state).final and job.tasks is None


def priority_of(text: str) -> int:
    """Read a priority.

    Raises
    ------
    RejectedError
        When the text is not a whole number. The error names the field.
    """
    if not WRITTEN.fullmatch(text):
        raise RejectedError(WHOLE, where="priority")
    return int(text)


AGED_S = 5.0
"""Interval in seconds at which running times are rendered again."""

EVERY_S = 0.8
"""Interval of queries for the job in seconds, so that a change is visible within a second."""

OVER_S = 5.0
"""Interval of queries for a finished job, in seconds."""

COST_S = 10.0
"""Interval of queries for the cost of the job, in seconds."""

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
        self._unmade: dict[str, ui.tab_panel] = {}
        """Panels of tabs that were not opened yet. The browser loads what draws them when they are opened."""
        self._latest = Latest(visit)
        self._gone = False
        self._cost: CostOut | None = None

    async def make(self) -> None:
        """Draw the page, and follow its data."""
        visit, words, job = self.visit, self.words, self.job
        array = [(job.name, f"/jobs/{quote(job.array)}")] if job.array else []
        visit.locate((words("Jobs"), "/jobs"), *array, name=f"{job.name}_{job.index}" if job.array else job.name)
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
        if visit.may("user") and has_terminal(job):
            self._tabs["terminal"] = Terminal(visit, job)
        wanted = visit.query.get("tab", "")
        first = wanted if wanted in self._tabs else "overview"
        labels = {
            "overview": words("Overview"),
            "events": words("Events"),
            "why": words("Explanation"),
            "manifests": words("Manifests"),
            "logs": words("Logs"),
            "terminal": words("Terminal"),
        }
        with ui.tabs().classes("job-tabs") as tabs:
            tabs.props("no-caps inline-label align=left dense outside-arrows mobile-arrows")
            for name in self._tabs:
                ui.tab(name, labels[name])
        with ui.tab_panels(tabs, value=first, animated=False, keep_alive=True).classes("job-panels") as panels:
            self._unmade = {name: ui.tab_panel(name) for name in self._tabs}
        tabs.on_value_change(lambda event: self._turned(str(event.value)))
        self._below = (tabs, panels)
        self._stops = [
            await visit.follow(fleet.clusters(), self._on_clusters),
            await visit.follow(jobs.cost(job.id), self._on_cost, COST_S),
            self._latest.end,
        ]
        await self._watch()
        await self._open(first)
        self._stops.append(ui.timer(AGED_S, self._draw).cancel)
        visit.error_listeners.append(self._show_error)

    async def _turned(self, to: str) -> None:
        """Change the tab. Hidden tabs send no queries."""
        for name, tab in self._tabs.items():
            if name != to:
                tab.close()
        self._tabs[to].keep()
        await self._open(to)

    async def _open(self, name: str) -> None:
        """Open a tab, and draw it before if this is the first time."""
        if panel := self._unmade.pop(name, None):
            with panel:
                self._tabs[name].make()
        await self._tabs[name].open()

    def _show_error(self, error: SeawayError | None) -> None:
        """Check that the job still exists after an error that reports a missing object."""
        if isinstance(error, UnknownError) and not self._gone:
            background_tasks.create(self._check_removed(), name=f"see whether {self.job.id} is gone")

    async def _check_removed(self) -> None:
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
        """Follow the job, less often when it is finished."""
        interval_s = OVER_S if self.job.state in OVER else EVERY_S
        await self._latest.begin().follow(jobs.job(self.job.id), self._received, interval_s)

    async def _received(self, job: JobOut) -> None:
        before, self.job = self.job, job
        self._draw()
        self._actions.show(job)
        for name, tab in self._tabs.items():
            if name in self._unmade:
                tab.job = job
            else:
                await tab.callback(job)
        if (job.state in OVER) != (before.state in OVER):
            await self._watch()

    def _on_cost(self, cost: CostOut) -> None:
        self._cost = cost
        self._draw()

    def _on_clusters(self, value: ClusterList) -> None:
        for tab in self._tabs.values():
            tab.nodes = {each.name: each.nodes for each in value.clusters}

    def _draw(self) -> None:
        over = self.job.state in OVER
        self._head.show(job=self.job, gpus=gpus(self.job), cost=self._cost, over=over, gone=self._gone)
        for tab in self._tabs.values():
            if tab.is_open:
                tab.draw()
