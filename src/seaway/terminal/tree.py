"""The fleet as a tree of lines: clusters, their nodes page by page, devices, and slices of those."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from seaway.terminal.words import Body

CLUSTER, NODE, DEVICE, SLICE, MORE = "cluster", "node", "device", "slice", "more"


@dataclass(slots=True)
class Page:
    """Some nodes of a cluster.

    Attributes
    ----------
    after
        What the server said leads here; empty for the first page.
    """

    after: str
    nodes: list[Body]


@dataclass(slots=True)
class Nodes:
    """The nodes of a cluster as far as they were read.

    Attributes
    ----------
    pages
        In the server's order.
    following
        What leads to the next page; None where there is none, empty where nothing was read yet.
    """

    pages: list[Page] = field(default_factory=list)
    following: str | None = ""

    def take(self, after: str, page: Body) -> None:
        """Take in a page that was read for the first time, or once more."""
        for known in self.pages:
            if known.after == after:
                known.nodes = page["nodes"]
                break
        else:
            self.pages.append(Page(after, page["nodes"]))
        if self.pages[-1].after == after:
            self.following = page["next"]


class Tree:
    """The fleet as far as it is opened.

    Attributes
    ----------
    clusters
        All there are, as the API shows them.
    nodes
        By cluster, of those that were opened.
    text
        What was typed to find something; empty shows all.
    found
        The nodes that it found.
    """

    def __init__(self) -> None:
        self.clusters: Sequence[Body] = ()
        self.nodes: dict[str, Nodes] = {}
        self.text = ""
        self.found: Sequence[Body] = ()
        self._open: set[str] = set()

    def is_open(self, key: str) -> bool:
        """Tell whether what is in something is shown."""
        return key in self._open

    def open(self, line: Body) -> bool:
        """Show what is in something; tells whether that changes anything."""
        if line["open"] is not False:
            return False
        self._open.add(line["key"])
        if line["kind"] == CLUSTER:
            self.nodes.setdefault(line["name"], Nodes())
        return True

    def close(self, line: Body) -> str:
        """Show no longer what is in something, or in what it is in itself; returns the key of what was closed."""
        key = str(line["key"] if line["open"] else line["parent"])
        self._open.discard(key)
        if key.startswith(f"{CLUSTER}/"):
            self.nodes.pop(key.removeprefix(f"{CLUSTER}/"), None)
        return key

    def opened(self) -> list[str]:
        """Return the clusters whose nodes are shown page by page."""
        return (
            [] if self.text else [each["name"] for each in self.clusters if self.is_open(f"{CLUSTER}/{each['name']}")]
        )

    def asked(self, text: str) -> tuple[str, str]:
        """Return in which cluster to look for what was typed, empty for all, and for which part of a node's name."""
        cluster, slash, node = text.partition("/")
        known = slash and any(each["name"] == cluster for each in self.clusters)
        return (cluster if known else "", node if slash else text)

    def wanted(self, seen: Sequence[Body]) -> list[tuple[str, str]]:
        """Return which pages of nodes to read, each as its cluster and what leads there: those that are seen.

        Parameters
        ----------
        seen
            The lines that are on the screen.
        """
        names = {(line["cluster"], line["name"]) for line in seen if line["kind"] == NODE}
        more = {line["cluster"] for line in seen if line["kind"] == MORE}
        pages: list[tuple[str, str]] = []
        for cluster in self.opened():
            nodes = self.nodes.setdefault(cluster, Nodes())
            pages += [
                (cluster, page.after)
                for page in nodes.pages
                if any((cluster, node["name"]) in names for node in page.nodes)
            ]
            if nodes.following is not None and (cluster in more or not nodes.pages):
                pages.append((cluster, nodes.following))
        return pages

    def lines(self) -> list[Body]:
        """Return what is shown, from top to bottom.

        Each line is what the API says of a thing, with its `kind`, `key`, `depth`, `parent` (a key) and `open` (None
        where there is nothing to open).
        """
        return list(self._found() if self.text else self._all())

    def _all(self) -> Iterator[Body]:
        for cluster in self.clusters:
            top = self._line(cluster, CLUSTER, f"{CLUSTER}/{cluster['name']}", "", 0, holds=cluster["nodes"] > 0)
            yield top
            if not top["open"]:
                continue
            nodes = self.nodes.setdefault(cluster["name"], Nodes())
            shown = 0
            for page in nodes.pages:
                yield from self._nodes(page.nodes, top["key"])
                shown += len(page.nodes)
            if nodes.following is not None:
                left = {"cluster": cluster["name"], "left": max(cluster["nodes"] - shown, 0)}
                yield self._line(left, MORE, f"{MORE}/{cluster['name']}", top["key"], 1, holds=False)

    def _found(self) -> Iterator[Body]:
        text = self.text.partition("/")[0]
        by_cluster: dict[str, list[Body]] = {}
        for node in self.found:
            by_cluster.setdefault(node["cluster"], []).append(node)
        for cluster in self.clusters:
            nodes = by_cluster.get(cluster["name"], [])
            if not nodes and text not in cluster["name"]:
                continue
            top = self._line(cluster, CLUSTER, f"{CLUSTER}/{cluster['name']}", "", 0, holds=False)
            yield top
            yield from self._nodes(nodes, top["key"])

    def _nodes(self, nodes: Iterable[Body], parent: str) -> Iterator[Body]:
        for node in nodes:
            line = self._line(node, NODE, f"{NODE}/{node['cluster']}/{node['name']}", parent, 1, holds=node["devices"])
            yield line
            if line["open"]:
                yield from self.devices(node, str(line["key"]))

    def devices(self, node: Body, parent: str, depth: int = 2) -> Iterator[Body]:
        """Return the lines of a node's devices, and of the slices of those that are open."""
        for device in node["devices"]:
            key = f"{DEVICE}/{device['cluster']}/{device['node']}/{device['uuid']}"
            line = self._line(device, DEVICE, key, parent, depth, holds=device["slices"])
            yield line
            if line["open"]:
                for at, held in enumerate(device["slices"]):
                    yield self._line(held, SLICE, f"{SLICE}/{key}/{at}", key, depth + 1, holds=False)

    def _line(self, body: Body, kind: str, key: str, parent: str, depth: int, *, holds: object) -> Body:
        place = {"kind": kind, "key": key, "parent": parent, "depth": depth}
        return {**body, **place, "open": self.is_open(key) if holds else None}
