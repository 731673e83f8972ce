"""Submit page: a form and a YAML editor with the same job, and a dry run while the user types."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from nicegui import ui
from nicegui.events import GenericEventArguments, ValueChangeEventArguments

from seaway.client.calls import fleet, jobs, tenancy
from seaway.client.calls import queues as queue_calls
from seaway.client.errors import ForbiddenError
from seaway.domain.errors import RejectedError, SeawayError
from seaway.web.drafts import FOUND, load_script, store_script
from seaway.web.fragment import Fragment
from seaway.web.job_document import LARGEST, Document, field_of, typed
from seaway.web.latest import Latest, Turn
from seaway.web.pages.jobs.job_form import PRESETS, Behind, Choices, JobDraft, JobForm
from seaway.web.parts.cordon import on_act
from seaway.web.parts.editor import Editor
from seaway.web.parts.models import model_titles
from seaway.web.reasons import by_cluster, by_node, remedy_texts
from seaway.web.visit import Visit
from seaway.web.words import count

if TYPE_CHECKING:
    from seaway.wire.explanations import DryRunOut
    from seaway.wire.fleet import ClusterList
    from seaway.wire.queues import QueueOut

TYPING_S = 0.3
"""Delay in seconds between the last key press and a dry run."""

UNNAMED = "job"
"""Name in a dry run of a job without a name."""

NOTHING = "{}"
"""Text of an empty job."""

MAX_ROOM = 10_000
"""Maximum number of replicas per node that the API counts."""

FORM, YAML = "form", "yaml"
"""Views of a job, by their names in addresses."""


async def build(visit: Visit) -> None:
    """Build the page."""
    if not visit.may("user"):
        raise ForbiddenError(visit.words("Viewers cannot submit jobs."))
    page = _Submit(visit)
    await page.make()


class _Submit:
    """Submit page of one visitor: a form and an editor that change the same draft."""

    def __init__(self, visit: Visit) -> None:
        self.visit, self.words = visit, visit.words
        self._draft = JobDraft()
        self._begun = False
        """True after the draft is loaded. Before that, input is disabled and nothing is stored."""
        self._nodes: dict[str, int] = {}
        self._trial: DryRunOut | None = None
        self._latest = Latest(visit)
        self._key = uuid4().hex
        self._errors: list[RejectedError] = []
        self._restored = False
        """True while the form shows a draft of an earlier visit."""

    async def make(self) -> None:
        """Draw the page, and follow its data."""
        visit, words = self.visit, self.words
        choices = await self._choices()
        if given := visit.query.get("from"):
            self._draft = JobDraft.of(dict((await visit.ask(jobs.job(given))).spec))
        with ui.element("div").classes("submit"):
            with ui.element("section").classes("panel submit-job").props(f'aria-label="{words("Job")}"'):
                with ui.element("div").classes("submit-ways"):
                    self._way = ui.toggle({FORM: words("Form"), YAML: "YAML"}, value=FORM, on_change=self._turned)
                    self._way.props("no-caps unelevated dense padding='4px 14px'")
                    titles = {name: words(name) for name in PRESETS}
                    begin = ui.select(titles, label=words("Begin with"), on_change=self._chose_preset)
                    begin.props("outlined dense options-dense").classes("filter-wide filters-end")
                self._form = JobForm(words, choices, self._typed)
                self._editor = Editor(visit, self._pasted, words("The job as YAML"))
                self._editor.section.set_visibility(False)
                self._wrong = Fragment("job_errors", words)
                on_act(self._wrong, lambda path, _: self._lead(path))
                with ui.element("div").classes("submit-foot"):
                    self._button = ui.button(words("Submit"), on_click=self._submit, icon="send").props(
                        "no-caps unelevated"
                    )
                    clear = ui.button(words("Clear"), on_click=self._clear, icon="clear_all", color=None)
                    clear.props("flat no-caps")
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
            visit.client.run_javascript(load_script(visit.who))

    async def _choices(self) -> Choices:
        visit = self.visit
        queues, gateways, models = await asyncio.gather(
            visit.ask(queue_calls.queues()), visit.ask(fleet.gateways()), visit.ask(fleet.models())
        )
        tenants = (await visit.ask(tenancy.tenants())).tenants if not visit.who.tenant else []
        return Choices(
            queues=accepting(queues.queues),
            gateways=[each.name for each in gateways.gateways],
            tenants=[each.name for each in tenants],
            models=model_titles(visit.words, models.models),
        )

    async def _found(self, event: GenericEventArguments) -> None:
        """Restore the draft of this tab after a reload."""
        if not self._begun:
            self._begun = True
            draft = str(event.args or "")
            self._restored = bool(draft)
            self._editor.show(draft)
            await self._pasted(draft)

    async def _begin(self) -> None:
        """Begin with a copy of an existing job."""
        self._begun = True
        self._offer_form()
        await self._ask(self._latest.begin())

    def _keep_draft(self, text: str) -> None:
        self.visit.client.run_javascript(store_script(self.visit.who, text))

    # Input

    async def _typed(self, path: str, value: Any) -> None:  # noqa: ANN401  # any value of YAML
        if self._draft.document is not None:
            self._draft.fill_in(path, value)
            self._form.document = self._draft.document
            if path.partition(".")[0] == "replicas":  # the number is shown in several fields
                self._form.show(self._form.document)
            await self._soon()

    async def _pasted(self, text: str) -> None:
        self._draft.rewrite(text)
        await self._soon()

    async def _chose_preset(self, event: ValueChangeEventArguments[str | None]) -> None:
        """Begin with a preset."""
        if event.value:
            await self._start_with(dict(PRESETS[event.value]))

    async def _clear(self) -> None:
        """Begin again with an empty form."""
        await self._start_with({})

    async def _start_with(self, document: Document) -> None:
        """Replace the draft."""
        self._draft = JobDraft.of(document) if document else JobDraft()
        self._begun, self._restored, self._trial, self._key = True, False, None, uuid4().hex
        self._mark([])
        self._form.show(document)
        self._editor.show(self._draft.text)
        self._offer_form()
        self._keep_draft(self._draft.text)
        self.visit.keep(**{"from": None})
        self._show()
        await self._soon(0)

    async def _take(self, path: str, amount: str) -> None:
        """Apply a change that makes the job admissible, and focus its field, because the button disappears."""
        self._draft.fill_in(path, typed(amount, self._form.fields[path].kind))
        self._form.show(self._draft.document or {})
        self._lead(path)
        await self._soon(0)

    async def _turned(self) -> None:
        as_yaml = self._way.value == YAML
        self._form.section.set_visibility(not as_yaml)
        self._editor.section.set_visibility(as_yaml)
        self.visit.keep(**{"as": YAML if as_yaml else None})
        self._mark(self._errors)
        self._offer_form()
        if self._draft.behind is not Behind.NEITHER:
            await self._soon(0)

    async def _settle(self, turn: Turn) -> bool:
        """Synchronize form and editor; return False if the user typed during that time."""
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
        """Enable the form if it can show the text."""
        unreadable = self._draft.document is None and self._way.value == FORM
        self._form.enable(self._begun and not unreadable)
        self._editor.enable(self._begun)
        restored = self.words("Your unsent draft. Clear begins a new job.") if self._restored else ""
        self._note.set_text(self.words("Fix the YAML first: the form cannot show it.") if unreadable else restored)

    def _lead(self, path: str) -> None:
        if self._way.value == YAML:
            self._editor.lead(path)
        else:
            self._form.lead(path)

    # Dry run

    async def _soon(self, pause_s: float = TYPING_S) -> None:
        """Read the draft and run the scheduler after a delay without input."""
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
                self.visit.keep(**{"from": None})  # an independent draft, which a reload restores
            await self._ask(turn)

    async def _ask(self, turn: Turn) -> None:
        """Run the dry run, and show its result unless a newer dry run has begun. An empty form has none."""
        document = self._draft.document
        if document is not None and not document:
            self._trial = None
            self._mark([])
            self._show()
            return
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
        """Run the dry run under a valid name. The placement does not depend on the name."""
        return await self.visit.ask(jobs.dry_run(await self._draft.named(UNNAMED)))

    def _on_clusters(self, value: ClusterList) -> None:
        self._nodes = {each.name: each.nodes for each in value.clusters}

    def _show(self, *, wrong: bool = False, trouble: str = "") -> None:
        """Show the result of the dry run, or the reason why it did not run.

        Parameters
        ----------
        wrong
            True if the job has errors.
        trouble
            Another error; empty for none.
        """
        trial = self._trial
        elsewhere = [each for each in self._errors if not field_of(each.where, self._form.fields)]
        explained = trial.explanation if trial else None
        verdict = {
            "trial": trial,
            "wrong": wrong,
            "empty": self._begun and self._draft.document == {},
            "elsewhere": elsewhere if self._way.value == FORM else [],
            "trouble": trouble,
        }
        self._verdict.show(**verdict)
        self._shown.show(
            **verdict,
            asks=bool((self._draft.document or {}).get("resources")),
            most_room=MAX_ROOM,
            nodes=by_node(trial.placements) if trial else [],
            clusters=by_cluster(explained, self._nodes) if explained else [],
            remedies=list(remedy_texts(explained.remedies, self._draft.document or {})) if explained else [],
        )

    # Errors

    def _show_error(self, error: SeawayError) -> None:
        """Show errors at their fields and lines, and all others above the button."""
        error = self.visit.words.error(error)  # also of a document that was not sent
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
        listed = [
            {"path": each.where, "message": each.message, "line": self._editor.line(each.where)} for each in errors
        ]
        self._wrong.show(errors=listed)

    async def _submit(self) -> None:
        self._button.disable()
        try:
            while not await self._settle(self._latest.begin()):
                pass  # the user typed during that time
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


def accepting(queues: Iterable[QueueOut]) -> list[str]:
    """Return the names of the queues that accept jobs: open ones without children."""
    known = list(queues)
    parents = {each.parent for each in known}
    return [each.name for each in known if each.open and each.name not in parents]
