"""Node page: the node's cards with their allocations and measured use."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from seaway.client.calls import fleet
from seaway.domain.errors import UnknownError
from seaway.web.fragment import Fragment
from seaway.web.parts.cordon import Closing
from seaway.web.parts.slices import JOB, painter, without_seconds
from seaway.web.visit import Visit

if TYPE_CHECKING:
    from seaway.wire.fleet import NodePage


async def build(visit: Visit) -> None:
    """Build the page.

    Raises
    ------
    UnknownError
        When the node does not exist.
    """
    words, cluster, name = visit.words, visit.part("cluster"), visit.part("node")
    call = fleet.nodes(cluster=cluster, node=name, limit=1).first
    if not (await visit.ask(call)).nodes:
        raise UnknownError(words("Node {node} not found in {cluster}.", node=name, cluster=cluster))
    above = (cluster, f"/fleet?{urlencode({'cluster': cluster})}")
    visit.locate((words("Fleet"), "/fleet"), above, name=name)
    head = Fragment("node_head", words)
    closing = Closing(visit)
    cards = Fragment("node_cards", words)

    def callback(page: NodePage) -> None:
        cards.element.set_visibility(bool(page.nodes))
        if not page.nodes:
            head.show(node=None)
            closing.show(cluster, name, None, "", there=False)
            return
        node = page.nodes[0].model_copy(update={"devices": without_seconds(page.nodes[0].devices)})
        slices = [held for device in node.devices for held in device.slices]
        paint = painter(words, JOB, slices)
        head.show(node=node)
        closing.show(cluster, name, node.cordon, words.coded(node), node.jobs)
        cards.show(node=node, paint=paint)

    await visit.follow(call, callback)
