"""Actions on a job, for users with the right and in states that allow them."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from nicegui import ui

from seaway.client.call import Call
from seaway.client.calls import jobs
from seaway.domain.errors import ConflictError, RejectedError
from seaway.domain.job_state import JobState
from seaway.web.drafts import keeping
from seaway.web.job_document import written
from seaway.web.parts.form import Field, Form, confirm
from seaway.web.visit import Visit

if TYPE_CHECKING:
    from seaway.wire.job_out import JobOut

WHOLE = "must be a whole number, like 10"
WRITTEN = re.compile(r"[+-]?[0-9]{1,18}")
"""Pattern of a whole number; no priority has more digits."""

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
            self._add("cancel", words("Cancel the job"), "cancel", self._cancel)
            self._add("again", words("Submit one like it"), "content_copy", self._again)
            self._add("delete", words("Delete"), "delete", self._delete)
        self.show(job)

    def show(self, job: JobOut) -> None:
        """Show the actions that the job's state allows."""
        self._job = job
        final, suspended = JobState(job.state).final, self._is_suspended()
        for name, button in self._buttons.items():
            button.set_visibility(not final or name in ALWAYS)
        if pause := self._buttons.get("pause"):  # one button for both, so that it stays under the pointer
            pause.set_text(self._visit.words("Resume") if suspended else self._visit.words("Suspend"))
            pause.set_icon("play_arrow" if suspended else "pause")

    def end(self) -> None:
        """Leave only the button that submits a copy: the job was deleted."""
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

    def _ask_why(self, title: str, verb: str, hint: str, call: Callable[..., Call[JobOut]]) -> None:
        fields = [Field("reason", self._visit.words("Reason"), hint=hint)]
        Form(self._visit.words, title, fields, verb, self._step(call))

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
        self._ask_why(words("Suspend {job}?", job=self._job.name), words("Suspend"), hint, jobs.suspend)

    def _cancel(self) -> None:
        words = self._visit.words
        hint = words("The job is stopped permanently; its record stays.")
        self._ask_why(words("Cancel {job}?", job=self._job.name), words("Cancel the job"), hint, jobs.cancel)

    def _resume(self) -> None:
        words = self._visit.words
        hint = words("It returns to its queue.")
        self._ask_why(words("Resume {job}?", job=self._job.name), words("Resume"), hint, jobs.resume)

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
        if self._gone:  # the API does not have the job any more, so it becomes a draft
            ui.run_javascript(keeping(self._visit.who, written(self._job.spec)))
            ui.navigate.to("/submit")
        else:
            ui.navigate.to(f"/submit?from={quote(self._job.id)}")


def priority_of(text: str) -> int:
    """Read a priority.

    Raises
    ------
    RejectedError
        When the text is not a whole number; it names the field.
    """
    if not WRITTEN.fullmatch(text):
        raise RejectedError(WHOLE, where="priority")
    return int(text)
