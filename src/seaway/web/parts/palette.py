"""Search over the whole system and command palette: a dialog of every page, opened by Ctrl-K or a button."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Protocol, TypeVar
from urllib.parse import quote, urlencode

from nicegui import ui

from seaway.client.calls import fleet, jobs, tenancy
from seaway.client.calls import queues as queue_calls
from seaway.domain.errors import SeawayError
from seaway.web import addresses
from seaway.web.fragment import Fragment
from seaway.web.latest import Latest
from seaway.web.parts.form import dialog, quoted
from seaway.web.visit import Visit
from seaway.web.words import LANGUAGES

T = TypeVar("T")

MOST = 6
"""Maximum number of results of each kind."""

TYPING_S = 0.08
"""Delay between the last key press and a search, in seconds."""

RECENT = 500
"""Number of the newest jobs whose users a search finds."""

ID_LENGTH = 13
"""Length of the ID of a job."""

WAITING = "pending,queued,preempted"

BUTTON = "search-button"
"""Class of the button that opens the dialog."""

OPEN_SCRIPT = f"""addEventListener("keydown", event => {{
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    event.preventDefault();
    document.querySelector(".{BUTTON}").click();
}});"""
"""Script of every page that opens the dialog by Ctrl-K, or Command-K."""

KEYS = """event => {
    const input = event.target, list = document.getElementById("palette-list");
    const options = () => [...list.querySelectorAll("[role=option]")];
    const current = () => options().findIndex(each => each.ariaSelected === "true");
    const choose = to => {
        options().forEach((each, at) => { each.ariaSelected = String(at === to); });
        const option = options()[to];
        if (!option) return;
        input.setAttribute("aria-activedescendant", option.id);
        option.scrollIntoView({block: "nearest"});
    };
    const follow = () => {
        if (!input.isConnected) return;
        if (list.dataset.query !== input.value.trim()) return void setTimeout(follow, 30);
        (options()[current()] ?? options()[0])?.click();
    };
    const last = options().length - 1, at = current();
    const next = {ArrowDown: at < last ? at + 1 : 0, ArrowUp: at > 0 ? at - 1 : last, PageDown: last, PageUp: 0};
    const to = next[event.key];
    if (event.isComposing) return;
    if (to !== undefined) { event.preventDefault(); choose(to); }
    if (event.key === "Enter") { event.preventDefault(); follow(); }
}"""
"""JavaScript of the input: arrow keys choose a result, and Enter opens it once the results are those of the input."""


class Entry(Protocol):
    """Page in the menu."""

    @property
    def path(self) -> str:
        """Address of the page."""
        ...

    @property
    def title(self) -> str:
        """Title in English."""
        ...

    @property
    def icon(self) -> str:
        """Icon of the page."""
        ...


@dataclass(frozen=True, slots=True)
class Found:
    """Result of a search, which is a link."""

    title: str
    href: str
    note: str = ""


@dataclass(slots=True)
class Group:
    """Results of one kind."""

    title: str
    icon: str
    results: list[Found] = field(default_factory=list)


class Palette:
    """Button of every page that opens the search. The dialog exists only while it is open.

    Parameters
    ----------
    menu
        Pages that the visitor sees in the menu.
    """

    def __init__(self, visit: Visit, menu: Sequence[Entry]) -> None:
        self._visit, self._menu = visit, menu
        words = visit.words
        ui.add_head_html(f"<script>{OPEN_SCRIPT}</script>")
        button = ui.element("button").classes(f"tool {BUTTON}").on("click", self._open)
        label = words("Search, Ctrl-K")
        button.props(f'type=button aria-label="{label}" title="{label}" aria-keyshortcuts="Control+K Meta+K"')
        with button:
            ui.icon("search").props("aria-hidden=true")
            ui.label(words("Search")).classes("search-text")
            ui.html("<kbd>Ctrl K</kbd>", sanitize=False).classes("search-key").props("aria-hidden=true")

    async def _open(self) -> None:
        words = self._visit.words
        known = asyncio.ensure_future(self._load())
        with dialog(words("Search")) as made:
            made.props("position=top").classes("palette")
            typed = (
                ui.element("input")
                .classes("palette-input")
                .props(
                    "type=search autofocus autocomplete=off spellcheck=false role=combobox aria-expanded=true "
                    "aria-autocomplete=list aria-controls=palette-list aria-activedescendant=palette-0 "
                    f"aria-label={quoted(words('Jobs, nodes, clusters, queues, pages and actions'))} "
                    f"placeholder={quoted(words('Jobs, nodes, clusters, queues, pages and actions'))}"
                )
            )
            shown = Fragment("palette", words)
            latest = Latest(self._visit)

            async def search(text: str) -> None:
                turn = latest.begin()
                if text and not await turn.pause(TYPING_S):
                    return  # a newer text is being searched
                groups = await self._search(text.strip(), known)
                if turn.counts():
                    shown.show(groups=groups, query=text.strip(), count=sum(len(each.results) for each in groups))

            typed.on("input", lambda event: search(str(event.args)), js_handler="event => emit(event.target.value)")
            typed.on("keydown", js_handler=KEYS)
            made.on("hide", latest.end)
        await search("")

    async def _load(self) -> list[Group]:
        """Return what is short enough to search here: pages, actions, clusters, queues, users, tenants and gateways."""
        visit, words = self._visit, self._visit.words
        clusters, queues, tenants, gateways, recent = await asyncio.gather(
            self._listed(visit.ask(fleet.clusters()), lambda answer: answer.clusters),
            self._listed(visit.ask(queue_calls.queues()), lambda answer: answer.queues),
            self._listed(visit.ask(tenancy.tenants()), lambda answer: answer.tenants),
            self._listed(visit.ask(fleet.gateways()), lambda answer: answer.gateways),
            self._listed(visit.ask(jobs.jobs(limit=RECENT).first), lambda answer: answer.jobs),
        )
        names = dict.fromkeys(each.submitted_by for each in recent)
        users = [Found(each, f"/jobs?{urlencode({'submitted_by': each})}", words("Jobs")) for each in names]
        pages = [Found(words(each.title), each.path) for each in self._menu]
        return [
            Group(words("Pages"), "web", [*pages, *pages_of_settings(visit)]),
            Group(words("Actions"), "bolt", list(actions_of(visit))),
            Group(words("Clusters"), "dns", [_cluster(each.name, words(each.state)) for each in clusters]),
            Group(words("Queues"), "queue", [_filtered("/queues", "queue", each) for each in queues]),
            Group(words("Users"), "person", users),
            Group(words("Tenants"), "group", [_filtered("/jobs", "tenant", each) for each in tenants]),
            Group(words("Gateways"), "router", [
                Found(each.name, f"/network?{urlencode({'gateway': each.name})}", ", ".join(each.clusters) or each.site)
                for each in gateways
            ]),
        ]  # fmt: skip

    async def _search(self, text: str, known: Awaitable[list[Group]]) -> list[Group]:
        """Return the results for a text by kind: kinds with exactly that name first."""
        parts, listed = text.casefold().split(), await known
        if not parts:
            return listed[:2]
        near = [Group(each.title, each.icon, best(each.results, parts)) for each in listed]
        gateways = [each.title for each in listed[-1].results]
        found_jobs, nodes, links = await asyncio.gather(
            self._jobs(parts), self._nodes(parts), self._links(parts, gateways)
        )
        groups = [*near[:2], found_jobs, nodes, *near[2:], links]
        exact = {id(group): any(each.title.casefold() == text.casefold() for each in group.results) for group in groups}
        return sorted((each for each in groups if each.results), key=lambda each: not exact[id(each)])

    async def _jobs(self, parts: Sequence[str]) -> Group:
        """Return the job with an ID, and jobs whose name contains the text, the newest first."""
        visit, words = self._visit, self._visit.words
        name = "-".join(parts)
        with_id = visit.ask(jobs.job(name)) if len(name) == ID_LENGTH else None
        one, named = await asyncio.gather(
            self._listed(with_id, lambda job: [job]) if with_id else _nothing(),
            self._listed(visit.ask(jobs.jobs(name=name, limit=MOST).first), lambda answer: answer.jobs),
        )
        found = {each.id: each for each in (*one, *named)}
        return Group(words("Jobs"), "list_alt", [
            Found(each.name, f"/jobs/{quote(each.id)}", f"{words(each.state)} · {each.id}") for each in found.values()
        ])  # fmt: skip

    async def _nodes(self, parts: Sequence[str]) -> Group:
        """Return nodes whose name contains the text."""
        call = fleet.nodes(name="-".join(parts), limit=MOST).first
        nodes = await self._listed(self._visit.ask(call), lambda answer: answer.nodes)
        return Group(self._visit.words("Nodes"), "memory", [
            Found(each.name, f"/fleet/{quote(each.cluster)}/{quote(each.name)}", each.cluster) for each in nodes
        ])  # fmt: skip

    async def _links(self, parts: Sequence[str], gateways: Sequence[str]) -> Group:
        """Return links from a gateway; with two names, such as ``gw-1 gw-2``, the links between them."""
        sources = [each for each in gateways if parts[0] in each.casefold()][:MOST]
        answers = await asyncio.gather(
            *(self._listed(self._visit.ask(fleet.links(source=each)), lambda found: found.links) for each in sources)
        )
        links = [
            Found(f"{each.source} → {each.target}", f"/network/{quote(each.source)}/{quote(each.target)}")
            for each in chain(*answers)
            if all(part in each.target.casefold() for part in parts[1:])
        ]
        return Group(self._visit.words("Links"), "hub", links[:MOST])

    async def _listed(self, answer: Awaitable[T], entries: Callable[[T], list[Any]]) -> list[Any]:
        """Return the entries of an answer; none if the role may not read it, or if it is not available."""
        try:
            return entries(await answer)
        except SeawayError:
            return []


async def _nothing() -> list[Any]:
    return []


def _cluster(name: str, state: str) -> Found:
    return Found(name, f"/fleet?{urlencode({'cluster': name})}", state)


def _filtered(page: str, name: str, entry: Any) -> Found:  # noqa: ANN401  # a QueueOut or TenantOut
    return Found(entry.name, f"{page}?{urlencode({name: entry.name})}", entry.description)


def best(results: Iterable[Found], parts: Sequence[str]) -> list[Found]:
    """Return the results that contain all parts: those that begin with the first part come first."""
    meant = [each for each in results if all(part in each.title.casefold() for part in parts)]
    return sorted(meant, key=lambda each: not each.title.casefold().startswith(parts[0]))[:MOST]


def pages_of_settings(visit: Visit) -> Iterator[Found]:
    """Yield the sections of settings that the role sees."""
    words = visit.words
    for name, title, role in (
        ("tokens", words("Tokens"), "admin"),
        ("users", words("Users"), "admin"),
        ("provider", words("Single sign-on"), "admin"),
        ("gateways", words("Gateways"), "operator"),
        ("notifications", words("Notifications"), "user"),
        ("workdirs", words("Working directories"), "user"),
        ("audit", words("Audit log"), "admin"),
        ("server", words("Server"), "viewer"),
    ):
        if visit.may(role):
            yield Found(title, f"/settings?section={name}", words("Settings"))


def actions_of(visit: Visit) -> Iterator[Found]:
    """Yield the actions that the role allows."""
    words, here = visit.words, addresses.own(addresses.here(visit.request))
    mine = urlencode({"submitted_by": visit.who.name})
    for title, href, role in (
        (words("Submit a job"), "/submit", "user"),
        (words("Show my jobs"), f"/jobs?{mine}", "user"),
        (words("Show waiting jobs"), f"/jobs?{urlencode({'state': WAITING, 'sort': 'submitted'})}", "viewer"),
        (words("Show failed jobs"), f"/jobs?{urlencode({'state': 'failed', 'sort': '-ended'})}", "viewer"),
        (words("Show nodes that are not ready"), "/fleet?ready=no", "viewer"),
        (words("Join a cluster"), "/settings?section=clusters", "admin"),
        (words("Create a token"), "/settings?section=tokens", "admin"),
        (words("Show cost and GPU-hours by queue"), "/queues", "viewer"),
        (words("Show jobs by their cost"), "/jobs?sort=-cost&columns=gpus,queue,started,gpu_hours,cost", "viewer"),
        (words("Change quotas of queues and tenants"), "/queues", "admin"),
        (words("Drain a node or cluster"), "/fleet", "operator"),
        (words("Read the API reference"), "/docs", "viewer"),
    ):
        if visit.may(role):
            yield Found(title, href)
    for theme, title in (
        ("light", words("Use light colours")),
        ("dark", words("Use dark colours")),
        ("auto", words("Use the colours of the system")),
    ):
        if theme != visit.theme:
            yield Found(title, f"{addresses.PREFERENCES}?{urlencode({'theme': theme, 'next': here})}")
    for language, name in LANGUAGES.items():
        if language != words.language:
            choose = urlencode({"language": language, "next": here})
            yield Found(words("Change the language"), f"{addresses.PREFERENCES}?{choose}", name)
