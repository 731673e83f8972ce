"""Tree of the fleet: clusters, pages of nodes, devices, and slices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from rich.text import Text

from seaway.terminal.tables import Column
from seaway.terminal.words import Body, bar, cordoned, cores, gib, models, seconds, small_bars, state

CLUSTER, NODE, DEVICE, SLICE, MORE = "cluster", "node", "device", "slice", "more"


@dataclass(slots=True)
class Page:
    """Page of a cluster's nodes.

    Attributes
    ----------
    after
        Continuation token of the page; empty for the first page.
    """

    after: str
    nodes: list[Body]


@dataclass(slots=True)
class Nodes:
    """Loaded nodes of a cluster.

    Attributes
    ----------
    pages
        Pages in the server's order.
    following
        Continuation token of the next page; empty before the first page, None after the last page.
    """

    pages: list[Page] = field(default_factory=list)
    following: str | None = ""

    def take(self, after: str, page: Body) -> None:
        """Add or replace a page."""
        for known in self.pages:
            if known.after == after:
                known.nodes = page["nodes"]
                break
        else:
            self.pages.append(Page(after, page["nodes"]))
        if self.pages[-1].after == after:
            self.following = page["next"]


class Tree:
    """Fleet with its unfolded parts.

    Attributes
    ----------
    clusters
        All clusters.
    nodes
        Nodes of unfolded clusters, by cluster.
    text
        Search text; an empty text shows all nodes.
    found
        Nodes that match the search.
    """

    def __init__(self) -> None:
        self.clusters: Sequence[Body] = ()
        self.nodes: dict[str, Nodes] = {}
        self.text = ""
        self.found: Sequence[Body] = ()
        self._open: set[str] = set()

    def is_open(self, key: str) -> bool:
        """Report whether a line is unfolded."""
        return key in self._open

    def open(self, line: Body) -> bool:
        """Unfold a line; return whether that changes the tree."""
        if line["open"] is not False:
            return False
        self._open.add(line["key"])
        if line["kind"] == CLUSTER:
            self.nodes.setdefault(line["name"], Nodes())
        return True

    def close(self, line: Body) -> str:
        """Fold a line or its parent; return the key of the folded line."""
        key = str(line["key"] if line["open"] else line["parent"])
        self._open.discard(key)
        if key.startswith(f"{CLUSTER}/"):
            self.nodes.pop(key.removeprefix(f"{CLUSTER}/"), None)
        return key

    def opened(self) -> list[str]:
        """Return the unfolded clusters."""
        return (
            [] if self.text else [each["name"] for each in self.clusters if self.is_open(f"{CLUSTER}/{each['name']}")]
        )

    def asked(self, text: str) -> tuple[str, str]:
        """Return the cluster of a search, which is empty for all clusters, and the searched part of a node's name."""
        cluster, slash, node = text.partition("/")
        known = slash and any(each["name"] == cluster for each in self.clusters)
        return (cluster if known else "", node if slash else text)

    def wanted(self, seen: Sequence[Body]) -> list[tuple[str, str]]:
        """Return the pages to read for the visible lines, as clusters and continuation tokens.

        Parameters
        ----------
        seen
            Visible lines.
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
        """Return the lines of the tree from top to bottom.

        Each line is an object of the API with additional `kind`, `key`, `depth`, `parent` (a key) and `open` (None if
        it has no children).
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
        """Yield the lines of a node's devices, and the lines of the slices of unfolded devices."""
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


BLOCKS = 8
"""Width of a bar in blocks."""

MARKS = {True: "▾ ", False: "▸ ", None: "  "}
"""Marks of unfolded lines, folded lines, and lines without children."""


def name(line: Body) -> Text:
    """Return the indented name of a line."""
    kind = line["kind"]
    style = "bold" if kind == CLUSTER else "dim" if kind == MORE else ""
    return Text(f"{'  ' * line['depth']}{MARKS[line['open']]}{_named(line)}", style)


def _named(line: Body) -> str:
    if line["kind"] == DEVICE:
        return f"#{line['index']} {_short(line['model'])}"
    if line["kind"] == SLICE:
        return f"{line['job']} · {line['replica']}" if line["job_id"] else line["job"] or "another tenant's"
    return f"{line['left']:,} more …" if line["kind"] == MORE else str(line["name"])


