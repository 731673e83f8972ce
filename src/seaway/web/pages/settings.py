"""Settings page: tokens, clusters, gateways, archives, the audit log and the server."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from nicegui import ui

from seaway import __version__
from seaway.client.calls import fleet, jobs, joins, network, service, tenancy, workdirs
from seaway.client.calls import service as access
from seaway.domain.errors import SeawayError
from seaway.domain.tenancy import DEFAULT
from seaway.domain.units import size_text
from seaway.web.fragment import Fragment
from seaway.web.latest import Latest
from seaway.web.pages.joining import REFRESH_S as JOINS_REFRESH_S
from seaway.web.pages.joining import Joining, add_gateway, ask_to_leave
from seaway.web.pages.notifications import show_notifications
from seaway.web.parts.cordon import on_act
from seaway.web.parts.form import Field, Form, confirm, dialog, notify, secret_field
from seaway.web.visit import Visit
from seaway.web.words import Words

if TYPE_CHECKING:
    from seaway.wire.fleet import ClusterList, ClusterOut, GatewayList
    from seaway.wire.job_out import JobCount
    from seaway.wire.joins import JoinList
    from seaway.wire.network_views import AgentList
    from seaway.wire.tokens import AuditPage, TokenList, TokenOut, UserList
    from seaway.wire.workdirs import WorkdirList


SLOW_REFRESH_S = 3.0

MAX_TOKENS = 200
"""Maximum number of tokens in the table. The search finds others."""


async def show_tokens(visit: Visit) -> None:
    """Show tokens, and follow changes."""
    page = _Tokens(visit)
    await visit.follow(access.tokens(), page.callback, SLOW_REFRESH_S)


class _Tokens:
    """Tokens section of one visitor."""

    def __init__(self, visit: Visit) -> None:
        self._visit, words = visit, visit.words
        self._all: list[TokenOut] = []
        self._over, self._search = visit.query.get("over") == "1", visit.query.get("search", "")
        with ui.element("div").classes("panel-head"):
            ui.label(words("Tokens")).props("role=heading aria-level=2").classes("panel-title")
            with ui.element("div").classes("panel-tools"):
                ui.input(words("Search"), value=self._search, on_change=self._searched).props(
                    "outlined dense clearable debounce=200 autocomplete=off"
                )
                ui.switch(words("Include expired and revoked tokens"), value=self._over, on_change=self._switched)
                ui.button(words("New token"), on_click=self._new).props("unelevated no-caps")
        self._fragment = Fragment("tokens", words)
        on_act(self._fragment, self._act)

    def callback(self, value: TokenList) -> None:
        """Accept the list of tokens."""
        self._all = sorted(value.tokens, key=lambda each: each.created_at, reverse=True)
        self._draw()

    def _draw(self) -> None:
        rows = [{"token": each, "over": over_since(each)} for each in self._all]
        rows = [each for each in rows if self._over or not each["over"]]
        if wanted := self._search.casefold():
            rows = [each for each in rows if _has(each["token"], wanted)]  # type: ignore[arg-type]  # a token
        self._fragment.show(rows=rows[:MAX_TOKENS], left=max(0, len(rows) - MAX_TOKENS), searched=bool(wanted))

    def _searched(self, event: Any) -> None:  # noqa: ANN401  # event type of the library
        self._search = event.value or ""
        self._visit.keep(search=self._search)
        self._draw()

    def _switched(self, event: Any) -> None:  # noqa: ANN401  # event type of the library
        self._over = bool(event.value)
        self._visit.keep(over="1" if self._over else None)
        self._draw()

    def _act(self, act: str, name: str) -> None:
        token = next((each for each in self._all if each.id == name), None)
        if act != "revoke" or token is None:
            return
        words = self._visit.words

        async def revoke() -> None:
            await self._visit.ask(access.revoke_token(token.id))
            self._visit.ask_again(access.tokens())
            notify(words("Token {name} is revoked", name=token.name))

        title = words("Revoke token {name}?", name=token.name)
        text = words("The token stops working immediately. This cannot be undone.")
        confirm(words, title, text, words("Revoke"), revoke)

    async def _new(self) -> None:
        words = self._visit.words
        tenants = (await self._visit.ask(tenancy.tenants())).tenants
        roles = {
            "viewer": words("viewer"),
            "monitor": words("monitor"),
            "user": words("user"),
            "operator": words("operator"),
            "admin": words("admin"),
            "agent": words("agent"),
        }
        fields = [
            Field("name", words("Name"), hint=words("User or program")),
            Field("role", words("Role"), "user", roles),
            Field(
                "tenant",
                words("Tenant"),
                "default",
                {"": words("none"), **{each.name: each.name for each in tenants}},
                words("Needed for viewers and users; none for others"),
            ),
            Field("gateway", words("Gateway"), hint=words("For an agent: its gateway")),
            Field("expires_in", words("Lifetime"), hint=words("Like 90d or 12h; empty for no limit")),
        ]
        Form(words, words("New token"), fields, words("Create"), self._make)

    async def _make(self, given: dict[str, Any]) -> None:
        call = access.create_token(**{**given, "expires_in": given["expires_in"] or None})
        made = await self._visit.ask(call)
        self._visit.ask_again(access.tokens())
        show_secret(self._visit, made.name, made.secret)


def show_secret(visit: Visit, name: str, secret: str) -> None:
    """Show the secret of a new token once, with a button that copies it."""
    words = visit.words
    with dialog(words("Token {name}", name=name)) as made:
        secret_field(words, made, words("Copy it now: it is shown only once."), secret)


def over_since(token: TokenOut) -> str:
    """Return ``revoked`` or ``expired``; empty for a valid token."""
    if token.revoked_at:
        return "revoked"
    expires = token.expires_at
    return "expired" if expires and datetime.fromisoformat(expires) <= datetime.now(UTC) else ""


def _has(token: TokenOut, wanted: str) -> bool:
    """Report whether a visible field of a token contains a text."""
    return any(wanted in each.casefold() for each in (token.name, token.id, token.role, token.tenant, token.gateway))


async def show_users(visit: Visit) -> None:
    """Show users with their tokens and the use of their jobs, and follow changes."""
    fragment = Fragment("users", visit.words)
    uses = {each.name: each for each in (await visit.ask(jobs.groups("user"))).groups}

    def callback(value: UserList) -> None:
        rows = [
            {
                "user": each,
                "use": uses.get(each.name),
                "tokens": [{"token": one, "over": over_since(one)} for one in each.tokens],
            }
            for each in value.users
        ]
        fragment.show(rows=rows)

    await visit.follow(access.users(), callback, SLOW_REFRESH_S)


async def show_provider(visit: Visit) -> None:
    """Show the settings of single sign-on."""
    provider = await visit.ask(access.identity_provider())
    Fragment("provider", visit.words).show(provider=provider)


MOST = 25
"""Number of entries on a page."""

AUDIT_REFRESH_S = 2.0


async def show_audit(visit: Visit) -> None:
    """Show the newest entries of the audit log as they arrive, with links to older ones."""
    await _Audit(visit).follow()


AUDIT_FILTERS = ("actor", "contains", "since", "questions")
"""Names of the filters in addresses."""


def _begin_of(day: str) -> str:
    """Return the begin of a day in UTC; empty for anything else."""
    return f"{day}T00:00:00Z" if re.fullmatch(r"\d{4}-[01]\d-[0-3]\d", day) else ""


class _Audit:
    """Audit section of one visitor."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._marks = [0]  # positions of the previous pages and of this one
        self._next: int | None = None
        self._latest = Latest(visit)
        words, self._given = visit.words, {name: visit.query.get(name, "") for name in AUDIT_FILTERS}
        titles = {"actor": words("Actor"), "contains": words("Contains"), "since": words("Earliest day")}
        with ui.element("search").classes("filters").props(f'aria-label="{words("Filters")}"'):
            for name, title in titles.items():
                field = ui.input(title, value=self._given[name], on_change=self._filtered(name))
                kind = " type=date stack-label" if name == "since" else ""
                field.props(f"outlined dense clearable debounce=300 autocomplete=off{kind}").classes("filter")
            questions = ui.checkbox(words("What-if questions"), value=bool(self._given["questions"]))
            questions.on_value_change(self._filtered("questions"))
        self._fragment = Fragment("audit", words)
        on_act(self._fragment, self._act)

    async def follow(self) -> None:
        """Show the selected page."""
        turn, self._next = self._latest.begin(), None
        given = self._given
        call = access.audit(
            limit=MOST,
            before=self._marks[-1],
            actor=given["actor"],
            contains=given["contains"],
            since=_begin_of(given["since"]),
            questions=bool(given["questions"]),
        ).first
        with self._fragment.element:
            await turn.follow(call, self._received, AUDIT_REFRESH_S)

    def _received(self, page: AuditPage) -> None:
        self._next = page.next
        self._fragment.show(
            entries=page.entries,
            first=len(self._marks) == 1,
            more=page.next is not None,
            filtered=any(self._given.values()),
        )

    def _filtered(self, name: str) -> Callable[[Any], Awaitable[None]]:
        async def callback(event: Any) -> None:  # noqa: ANN401  # type of the library
            self._given[name] = "yes" if event.value is True else str(event.value or "").strip()
            self._visit.keep(**{name: self._given[name] or None})
            self._marks = [0]
            await self.follow()

        return callback

    async def _act(self, act: str, _: str) -> None:
        if act == "next" and self._next:
            self._marks.append(self._next)
        elif act == "before" and len(self._marks) > 1:
            self._marks.pop()
        elif act == "newest":
            self._marks = [0]
        else:
            return
        await self.follow()


