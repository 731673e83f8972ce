"""Submitting a job: a form and its YAML, each as the other has it, and where the job could go while one types."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from nicegui import ui
from nicegui.events import GenericEventArguments

from seaway.client.calls import fleet, jobs, tenancy
from seaway.client.errors import ForbiddenError
from seaway.domain.errors import RejectedError, SeawayError
from seaway.web.drafts import FOUND, keeping, telling
from seaway.web.figures import count
from seaway.web.fragment import Fragment
from seaway.web.job_document import LARGEST, field_of, typed
from seaway.web.job_draft import Behind, JobDraft
from seaway.web.latest import Latest, Turn
from seaway.web.parts.actions import on_act
from seaway.web.parts.editor import Editor
from seaway.web.parts.job_form import Choices, JobForm
from seaway.web.reasons import by_cluster, mends
from seaway.web.visit import Visit

if TYPE_CHECKING:
    from seaway.wire.explanations import DryRunOut
    from seaway.wire.fleet import ClusterList

TYPING_S = 0.3
"""How long nothing is typed before it is read, and the scheduler is asked."""

UNNAMED = "job"
"""What a job is called that has no name yet, when the scheduler is asked."""

NOTHING = "{}"
"""A job of which nothing is written yet."""

MAX_ROOM = 10_000
"""The API counts no more replicas than these that a node has room for."""

FORM, YAML = "form", "yaml"
"""Ways to write a job, as they stand in the address."""


async def build(visit: Visit) -> None:
    """Put the page together."""
    if not visit.may("user"):
        raise ForbiddenError(visit.words("Viewers cannot submit jobs."))
    page = _Submit(visit)
    await page.make()


class _Submit:
    """The page: a form and an editor, which show the same draft and change it."""

    def __init__(self, visit: Visit) -> None:
        self.visit, self.words = visit, visit.words
        self._draft = JobDraft()
        self._begun = False
        """True if it is known what was being written: until then nothing is typed, and nothing kept in its place."""
        self._nodes: dict[str, int] = {}
        self._trial: DryRunOut | None = None
        self._latest = Latest(visit)
        self._key = uuid4().hex
        self._errors: list[RejectedError] = []

    async def make(self) -> None:
        """Make what is seen."""
        visit, words = self.visit, self.words
        choices = await self._choices()
        if given := visit.query.get("from"):
            self._draft = JobDraft.of(dict((await visit.ask(jobs.job(given))).spec))
        with ui.element("div").classes("submit"):
            with ui.element("section").classes("panel submit-job").props(f'aria-label="{words("Job")}"'):
                with ui.element("div").classes("submit-ways"):
                    self._way = ui.toggle({FORM: words("Form"), YAML: "YAML"}, value=FORM, on_change=self._turned)
                    self._way.props("no-caps unelevated dense padding='4px 14px'")
                self._form = JobForm(words, choices, self._typed)
                self._editor = Editor(visit, self._pasted, words("The job as YAML"))
                self._editor.section.set_visibility(False)
                self._wrong = Fragment("job_errors", words)
                on_act(self._wrong, lambda path, _: self._lead(path))
                with ui.element("div").classes("submit-foot"):
                    self._button = ui.button(words("Submit"), on_click=self._submit, icon="send").props(
                        "no-caps unelevated"
                    )
                    self._note = ui.label().classes("dim")
                    self._verdict = Fragment("job_verdict", words)
            with ui.element("section").classes("panel submit-trial").props("aria-live=polite"):
                self._shown = Fragment("trial", words)
                on_act(self._shown, self._take)
        self._form.show(self._draft.document or {})
        self._editor.show(self._draft.text)
        if visit.query.get("as") == YAML:
            self._way.set_value(YAML)
        await visit.follow(fleet.clusters(), self._on_clusters)
        self._show()
        if self._draft.text:
            ui.timer(0, self._begin, once=True)
        else:
            self._offer_form()
            ui.on(FOUND, self._found)
            visit.client.run_javascript(telling(visit.who))

    async def _choices(self) -> Choices:
        """Find out what there is to choose from."""
        visit = self.visit
        queues, gateways = await asyncio.gather(visit.ask(tenancy.queues()), visit.ask(fleet.gateways()))
        tenants = (await visit.ask(tenancy.tenants())).tenants if not visit.who.tenant else []
        return Choices(
            queues=[each.name for each in queues.queues if each.open],
            gateways=[each.name for each in gateways.gateways],
            tenants=[each.name for each in tenants],
        )

    async def _found(self, event: GenericEventArguments) -> None:
        """Take up what was being written in this tab before a reload."""
        if not self._begun:
            self._begun = True
            draft = str(event.args or "")
            self._editor.show(draft)
            await self._pasted(draft)

    async def _begin(self) -> None:
        """Begin with a job like one that there is."""
        self._begun = True
        self._offer_form()
        await self._ask(self._latest.begin())

    def _keep_draft(self, text: str) -> None:
        self.visit.client.run_javascript(keeping(self.visit.who, text))

    # What is typed.

    async def _typed(self, path: str, value: Any) -> None:  # noqa: ANN401  # anything that YAML may hold
        """Take what was typed into a field of the form."""
        if self._draft.document is not None:
            self._draft.fill_in(path, value)
            self._form.document = self._draft.document
            await self._soon()

    async def _pasted(self, text: str) -> None:
        """Take what was typed or pasted into the editor."""
        self._draft.rewrite(text)
        await self._soon()

    async def _take(self, path: str, amount: str) -> None:
        """Take a change that would admit the job, and go to it: what was pressed is not there any more."""
        self._draft.fill_in(path, typed(amount, self._form.fields[path].kind))
        self._form.show(self._draft.document or {})
        self._lead(path)
        await self._soon(0)

    async def _turned(self) -> None:
        """Turn to the other way to write a job."""
        as_yaml = self._way.value == YAML
        self._form.section.set_visibility(not as_yaml)
        self._editor.section.set_visibility(as_yaml)
        self.visit.keep(**{"as": YAML if as_yaml else None})
        self._mark(self._errors)
        self._offer_form()
        if self._draft.behind is not Behind.NEITHER:
            await self._soon(0)

    async def _settle(self, turn: Turn) -> bool:
        """Have the form and the editor show the same; return whether nothing else was typed meanwhile."""
        behind = self._draft.behind
        if not await self._draft.settle(turn):
            return False
        if behind is Behind.TEXT:
            self._editor.show(self._draft.text)
        elif behind is Behind.DOCUMENT and self._draft.document is not None:
            self._form.show(self._draft.document)
        self._offer_form()
        return True

    def _offer_form(self) -> None:
        """Let people type into the form, unless it cannot show what is written."""
        unreadable = self._draft.document is None and self._way.value == FORM
        self._form.enable(self._begun and not unreadable)
        self._editor.enable(self._begun)
        self._note.set_text(self.words("Fix the YAML first: the form cannot show it.") if unreadable else "")

    def _lead(self, path: str) -> None:
        """Go to where something is wrong."""
        if self._way.value == YAML:
            self._editor.lead(path)
        else:
            self._form.lead(path)

    # What the scheduler says.

    async def _soon(self, pause_s: float = TYPING_S) -> None:
        """Read what was typed, and ask about it, once nothing has been typed for a moment."""
        turn = self._latest.begin()
        if not await turn.pause(pause_s) or not await self._settle(turn):
            return
        if self._draft.is_long:
            said = self.words("This text has more than {n} characters: it is checked when you submit it.",
                              n=count(LARGEST, self.words.locale))  # fmt: skip
            self._mark([])
            self._show(trouble=said)
            self._list([RejectedError(said)])
        else:
            self._keep_draft(self._draft.text)
            if self.visit.query.get("from"):
                self.visit.keep(**{"from": None})  # it is a draft of its own, which a reload takes up
            await self._ask(turn)

    async def _ask(self, turn: Turn) -> None:
        """Ask where the job would go, and show it unless something else is asked by then."""
        document = self._draft.document
        errors: list[RejectedError] = []
        try:
            if document is not None and not document.get("name"):
                trial = await self._try_unnamed()
            else:
                try:
                    trial = await self.visit.ask(jobs.dry_run(self._draft.text))
                except RejectedError as error:
                    errors = [error, *error.also]
                    if document is None or {each.where for each in errors} != {"name"}:
                        raise
                    trial = await self._try_unnamed()
        except SeawayError as error:
            if turn.counts():
                self._show_error(error)
                if not isinstance(error, RejectedError):
                    turn.again(lambda: self._ask(turn))
            return
        if turn.counts():
            self._trial = trial
            self._mark(errors)
            self._show()

    async def _try_unnamed(self) -> DryRunOut:
        """Ask as if the job had a name that does: where it could go does not hang on that."""
        return await self.visit.ask(jobs.dry_run(await self._draft.named(UNNAMED)))

    def _on_clusters(self, value: ClusterList) -> None:
        self._nodes = {each.name: each.nodes for each in value.clusters}

    def _show(self, *, wrong: bool = False, trouble: str = "") -> None:
        """Show what the scheduler says, or why it was not asked.

        Parameters
        ----------
        wrong
            Whether something is wrong with the job.
        trouble
            What else is wrong; empty for nothing.
        """
        trial = self._trial
        elsewhere = [each for each in self._errors if not field_of(each.where, self._form.fields)]
        explained = trial.explanation if trial else None
        verdict = {
            "trial": trial,
            "wrong": wrong,
            "elsewhere": elsewhere if self._way.value == FORM else [],
            "trouble": trouble,
        }
        self._verdict.show(**verdict)
        self._shown.show(
            **verdict,
            asks=bool((self._draft.document or {}).get("resources")),
            most_room=MAX_ROOM,
            clusters=by_cluster(explained, self._nodes) if explained else [],
            mends=list(mends(explained.remedies)) if explained else [],
        )

    # What is wrong.

    def _show_error(self, error: SeawayError) -> None:
        """Say what is wrong: at the field, at the line, and above the button what belongs to neither."""
        if isinstance(error, RejectedError):
            self._mark([error, *error.also])
            self._show(wrong=True)
        else:
            self._mark([])
            self._show(trouble=str(error))

    def _mark(self, errors: list[RejectedError]) -> None:
        self._errors = errors
        self._form.mark(errors)
        self._editor.mark(errors, self._draft.lines)
        self._list(errors if self._way.value == YAML else [])

    def _list(self, errors: list[RejectedError]) -> None:
        """List what is wrong above the button."""
        listed = [
            {"path": each.where, "message": each.message, "line": self._editor.line(each.where)} for each in errors
        ]
        self._wrong.show(errors=listed)

    async def _submit(self) -> None:
        """Submit the job, and go to its page."""
        self._button.disable()
        try:
            while not await self._settle(self._latest.begin()):
                pass  # something was typed meanwhile
            job = await self.visit.ask(jobs.submit(self._draft.text or NOTHING, key=self._key))
        except SeawayError as error:
            self._show_error(error)
            if not isinstance(error, RejectedError):
                self._list([RejectedError(str(error))])
            elif field_of(error.where, self._form.fields) or self._way.value == YAML:
                self._lead(error.where)
            else:
                self._list([error, *error.also])
        else:
            self._keep_draft("")
            ui.navigate.to(f"/jobs/{job.id}")
        finally:
            self._button.enable()