def _short(model: str) -> str:
    """Remove the vendor's name from a model."""
    return model.removeprefix("NVIDIA ")


def condition(line: Body) -> Text:
    """Return the state of a cluster, node or device; empty for slices and healthy devices."""
    if line["kind"] == CLUSTER:
        return Text("cordoned", "yellow") if line["cordon"] and line["state"] == "up" else state(line["state"])
    if line["kind"] == NODE:
        return Text("ready", "green") if line["ready"] else Text("cordoned" if line["cordon"] else "closed", "yellow")
    if line["kind"] == DEVICE:
        return Text("", "green") if line["healthy"] else Text("unhealthy", "red")
    return Text()


def received(line: Body) -> str:
    """Return the age of the state of a cluster."""
    return seconds(line["last_seen_s"]) if line["kind"] == CLUSTER else ""


def gpus(line: Body) -> str:
    """Describe the devices, each with its load."""
    if line["kind"] == CLUSTER:
        return f"{line['nodes']:,} nodes, {line['gpus']:,} GPUs"
    if line["kind"] == NODE:
        return f"{small_bars(line['devices'])} {models(line['devices']).replace('NVIDIA ', '')}"
    return str(line["mode"]) if line["kind"] == DEVICE else str(line.get("mig_profile", ""))


def milli(line: Body) -> Text:
    """Draw the allocated cores."""
    return _level(line, "gpu_milli", "core_milli", cores)


def memory(line: Body) -> Text:
    """Draw the allocated memory."""
    return _level(line, "gpu_memory_mib", "memory_mib", gib)


def _level(line: Body, of_cluster: str, of_device: str, write: Callable[[int], str]) -> Text:
    if line["kind"] == MORE:
        return Text()
    if line["kind"] == SLICE:
        return Text(f"{' ' * BLOCKS} {write(line[of_device])}")
    amounts = [line[of_cluster]] if line["kind"] == CLUSTER else [each[of_device] for each in _devices(line)]
    used, total = sum(each["used"] for each in amounts), sum(each["total"] for each in amounts)
    return Text.assemble(bar(used, total, BLOCKS), f" {write(used)}/{write(total)}")


def real(line: Body) -> str:
    """Describe the measured use: share of the cores, and memory."""
    if line["kind"] not in {NODE, DEVICE}:
        return ""
    used = [each["used"] for each in _devices(line) if each.get("used")]
    busy = [each["core_milli"] for each in used if each["core_milli"] is not None]
    held = [each["memory_bytes"] for each in used if each["memory_bytes"] is not None]
    share = f"{sum(busy) / len(busy) / 10:.0f} %" if busy else ""
    return " ".join(part for part in (share, gib(sum(held) >> 20) if held else "") if part)


def _devices(line: Body) -> Sequence[Body]:
    """Return the devices of a node, or the device itself."""
    return list(line["devices"]) if line["kind"] == NODE else [line]


def jobs(line: Body) -> str:
    """Count the jobs of a cluster, and the slices of a node or device."""
    if line["kind"] == CLUSTER:
        return f"{line['jobs']:,}"
    if line["kind"] == NODE:
        return str(sum(len(each["slices"]) for each in line["devices"]))
    return f"{len(line['slices'])}/{line['share_limit']}" if line["kind"] == DEVICE else ""


def note(line: Body) -> str:
    """Describe why a line accepts no new workloads; for a slice, return its tenant."""
    if line["kind"] == CLUSTER:
        return str(line.get("message", "")) or cordoned(line)
    if line["kind"] == NODE:
        return str(line.get("message", "")) or cordoned(line)
    return str(line.get("tenant" if line["kind"] == SLICE else "message", ""))


FLEET_COLUMNS = (
    Column("NAME", name),
    Column("STATE", condition, drop=1),
    Column("LAST SEEN", received, right=True, drop=7),
    Column("GPU CORES", milli),
    Column("GPU MEMORY", memory, drop=2),
    Column("IN USE", real, right=True, drop=4),
    Column("TASKS", jobs, right=True, drop=5),
    Column("DEVICES", gpus, drop=6),
    Column("NOTE", note, cut=True, drop=3),
)
"""Columns of the fleet."""