CLUSTERS_REFRESH_S = 2.0


async def show_clusters(visit: Visit) -> None:
    """Show the clusters, with buttons that leave or remove one, and joins of others."""
    words, admin = visit.words, visit.may("admin")
    joining = Joining(visit) if admin else None
    fragment = Fragment("joined", words)
    there: dict[str, ClusterOut] = {}
    joined: set[str] = set()

    def draw() -> None:
        later = sorted(joined - there.keys())
        fragment.show(clusters=list(there.values()), may=visit.may("operator"), admin=admin, joined=joined, later=later)

    def callback(value: ClusterList) -> None:
        there.clear()
        there.update({each.name: each for each in value.clusters})
        draw()

    def on_joins(value: JoinList) -> None:
        joined.clear()
        joined.update(value.joined)
        draw()
        if joining:
            joining.callback(value)

    async def act(what: str, name: str) -> None:
        if what == "leave":
            await ask_to_leave(visit, name, there[name].jobs if name in there else 0)
            return

        async def remove() -> None:
            await visit.ask(fleet.remove_cluster(name))
            visit.ask_again(fleet.clusters())
            notify(words("Removed cluster {name}", name=name))

        text = words(
            "Its jobs are placed elsewhere. Seaway does not manage its workloads any more: make sure "
            "that the cluster is switched off or empty."
        )
        confirm(words, words("Remove cluster {name}?", name=name), text, words("Remove"), remove)

    on_act(fragment, act)
    await visit.follow(fleet.clusters(), callback, CLUSTERS_REFRESH_S)
    if admin:
        await visit.follow(joins.joins(), on_joins, JOINS_REFRESH_S)


