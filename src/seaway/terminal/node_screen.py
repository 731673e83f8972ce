"""Screen of a node: allocations, devices, and jobs with slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Footer, Static

from seaway.client.aio import AsyncClient
from seaway.client.calls import fleet as calls
from seaway.client.errors import UnknownError
from seaway.terminal.columns import details
from seaway.terminal.listing import Listing
from seaway.terminal.summary import StatusLine
from seaway.terminal.tree import FLEET_COLUMNS, NODE, Tree, condition
from seaway.terminal.view import View
from seaway.terminal.words import Body, cordoned, cores, gib, level, models


class NodeScreen(Screen[None], View):
    """Screen of a node."""

    CSS = """
    NodeScreen > .facts { height: auto; max-height: 9; padding: 0 1; background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,backspace,left", "back", "Back")]

    def __init__(self, cluster: str, node: str) -> None:
        super().__init__()
        self._cluster, self._node = cluster, node
        self._body: Body | None = None
        self._facts = Static(classes="facts", markup=False)
        self._listing = Listing(FLEET_COLUMNS, key="key", empty="no devices")

    def compose(self) -> ComposeResult:
        """Place the facts about the node above its devices."""
        yield self._facts
        yield self._listing
        yield StatusLine()
        yield Footer()

    def on_mount(self) -> None:
        """Move the focus to the devices."""
        self._listing.focus()

    async def look(self, client: AsyncClient, clusters: Sequence[Body]) -> None:
        """Read the node."""
        page = await client.body(calls.nodes(cluster=self._cluster, node=self._node, limit=1).first)
        if not page["nodes"]:
            raise UnknownError(f"node {self._cluster}/{self._node} not found")
        (body,) = page["nodes"]
        self._body = body
        self._facts.update(
            details(
                [
                    ("node", f"{self._cluster}/{self._node}"),
                    ("state", condition({**body, "kind": NODE})),
                    ("because", body["reason"] or cordoned(body)),
                    ("devices", models(body["devices"])),
                    ("CPU", level(body["cpu_milli"], cores)),
                    ("memory", level(body["memory_mib"], gib)),
                    ("pods", Text(f"{body['pods']['used']}/{body['pods']['total']}") if body.get("pods") else ""),
                ]
            )
        )
        self._listing.show(lines(body))

    @property
    def job(self) -> Body | None:
        """Job of the selected slice."""
        line = self._listing.current
        return {"id": line["job_id"], "name": line["job"]} if line and line.get("job_id") else None

    @property
    def place(self) -> Body | None:
        """The node."""
        body = self._body
        return {"cluster": self._cluster, "node": self._node, "cordon": body["cordon"]} if body else None

    def action_back(self) -> None:
        """Return to the previous screen."""
        self.dismiss()


def lines(node: Body) -> list[Body]:
    """Return the lines of a node's devices and slices."""
    tree = Tree()
    for device in tree.devices(node, "", 0):
        tree.open(device)
    return list(tree.devices(node, "", 0))
