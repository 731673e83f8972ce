"""Jobs page: all jobs, newest first, with filters."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from nicegui import ui

from seaway.client.calls import fleet, jobs, tenancy
from seaway.client.calls import queues as queue_calls
from seaway.domain.errors import RejectedError, SeawayError
from seaway.domain.job_state import JobState
from seaway.web.fragment import Fragment
from seaway.web.latest import Latest
from seaway.web.parts.cordon import on_act
from seaway.web.reasons import ORDER, gpus
from seaway.web.visit import Visit

if TYPE_CHECKING:
    from nicegui.elements.mixins.value_element import ValueElement

    from seaway.wire.job_out import JobCount, JobPage

PAGE = 50
"""Number of jobs on a page."""

TYPING_S = 0.3
"""Delay between the last key press and a query, in seconds."""

AGED_S = 10.0
"""Interval in seconds at which ages are rendered again."""

PLACED = frozenset(state.value for state in JobState if state.placed)

FILTERS = ("name", "queue", "tenant", "cluster", "label", "submitted_by")
"""Filters except the state, by their names in the API and in addresses."""

BESIDE = ("label", "submitted_by")
"""Filters that only an address can set. The page shows a chip to remove each of them."""


async def build(visit: Visit) -> None:
    """Build the page."""
    await _Jobs(visit).make()


def states_of(text: str) -> tuple[list[str], list[str]]:
    """Return the known and the unknown states in an address."""
    given = [each for each in text.split(",") if each]
    return [each for each in given if each in ORDER], [each for each in given if each not in ORDER]


class _Jobs:
    """Jobs page of one visitor."""

    def __init__(self, visit: Visit) -> None:
        self.visit, self.words = visit, visit.words
        query = visit.query
        self._wanted = {name: query[name] for name in FILTERS if query.get(name)}
        self._states, self._strange = states_of(query.get("state", ""))
        self._after = query.get("after", "")
        self._typing, self._looking = Latest(visit), Latest(visit)
        self._page: JobPage | None = None
        self._count: JobCount | None = None

    async def make(self) -> None:
        """Draw the page, and follow its data."""
        with ui.element("section").classes("panel jobs-panel"):
            await self._filters()
            self._chips = Fragment("job_chips", self.words)
            on_act(self._chips, self._chosen)
            self._wrong = ui.label().classes("form-error").props("role=alert")
            self._wrong.set_visibility(False)
            self._table = Fragment("jobs", self.words)
            self._pager = Fragment("jobs_pager", self.words)
        await self._look()
        ui.timer(AGED_S, self._draw)

    async def _filters(self) -> None:
        visit, words = self.visit, self.words
        queues, clusters = await asyncio.gather(visit.ask(queue_calls.queues()), visit.ask(fleet.clusters()))
        with ui.element("div").classes("filters").props(f'role=search aria-label="{words("Filters")}"'):
            search = ui.input(
                words("Name"), value=self._wanted.get("name", ""), on_change=lambda e: self._typed("name", e.value)
            )
            search.props("outlined dense clearable autocomplete=off").classes("filter-wide")
            with search.add_slot("prepend"):
                ui.icon("search").props("aria-hidden=true")
            self._select("queue", words("Queue"), [each.name for each in queues.queues])
            if not visit.who.tenant:
                tenants = (await visit.ask(tenancy.tenants())).tenants
                self._select("tenant", words("Tenant"), [each.name for each in tenants])
            self._select("cluster", words("Cluster"), [each.name for each in clusters.clusters])
            if visit.may("user"):
                with ui.link(target="/submit").classes("button filters-end"):
                    ui.icon("add").props("aria-hidden=true")
                    ui.label(words("Submit a job"))

    def _select(self, name: str, label: str, options: list[str]) -> ValueElement[str | None]:
        there = self._wanted.get(name)
        listed = options if there is None or there in options else [*options, there]
        select = ui.select(listed, label=label, value=there, clearable=True, with_input=len(listed) > 8)
        select.on_value_change(lambda event: self._typed(name, event.value))
        return select.props("outlined dense options-dense").classes("filter")

    async def _typed(self, name: str, value: str | None) -> None:
        """Apply a filter after the typing delay."""
        self._wanted = {**self._wanted, name: (value or "").strip()}
        if await self._typing.begin().pause(TYPING_S):
            await self._restart()

    async def _chosen(self, act: str, name: str) -> None:
        """Toggle a state, or remove another filter. Without any state, all jobs are selected."""
        if act == "drop":
            self._wanted.pop(name, None)
        elif not name:
            self._states = []
        elif name in self._states:
            self._states.remove(name)
        else:
            self._states.append(name)
        self._typing.end()
        await self._restart()

    async def _restart(self) -> None:
        """Show the first page for the current filters."""
        self._after, self._strange = "", []
        self.visit.keep(**self._query(), after=None)
        await self._look()

    def _query(self) -> dict[str, str]:
        return {**{name: self._wanted.get(name, "") for name in FILTERS}, "state": ",".join(self._states)}

    async def _look(self) -> None:
        """Follow only the list with the current filters."""
        turn = self._looking.begin()
        wanted = {name: value for name, value in self._wanted.items() if value}
        states = {"state": self._states} if self._states else {}
        listed = jobs.jobs(limit=PAGE, after=self._after, **wanted, **states)  # type: ignore[arg-type]
        try:
            await turn.follow(listed.first, self._received)
            if await turn.follow(jobs.count(**wanted), self._counted):
                self._say(self._not_there())
        except RejectedError as error:
            if error.where != "after":
                self._say(str(error))
            else:  # outdated position in the address: restart the list
                await self._restart()
        except SeawayError as error:
            self._say(str(error))
            turn.again(self._look)

    def _not_there(self) -> str:
        """Describe unknown states in the address; empty for none."""
        if not self._strange:
            return ""
        strange = ", ".join(self._strange)
        if self._states:
            return self.words("State {state} not found: it is ignored.", state=strange)
        return self.words("State {state} not found: showing jobs in all states.", state=strange)

    def _say(self, wrong: str) -> None:
        self._wrong.set_text(wrong)
        self._wrong.set_visibility(bool(wrong))

    def _received(self, page: JobPage) -> None:
        self._page = page
        self._draw()

    def _counted(self, count: JobCount) -> None:
        self._count = count
        self._draw()

    def _draw(self) -> None:
        if self._page is None or self._count is None:
            return
        page, count, states = self._page, self._count, self._states
        query = {name: value for name, value in self._query().items() if value}
        beside = {name: query[name] for name in BESIDE if name in query}
        self._chips.show_of([count], lambda: _chips(count, states, beside), *states, *beside.items())
        self._table.show_of([page], lambda: _table(page, query), time.monotonic() // AGED_S, *query.items())
        total = sum(count.states.get(state, 0) for state in states) if states else count.total
        older = urlencode({**query, "after": page.next}) if page.next else ""
        self._pager.show(total=total, newest=urlencode(query) if self._after else None, older=older)


def _chips(count: JobCount, chosen: Sequence[str], beside: Mapping[str, str]) -> dict[str, object]:
    """Return the variables of the chips for states and other filters."""
    listed = [state for state in ORDER if count.states.get(state) or state in chosen]
    return {"states": listed, "counts": count.states, "chosen": chosen, "total": count.total, "beside": beside}


def _table(page: JobPage, query: Mapping[str, str]) -> dict[str, object]:
    return {
        "jobs": page.jobs,
        "gpus": gpus,
        "placed": PLACED,
        "narrowed": bool(query),
        "name": query.get("name", ""),
    }
