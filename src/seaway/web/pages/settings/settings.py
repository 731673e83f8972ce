"""Settings page: tokens, clusters, gateways, the audit log, the server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nicegui import ui

from seaway import __version__
from seaway.client.calls import fleet, jobs, network, service
from seaway.client.calls import service as access
from seaway.domain.errors import SeawayError
from seaway.web.fragment import Fragment
from seaway.web.latest import Latest
from seaway.web.pages.settings.tokens import show_tokens
from seaway.web.parts.actions import on_act
from seaway.web.parts.form import confirm, tell
from seaway.web.visit import Visit
from seaway.web.words import Words

if TYPE_CHECKING:
    from seaway.wire.fleet import ClusterList, GatewayList
    from seaway.wire.job_out import JobCount
    from seaway.wire.network_views import AgentList
    from seaway.wire.tokens import AuditPage


MOST = 25
"""Entries on a page."""

AUDIT_REFRESH_S = 2.0


async def show_audit(visit: Visit) -> None:
    """Show the newest entries of the audit log as they arrive, with links to older ones."""
    await _Audit(visit).follow()


class _Audit:
    """Audit section of one visitor."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._marks = [0]  # positions of the pages before and of this one
        self._next: int | None = None
        self._latest = Latest(visit)
        self._fragment = Fragment("audit", visit.words)
        on_act(self._fragment, self._act)

    async def follow(self) -> None:
        """Show the selected page."""
        turn, self._next = self._latest.begin(), None
        call = access.audit(limit=MOST, before=self._marks[-1]).first
        with self._fragment.element:
            await turn.follow(call, self._received, AUDIT_REFRESH_S)

    def _received(self, page: AuditPage) -> None:
        self._next = page.next
        self._fragment.show(entries=page.entries, first=len(self._marks) == 1, more=page.next is not None)

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
    """Show the clusters, how to join one, and a button that removes one."""
    words = visit.words
    fragment = Fragment("joined", words)

    def callback(value: ClusterList) -> None:
        fragment.show(clusters=value.clusters, may=visit.may("operator"))

    def act(_: str, name: str) -> None:
        async def remove() -> None:
            await visit.ask(fleet.remove_cluster(name))
            visit.ask_again(fleet.clusters())
            tell(words("Removed cluster {name}", name=name))

        text = words(
            "Its jobs are placed elsewhere. Seaway does not manage its workloads any more: make sure "
            "that the cluster is switched off or empty."
        )
        confirm(words, words("Remove cluster {name}?", name=name), text, words("Remove"), remove)

    on_act(fragment, act)
    await visit.follow(fleet.clusters(), callback, CLUSTERS_REFRESH_S)


async def show_gateways(visit: Visit) -> None:
    """Show gateways and their agents."""
    fragment = Fragment("gateways", visit.words)
    agents: dict[str, object] = {}
    gateways: list[object] = []

    def draw() -> None:
        fragment.show(gateways=gateways, agents=agents)

    def on_gateways(value: GatewayList) -> None:
        gateways[:] = value.gateways
        draw()

    def on_agents(value: AgentList) -> None:
        agents.clear()
        agents.update({each.gateway: each for each in value.agents})
        draw()

    await visit.follow(fleet.gateways(), on_gateways, CLUSTERS_REFRESH_S)
    await visit.follow(network.agents(), on_agents, CLUSTERS_REFRESH_S)


SELDOM_S = 3.0


@dataclass(frozen=True, slots=True)
class Section:
    """Section of the page, with an address of its own.

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
    Fragment("sections", visit.words).show(sections=sections, chosen=chosen.name)
    with ui.element("section").classes("panel").props(f'aria-label="{chosen.title}"'):
        await chosen.show(visit)


def _sections(words: Words) -> list[Section]:
    return [
        Section("tokens", words("Tokens"), "admin", show_tokens),
        Section("clusters", words("Clusters"), "viewer", show_clusters),
        Section("gateways", words("Gateways"), "operator", show_gateways),
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
    await visit.follow(fleet.clusters(), on_clusters, SELDOM_S)
    await visit.follow(jobs.count(), on_jobs, SELDOM_S)
    ui.timer(SELDOM_S, look)


async def unready(visit: Visit) -> str:
    """Return why the server schedules no jobs now; empty if it does."""
    try:
        await visit.ask(service.ready())
    except SeawayError as error:
        return str(error)
    return ""