async def show_gateways(visit: Visit) -> None:
    """Show gateways and their agents, with a button that adds one."""
    fragment = Fragment("gateways", visit.words)
    on_act(fragment, lambda _, __: add_gateway(visit))
    agents: dict[str, object] = {}
    gateways: list[object] = []

    def draw() -> None:
        fragment.show(gateways=gateways, agents=agents, admin=visit.may("admin"))

    def on_gateways(value: GatewayList) -> None:
        gateways[:] = value.gateways
        draw()

    def on_agents(value: AgentList) -> None:
        agents.clear()
        agents.update({each.gateway: each for each in value.agents})
        draw()

    await visit.follow(fleet.gateways(), on_gateways, CLUSTERS_REFRESH_S)
    await visit.follow(network.agents(), on_agents, CLUSTERS_REFRESH_S)


async def show_workdirs(visit: Visit) -> None:
    """Show the archives of a tenant with working directories of jobs, and follow changes."""
    every = [] if visit.who.tenant else [each.name for each in (await visit.ask(tenancy.tenants())).tenants]
    await _Workdirs(visit, every).follow()


class _Workdirs:
    """Section with archives of one visitor, who may choose one of several tenants."""

    def __init__(self, visit: Visit, tenants: list[str]) -> None:
        self._visit, words, wanted = visit, visit.words, visit.query.get("tenant", "")
        self._tenant = visit.who.tenant or (wanted if wanted in tenants else DEFAULT)
        self._latest = Latest(visit)
        with ui.element("div").classes("panel-head"):
            ui.label(words("Working directories")).props("role=heading aria-level=2").classes("panel-title")
            if tenants:
                chosen = ui.select(tenants, label=words("Tenant"), value=self._tenant, on_change=self._choose)
                chosen.props("outlined dense options-dense").classes("filter")
        self._fragment = Fragment("workdirs", words)
        on_act(self._fragment, self._act)

    async def follow(self) -> None:
        """Show the archives of the chosen tenant."""
        turn = self._latest.begin()
        with self._fragment.element:
            await turn.follow(workdirs.workdirs(tenant=self._tenant), self._received, SLOW_REFRESH_S)

    def _received(self, value: WorkdirList) -> None:
        rows = [
            {"archive": each, "name": _short(each.digest), "size": size_text(each.size_bytes)}
            for each in value.workdirs
        ]
        sizes = {"used": value.used_bytes, "quota": value.quota_bytes, "most": value.limit_bytes}
        self._fragment.show(rows=rows, **{name: size_text(size) for name, size in sizes.items()})

    async def _choose(self, event: Any) -> None:  # noqa: ANN401  # event type of the library
        self._tenant = event.value
        self._visit.keep(tenant=self._tenant)
        await self.follow()

    def _act(self, act: str, digest: str) -> None:
        words, tenant, name = self._visit.words, self._tenant, _short(digest)

        async def delete() -> None:
            await self._visit.ask(workdirs.delete_workdir(digest, tenant=tenant))
            self._visit.ask_again(workdirs.workdirs(tenant=tenant))
            notify(words("Archive {name} is removed", name=name))

        if act == "delete":
            text = words("Jobs that ended cannot be retried without it. This cannot be undone.")
            confirm(words, words("Delete archive {name}?", name=name), text, words("Delete"), delete)


