"""Jobs page: all jobs, with filters, columns, saved filters, and actions on several jobs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode

from nicegui import ui

from seaway.client.calls import fleet, jobs, tenancy
from seaway.client.calls import queues as queue_calls
from seaway.domain.errors import RejectedError, SeawayError
from seaway.domain.job_state import JobState
from seaway.web.fragment import Fragment
from seaway.web.latest import Latest
from seaway.web.pages.jobs.columns import (
    COLUMNS,
    DATES,
    DEFAULT_COLUMNS,
    NUMBERS,
    SORTS,
    WIDTH_PX,
    WIDTHS_PX,
    csv_of,
    date_of,
    lasted_s,
    least_px,
    moment_of,
    time_of,
    waited_s,
)
from seaway.web.pages.jobs.job import priority_of
from seaway.web.parts.cordon import on_act
from seaway.web.parts.form import Field, Form, confirm, notify
from seaway.web.reasons import ORDER, gpus
from seaway.web.visit import Visit

if TYPE_CHECKING:
    from nicegui.elements.mixins.value_element import ValueElement

    from seaway.client.call import Call
    from seaway.web.latest import Turn
    from seaway.wire.job_out import JobCount, JobGroupList, JobOut, JobPage

PAGE = 50
"""Number of jobs on a page."""

TYPING_S = 0.3
"""Delay between the last key press and a query, in seconds."""

AGED_S = 10.0
"""Interval in seconds at which ages are rendered again."""

PLACED = frozenset(state.value for state in JobState if state.placed)

FILTERS = ("name", "queue", "tenant", "cluster", "label", "submitted_by", *DATES)
"""Filters except the state, by their names in the API and in addresses."""

BESIDE = ("label", "submitted_by", "ended_from", "ended_until")
"""Filters with a chip to remove each of them."""

GROUPS = {"user": ("User", "submitted_by"), "queue": ("Queue", "queue"), "tenant": ("Tenant", "tenant")}
"""Fields by which jobs are grouped: title, and filter of the API. Others are labels."""

GROUPS_S = 10.0
"""Interval of queries for groups, seconds."""

MAX_GROUPS = 200
"""Maximum number of groups."""

MAX_EXPORT = 10_000
"""Maximum number of jobs in an exported file."""

AT_ONCE = 8
"""Number of requests at the same time when an action concerns several jobs."""


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
        self._sort = query.get("sort", "")
        self._group = query.get("group", "")
        given = [each for each in query.get("columns", "").split(",") if each in COLUMNS]
        self._columns = given or list(DEFAULT_COLUMNS)
        self._picked: dict[str, JobOut] = {}
        self._beside: dict[str, ValueElement[Any]] = {}  # inputs of filters that also have a chip
        self._typing, self._looking = Latest(visit), Latest(visit)
        self._page: JobPage | None = None
        self._count: JobCount | None = None

    async def make(self) -> None:
        """Draw the page, and follow its data."""
        with ui.element("section").classes("panel jobs-panel"):
            await self._filters()
            self._chips = Fragment("job_chips", self.words)
            on_act(self._chips, self._chosen)
            self._bulk = Fragment("jobs_bulk", self.words)
            on_act(self._bulk, self._bulk_chosen)
            self._wrong = ui.label().classes("form-error").props("role=alert")
            self._wrong.set_visibility(False)
            self._table = Fragment("jobs", self.words)
            on_act(self._table, self._table_chosen)
            self._pager = Fragment("jobs_pager", self.words)
            self._groups = Fragment("job_groups", self.words)
            self._show_groups()
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
            await self._users()
            mine = ui.checkbox(words("My jobs"), value=self._wanted.get("submitted_by") == visit.who.name)
            self._beside["submitted_by"] = mine
            mine.on_value_change(lambda e: self._typed("submitted_by", visit.who.name if e.value else ""))
            if visit.may("user"):
                with ui.link(target="/submit").classes("button filters-end"):
                    ui.icon("add").props("aria-hidden=true")
                    ui.label(words("Submit a job"))
        with ui.element("div").classes("filters"):
            label = ui.input(words("Label"), value=self._wanted.get("label", ""), on_change=self._label_typed)
            label.props("outlined dense clearable autocomplete=off placeholder=key=value").classes("filter")
            self._beside["label"] = label
            for name, title in (
                ("submitted_from", words("Submitted from")),
                ("submitted_until", words("Submitted until")),
            ):
                self._date(name, title)
            groups = {"": words("none"), **{name: words(title) for name, (title, _) in GROUPS.items()}}
            if self._group.startswith("label:"):
                groups[self._group] = self._group
            group = ui.select(groups, label=words("Group by"), value=self._group, new_value_mode="add-unique")
            group.props(f'outlined dense options-dense use-input title="{words("or label:KEY")}"').classes("filter")
            group.on_value_change(lambda event: self._grouped(event.value or ""))
            titles = {name: words(title) for name, title in COLUMNS.items()}
            columns = ui.select(titles, label=words("Columns"), value=self._columns, multiple=True)
            columns.props("outlined dense options-dense").classes("filter")
            columns.on_value_change(lambda event: self._columns_chosen(event.value))
            await self._saved_filters()
            export = ui.button(words("Export CSV"), icon="download", on_click=self._export)
            export.props("flat dense no-caps").classes("filters-end")

    async def _users(self) -> None:
        """Offer the users who submitted jobs."""
        found = (await self.visit.ask(jobs.groups("user"))).groups
        if len(found) > 1 or self._wanted.get("submitted_by"):
            self._select("submitted_by", self.words("User"), sorted(each.name for each in found))

    async def _grouped(self, by: str) -> None:
        """Show groups of jobs, or the jobs for an empty text."""
        if by and by not in GROUPS and not by.removeprefix("label:").strip():
            return
        self._group = by if by in GROUPS or not by else f"label:{by.removeprefix('label:').strip()}"
        self._show_groups()
        await self._restart()

    def _show_groups(self) -> None:
        """Show either the groups or the list."""
        for each in (self._table, self._bulk, self._pager):
            each.element.set_visibility(not self._group)
        self._groups.element.set_visibility(bool(self._group))

    def _date(self, name: str, title: str) -> None:
        chosen = date_of(name, self._wanted[name]) if name in self._wanted else ""
        picked = ui.input(title, value=chosen, on_change=lambda event: self._dated(name, event.value or ""))
        picked.props("outlined dense clearable type=date stack-label").classes("filter")

    async def _dated(self, name: str, day: str) -> None:
        """Filter by a day in the time zone of the browser."""
        await self._typed(name, moment_of(name, day, await self.visit.zone()) if day else "")

    async def _label_typed(self, event: Any) -> None:  # noqa: ANN401  # events of the library
        """Filter by a label once it has a value."""
        text = (event.value or "").strip()
        if not text or "=" in text.strip("="):
            await self._typed("label", text)

    async def _saved_filters(self) -> None:
        """Draw the saved filters of the user, with buttons to save and to delete one."""
        words = self.words
        listed = (await self.visit.ask(jobs.saved_filters())).filters
        queries = {each.name: each.query for each in listed}
        here = {name: value for name, value in self._view().items() if value}
        current = next((name for name, query in queries.items() if dict(parse_qsl(query)) == here), None)
        chosen = ui.select(list(queries), label=words("Saved filters"), value=current)
        chosen.props("outlined dense options-dense").classes("filter")
        chosen.on_value_change(lambda event: ui.navigate.to(f"/jobs?{queries[event.value]}"))
        chosen.set_visibility(bool(queries))
        save = ui.button(icon="bookmark_add", on_click=lambda: self._save(current or "")).props("flat dense round")
        save.props(f'aria-label="{words("Save these filters")}" title="{words("Save these filters")}"')
        if current:
            drop = ui.button(icon="bookmark_remove", on_click=lambda: self._drop(current)).props("flat dense round")
            drop.props(f'aria-label="{words("Delete this saved filter")}" title="{words("Delete this saved filter")}"')

    def _save(self, name: str) -> None:
        words = self.words

        async def send(given: dict[str, Any]) -> None:
            if not given["name"]:
                raise RejectedError(words("Give it a name."), where="name")
            query = urlencode({name: value for name, value in self._view().items() if value})
            await self.visit.ask(jobs.put_saved_filter(given["name"], query))
            ui.navigate.to(f"/jobs?{query}")

        field = Field("name", words("Name"), value=name, hint=words("Filters, order and columns of this page."))
        Form(words, words("Save these filters"), [field], words("Save"), send)

    def _drop(self, name: str) -> None:
        words = self.words

        async def do() -> None:
            await self.visit.ask(jobs.delete_saved_filter(name))
            ui.navigate.to(f"/jobs?{urlencode({name: value for name, value in self._view().items() if value})}")

        text = words("Jobs are not affected.")
        confirm(words, words("Delete the saved filter {name}?", name=name), text, words("Delete"), do)

    async def _columns_chosen(self, columns: list[str]) -> None:
        self._columns = [name for name in COLUMNS if name in columns]
        self.visit.keep(**self._view())
        await self._look()

    async def _table_chosen(self, act: str, name: str) -> None:
        """Sort by a column, or select jobs."""
        if act == "sort":
            first = SORTS[name]
            other = first.removeprefix("-") if first.startswith("-") else f"-{first}"
            self._sort = other if self._sort == first or (not self._sort and first == "-submitted") else first
            self._sort = "" if self._sort == "-submitted" else self._sort
            await self._restart()
            return
        page = self._page.jobs if self._page else []
        if act == "pick-all":
            every = all(job.id in self._picked for job in page)
            self._picked = {} if every else {**self._picked, **{job.id: job for job in page}}
        elif act == "pick":
            found = {job.id: job for job in page if job.id == name}
            self._picked = (
                {key: job for key, job in self._picked.items() if key != name}
                if name in self._picked
                else {**self._picked, **found}
            )
        self._draw()

    def _bulk_chosen(self, act: str, _: str) -> None:
        """Open the dialog of an action on the selected jobs."""
        words, number = self.words, len(self._picked)
        if act == "clear":
            self._picked = {}
            self._draw()
        elif act == "compare":
            ui.navigate.to(f"/compare?{urlencode({'jobs': ','.join(self._picked)})}")
        elif act == "priority":

            async def send(given: dict[str, Any]) -> None:
                wanted = priority_of(str(given["priority"]))
                await self._do_all(lambda job: jobs.update(job, {"priority": wanted}))

            field = Field("priority", words("Priority"), value="0", hint=words("Priority; higher goes first."))
            title = words("Change the priority of {n:job}", n=number)
            Form(words, title, [field], words("Change"), send)
        else:
            calls: dict[str, tuple[str, str, Callable[[str], Call[JobOut]]]] = {
                "cancel": (words("Cancel {n:job}?", n=number), words("Cancel jobs"), jobs.cancel),
                "suspend": (words("Suspend {n:job}?", n=number), words("Suspend"), jobs.suspend),
                "resume": (words("Resume {n:job}?", n=number), words("Resume"), jobs.resume),
            }
            title, verb, call = calls[act]
            names = ", ".join([job.name for job in self._picked.values()][:5]) + (" …" if number > 5 else "")
            confirm(words, title, names, verb, lambda: self._do_all(call))

    async def _do_all(self, call: Callable[[str], Call[JobOut]]) -> None:
        """Send a call for each selected job. Those that fail stay selected, and the page shows the first reasons."""
        words, turns, wrong = self.words, asyncio.Semaphore(AT_ONCE), dict[str, str]()

        async def do(job: JobOut) -> None:
            async with turns:
                try:
                    await self.visit.ask(call(job.id))
                except SeawayError as error:
                    wrong[job.id] = f"{job.name}: {error}"

        picked = self._picked
        await asyncio.gather(*map(do, picked.values()))
        self._picked = {job_id: job for job_id, job in picked.items() if job_id in wrong}
        done = words("{n} of {total:job} changed.", n=len(picked) - len(wrong), total=len(picked))
        notify(done, "\n".join(list(wrong.values())[:5]))
        self._draw()

    async def _export(self) -> None:
        """Download the jobs that match as CSV, in the order of the list and with all columns."""
        found = jobs.jobs(limit=MAX_EXPORT, gpu_hours=True, cost=True, **self._wanted_query())  # type: ignore[arg-type]
        rows = await self.visit.all(found)
        ui.download.content(csv_of(rows), "jobs.csv", "text/csv")
        if len(rows) == MAX_EXPORT:
            notify(self.words("The file has the first {n} jobs.", n=MAX_EXPORT))

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
            if name in self._beside:
                self._beside[name].value = type(self._beside[name].value)()
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
        self.visit.keep(**self._view(), after=None)
        await self._look()

    def _query(self) -> dict[str, str]:
        return {**{name: self._wanted.get(name, "") for name in FILTERS}, "state": ",".join(self._states)}

    def _view(self) -> dict[str, str]:
        """Return the query parameters of the page, except those of the page of the list."""
        columns = "" if self._columns == list(DEFAULT_COLUMNS) else ",".join(self._columns)
        return {**self._query(), "sort": self._sort, "columns": columns, "group": self._group}

    def _filter(self) -> dict[str, str]:
        """Return the filters of the API except the state."""
        return {name: moment_of(name, value) for name, value in self._wanted.items() if value}

    def _wanted_query(self) -> dict[str, object]:
        """Return the filters of the API, and the order."""
        states = {"state": self._states} if self._states else {}
        return {**self._filter(), **states, **({"sort": self._sort} if self._sort else {})}

    async def _look(self) -> None:
        """Follow only the list with the current filters."""
        turn = self._looking.begin()
        if self._group:
            await self._look_at_groups(turn)
            return
        wanted = self._wanted_query()
        more = (("gpu_hours", "gpu_hours"), ("cost", "cost"), ("starts", "wait"))
        held = {name: True for name, column in more if column in self._columns}
        listed = jobs.jobs(limit=PAGE, after=self._after, **wanted, **held)  # type: ignore[arg-type]
        try:
            await turn.follow(listed.first, self._received)
            if await turn.follow(jobs.count(**self._filter()), self._counted):  # type: ignore[arg-type]
                self._say(self._not_there())
        except RejectedError as error:
            if error.where != "after":
                self._say(str(error))
            else:  # outdated position in the address: restart the list
                await self._restart()
        except SeawayError as error:
            self._say(str(error))
            turn.again(self._look)

    async def _look_at_groups(self, turn: Turn) -> None:
        """Follow only the groups of the jobs that match."""
        states = {"state": self._states} if self._states else {}
        try:
            call = jobs.groups(self._group, **self._filter(), **states)  # type: ignore[arg-type]
            await turn.follow(call, self._received_groups, GROUPS_S)
            if await turn.follow(jobs.count(**self._filter()), self._counted):  # type: ignore[arg-type]
                self._say(self._not_there())
        except RejectedError as error:
            self._say(str(error))
        except SeawayError as error:
            self._say(str(error))
            turn.again(self._look)

    def _received_groups(self, listed: JobGroupList) -> None:
        title, field = GROUPS.get(self._group, ("Label", "label"))
        key = f"{self._group.removeprefix('label:')}=" if field == "label" else ""
        here = {name: value for name, value in self._query().items() if value and name != field}
        groups = [
            (each, f"/jobs?{urlencode({**here, field: key + each.name})}" if each.name else "")
            for each in listed.groups[:MAX_GROUPS]
        ]
        self._groups.show_of(
            [listed], lambda: {"groups": groups, "title": key.removesuffix("=") or self.words(title)}, *here.items()
        )

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
        if self._count is None:
            return
        page, count, states = self._page, self._count, self._states
        query = {name: value for name, value in self._view().items() if value}
        beside = {name: query[name] for name in BESIDE if name in query}
        self._chips.show_of([count], lambda: _chips(count, states, beside), *states, *beside.items())
        if page is None or self._group:
            return
        may, picked = self.visit.may("user"), frozenset(self._picked)
        shown = {**query, "": self._sort}
        self._table.show_of(
            [page],
            lambda: _table(page, query, self._columns, self._sort, picked if may else None),
            time.monotonic() // AGED_S,
            may,
            picked,
            *self._columns,
            *shown.items(),
        )
        self._bulk.element.set_visibility(bool(picked))
        self._bulk.show(number=len(picked))
        total = sum(count.states.get(state, 0) for state in states) if states else count.total
        older = urlencode({**query, "after": page.next}) if page.next else ""
        self._pager.show(
            total=total,
            newest=urlencode(query) if self._after else None,
            older=older,
            sorted=bool(self._sort),
        )


def _chips(count: JobCount, chosen: Sequence[str], beside: Mapping[str, str]) -> dict[str, object]:
    """Return the variables of the chips for states and other filters."""
    listed = [state for state in ORDER if count.states.get(state) or state in chosen]
    shown = {name: time_of(name, value) if name in DATES else value for name, value in beside.items()}
    return {"states": listed, "counts": count.states, "chosen": chosen, "total": count.total, "beside": shown}


def _table(
    page: JobPage, query: Mapping[str, str], columns: Sequence[str], sort: str, picked: frozenset[str] | None
) -> dict[str, object]:
    """Return the variables of the table; `picked` has the selected jobs, or is None if none can be selected."""
    narrowed = any(name in query for name in (*FILTERS, "state"))
    return {
        "jobs": page.jobs,
        "gpus": gpus,
        "placed": PLACED,
        "narrowed": narrowed,
        "name": query.get("name", ""),
        "columns": [(name, COLUMNS[name], WIDTHS_PX.get(name, WIDTH_PX)) for name in columns],
        "numbers": NUMBERS,
        "least_px": least_px(columns),
        "sort": sort or "-submitted",
        "sorts": SORTS,
        "picked": picked,
        "lasted": lasted_s,
        "waited": waited_s,
    }
