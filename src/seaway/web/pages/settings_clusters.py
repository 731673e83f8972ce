"""Clusters and gateways as they are joined: their state, how to join more, and giving one up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seaway.client.calls import fleet, network
from seaway.web.fragment import Fragment
from seaway.web.parts.acting import on_act
from seaway.web.parts.form import confirm, tell
from seaway.web.visit import Visit

if TYPE_CHECKING:
    from seaway.wire.fleet import ClusterList, GatewayList
    from seaway.wire.network_views import AgentList

SELDOM_S = 2.0


async def show_clusters(visit: Visit) -> None:
    """Show which clusters there are, and how one is joined and given up."""
    words = visit.words
    fragment = Fragment("joined", words)

    def heard(value: ClusterList) -> None:
        fragment.show(clusters=value.clusters, may=visit.may("operator"))

    def act(_: str, name: str) -> None:
        async def forget() -> None:
            await visit.ask(fleet.forget_cluster(name))
            visit.ask_again(fleet.clusters())
            tell(words("{name} is forgotten", name=name))

        text = words(
            "Its jobs are placed elsewhere, and what still runs there is nobody's: "
            "be sure that the cluster is switched off, or empty."
        )
        confirm(words, words("Forget cluster {name}?", name=name), text, words("Forget"), forget)

    on_act(fragment, act)
    await visit.follow(fleet.clusters(), heard, SELDOM_S)


async def show_gateways(visit: Visit) -> None:
    """Show gateways and who measures from them."""
    fragment = Fragment("gateways", visit.words)
    agents: dict[str, object] = {}
    gateways: list[object] = []

    def draw() -> None:
        fragment.show(gateways=gateways, agents=agents)

    def heard_gateways(value: GatewayList) -> None:
        gateways[:] = value.gateways
        draw()

    def heard_agents(value: AgentList) -> None:
        agents.clear()
        agents.update({each.gateway: each for each in value.agents})
        draw()

    await visit.follow(fleet.gateways(), heard_gateways, SELDOM_S)
    await visit.follow(network.agents(), heard_agents, SELDOM_S)
