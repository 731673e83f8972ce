"""Settings: tokens, clusters, gateways, the audit log, the server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nicegui import ui

from seaway import __version__
from seaway.client.calls import fleet, jobs, service
from seaway.domain.errors import SeawayError
from seaway.web.fragment import Fragment
from seaway.web.pages.settings_audit import show_audit
from seaway.web.pages.settings_clusters import show_clusters, show_gateways
from seaway.web.pages.settings_tokens import show_tokens
from seaway.web.visit import Visit
from seaway.web.words import Words

if TYPE_CHECKING:
    from seaway.wire.fleet import ClusterList
    from seaway.wire.job_out import JobCount

SELDOM_S = 3.0


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page, with an address of its own.

    Attributes
    ----------
    role
        Who sees it.
    """

    name: str
    title: str
    role: str
    show: Callable[[Visit], Awaitable[None]]


async def build(visit: Visit) -> None:
    """Put the page together: one of its sections."""
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
    """Say which server it is and how it does."""
    fragment = Fragment("server", visit.words)
    seen: dict[str, str | int] = {"unready": "", "clusters": 0, "nodes": 0, "jobs": 0}

    def draw() -> None:
        fragment.show(version=__version__, who=visit.who, **seen)

    def heard_clusters(value: ClusterList) -> None:
        seen.update(clusters=len(value.clusters), nodes=sum(each.nodes for each in value.clusters))
        draw()

    def heard_jobs(value: JobCount) -> None:
        seen.update(jobs=value.total)
        draw()

    async def look() -> None:
        said = await unready(visit)
        if said != seen["unready"]:
            seen.update(unready=said)
            draw()

    seen.update(unready=await unready(visit))
    await visit.follow(fleet.clusters(), heard_clusters, SELDOM_S)
    await visit.follow(jobs.count(), heard_jobs, SELDOM_S)
    ui.timer(SELDOM_S, look)


async def unready(visit: Visit) -> str:
    """Say why the server places no jobs now; empty while it does."""
    try:
        await visit.ask(service.ready())
    except SeawayError as error:
        return str(error)
    return ""
