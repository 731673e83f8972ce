"""Fleets from files: nodes, links between gateways, and an order of the nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from seaway.domain.cluster import Cluster, Fleet
from seaway.domain.device import WHOLE_DEVICE_MILLI, Device
from seaway.domain.errors import RejectedError
from seaway.domain.network import PPM, Gateway, Link
from seaway.domain.node import Node
from seaway.simulation.table import CsvRow, Table, read_table, require_unique

ONE_CLUSTER = "cluster"
"""Name of the cluster if the file has no column for clusters."""

NS_PER_US = 1000

SHARE_LIMIT = 1000
"""Maximum number of slices per device, large enough that only memory and cores limit it."""

MAX_GPUS = 1024
"""Maximum number of devices of a node in a file."""

NODE_COLUMNS = ("cpu_milli", "memory_mib", "gpu")
LINK_COLUMNS = ("source", "target", "latency_us", "jitter_us", "loss", "bandwidth_mbps")


def read_fleet(nodes: Path, links: Path | None, node_order: Path | None, *, by_memory: bool) -> Fleet:
    """Read a fleet.

    Columns of `nodes` are ``sn`` or ``node`` (the name), ``cpu_milli``, ``memory_mib``, ``gpu`` (number
    of devices) and, if known, ``model``, ``gpu_memory_mib`` (of each device), ``cluster`` and
    ``gateway``. Without ``cluster``, all nodes form one.

    Clusters are in the order of their first row. The gateway of the k-th cluster is ``gw-k``, for k from 1, unless
    ``gateway`` has another. Without links and gateways in the files, clusters have no gateway.

    Parameters
    ----------
    links
        Columns ``source``, ``target``, ``latency_us``, ``jitter_us``, ``loss`` (0-1) and ``bandwidth_mbps``; a row
        applies to both directions, unless the reverse direction has its own.
    node_order
        Each node once, in a column ``sn`` or ``node``, in the order that breaks ties within a cluster. None keeps the
        order of `nodes`.
    by_memory
        Whether device memory is in MiB, from ``gpu_memory_mib``. Otherwise, it is in thousandths of a device, and
        requested cores apply to both.

    Raises
    ------
    RejectedError
        If a file is invalid, with the position.
    """
    table = read_table(nodes, NODE_COLUMNS)
    if by_memory and "gpu_memory_mib" not in table.columns:
        raise table.require_columns("gpu_memory_mib", "is missing, but jobs request memory of devices")
    ties = read_links(links) if links else ()
    known = {end: None for link in ties for end in (link.source, link.target)}
    by_cluster = _by_cluster(table)
    gateways = {name: _gateway(table, lines, k, known) for k, (name, lines) in enumerate(by_cluster.items(), 1)}
    ranks = _ranks(node_order, table) if node_order else {}
    clusters = tuple(
        Cluster(name, _nodes(lines, ranks, by_memory=by_memory), gateway=gateways[name])
        for name, lines in by_cluster.items()
    )
    doors = dict.fromkeys([*known, *(name for name in gateways.values() if name)])
    return Fleet(clusters, tuple(Gateway(name) for name in doors), ties)


def read_links(path: Path) -> tuple[Link, ...]:
    """Read links, each in both directions unless the file gives both."""
    links: dict[tuple[str, str], Link] = {}
    for line in read_table(path, LINK_COLUMNS):
        ends = (line.name("source"), line.name("target"))
        require_unique(line, "target", " to ".join(ends), [" to ".join(pair) for pair in links])
        loss_ppm = line.scaled("loss", PPM)
        if loss_ppm > PPM:
            raise line.wrong("loss", f"{line.text('loss')} is more than 1, which is all")
        links[ends] = Link(
            *ends,
            latency_ns=line.scaled("latency_us", NS_PER_US),
            jitter_ns=line.scaled("jitter_us", NS_PER_US),
            loss_ppm=loss_ppm,
            bandwidth_mbps=line.whole("bandwidth_mbps"),
        )
    for link in list(links.values()):
        links.setdefault((link.target, link.source), _reverse_link(link))
    return tuple(links.values())


def name_column(table: Table) -> str:
    """Return the column with the names of nodes: ``sn``, as in openb, or ``node``."""
    for column in ("sn", "node"):
        if column in table.columns:
            return column
    raise table.require_columns("node", "(or 'sn') is missing")


def _reverse_link(link: Link) -> Link:
    return Link(link.target, link.source, link.latency_ns, link.jitter_ns, link.loss_ppm, link.bandwidth_mbps)


def _by_cluster(table: Table) -> dict[str, list[tuple[str, CsvRow]]]:
    """Group the rows of nodes by cluster, with their names."""
    column = name_column(table)
    clusters: dict[str, dict[str, CsvRow]] = {}
    for line in table:
        nodes = clusters.setdefault(line.name("cluster") if "cluster" in table.columns else ONE_CLUSTER, {})
        name = line.name(column)
        require_unique(line, column, name, nodes)
        nodes[name] = line
    return {cluster: list(nodes.items()) for cluster, nodes in clusters.items()}


def _gateway(table: Table, nodes: Sequence[tuple[str, CsvRow]], k: int, known: Mapping[str, None]) -> str:
    """Return the gateway of the `k`-th cluster; empty if it has none."""
    first = nodes[0][1]
    if "gateway" in table.columns:
        for _, line in nodes:
            if line.text("gateway") != first.text("gateway"):
                raise line.wrong("gateway", "differs from the gateway of another node of this cluster")
        name = first.text("gateway")
        if name and known and name not in known:
            raise first.wrong("gateway", f"unknown gateway {name!r}; links name: {', '.join(known)}")
        return name
    name = f"gw-{k}"
    if known and name not in known:
        raise first.wrong("gateway", f"links do not name {name!r}; add this column to name each cluster's own")
    return name if known else ""


def _ranks(path: Path, nodes: Table) -> dict[str, int]:
    """Read the rank of each node."""
    table = read_table(path)
    column = name_column(table)
    names = {line.text(name_column(nodes)) for line in nodes}
    ranks: dict[str, int] = {}
    for line in table:
        name = line.name(column)
        require_unique(line, column, name, ranks)
        if name not in names:
            raise line.wrong(column, f"unknown node {name!r}; {nodes.path} does not have it")
        ranks[name] = len(ranks)
    missing = names - ranks.keys()
    if missing:
        raise RejectedError(
            f"node {min(missing)!r} is not there; every node needs its place",
            where=f"{path}:{table.rows[-1].number + 1}:{column}",
        )
    return ranks


def _nodes(nodes: Sequence[tuple[str, CsvRow]], ranks: Mapping[str, int], *, by_memory: bool) -> tuple[Node, ...]:
    ranked = sorted(nodes, key=lambda entry: ranks.get(entry[0], 0))
    return tuple(_node(name, line, by_memory=by_memory) for name, line in ranked)


def _node(name: str, line: CsvRow, *, by_memory: bool) -> Node:
    gpus = line.whole("gpu")
    if gpus > MAX_GPUS:
        raise line.wrong("gpu", f"{gpus} devices on one node; at most {MAX_GPUS} can be right")
    memory = WHOLE_DEVICE_MILLI
    if by_memory and gpus:
        memory = line.whole("gpu_memory_mib")
    stem = f"{line.text('cluster')}/{name}" if line.has("cluster") else name
    devices = tuple(
        Device(f"{stem}/{index}", index, line.text("model"), memory, share_limit=SHARE_LIMIT) for index in range(gpus)
    )
    return Node(name, line.whole("cpu_milli"), line.whole("memory_mib"), devices)