def _short(digest: str) -> str:
    """Return the begin of a digest."""
    return digest.removeprefix("sha256:")[:12]


@dataclass(frozen=True, slots=True)
class Section:
    """Section of the page, with its own address.

    Attributes
    ----------
    role
        Lowest role that sees it.
    """

    name: str
    title: str
    role: str
    show: Callable[[Visit], Awaitable[None]]


async def build(visit: Visit) -> None:
    """Build the page with one of its sections."""
    sections = [each for each in _sections(visit.words) if visit.may(each.role)]
    wanted = visit.query.get("section", "")
    chosen = next((each for each in sections if each.name == wanted), sections[0])
    if wanted == chosen.name:
        visit.locate((visit.words("Settings"), "/settings"), name=chosen.title)
    Fragment("sections", visit.words).show(sections=sections, chosen=chosen.name)
    with ui.element("section").classes("panel").props(f'aria-label="{chosen.title}"'):
        await chosen.show(visit)


def _sections(words: Words) -> list[Section]:
    return [
        Section("tokens", words("Tokens"), "admin", show_tokens),
        Section("users", words("Users"), "admin", show_users),
        Section("provider", words("Single sign-on"), "admin", show_provider),
        Section("clusters", words("Clusters"), "viewer", show_clusters),
        Section("gateways", words("Gateways"), "operator", show_gateways),
        Section("notifications", words("Notifications"), "user", show_notifications),
        Section("workdirs", words("Working directories"), "user", show_workdirs),
        Section("audit", words("Audit log"), "admin", show_audit),
        Section("server", words("Server"), "viewer", _show_server),
    ]


async def _show_server(visit: Visit) -> None:
    fragment = Fragment("server", visit.words)
    seen: dict[str, str | int] = {"unready": "", "clusters": 0, "nodes": 0, "jobs": 0}

    def draw() -> None:
        fragment.show(version=__version__, who=visit.who, **seen)

    def on_clusters(value: ClusterList) -> None:
        seen.update(clusters=len(value.clusters), nodes=sum(each.nodes for each in value.clusters))
        draw()

    def on_jobs(value: JobCount) -> None:
        seen.update(jobs=value.total)
        draw()

    async def look() -> None:
        said = await unready(visit)
        if said != seen["unready"]:
            seen.update(unready=said)
            draw()

    seen.update(unready=await unready(visit))
    await visit.follow(fleet.clusters(), on_clusters, SLOW_REFRESH_S)
    await visit.follow(jobs.count(), on_jobs, SLOW_REFRESH_S)
    ui.timer(SLOW_REFRESH_S, look)


async def unready(visit: Visit) -> str:
    """Return the reason why the server currently schedules no jobs; empty if it does."""
    try:
        await visit.ask(service.ready())
    except SeawayError as error:
        return str(error)
    return ""
