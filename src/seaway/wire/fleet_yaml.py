"""Fleets from short YAML files; `docs/simulated-clusters.md` has an example."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from math import ceil
from pathlib import Path
from typing import Any, TypeVar

import yaml

from seaway.domain.cluster import Cluster, Fleet
from seaway.domain.device import MIG_SIZES, Device, DeviceMode, MigProfile, mig_figures
from seaway.domain.errors import RejectedError
from seaway.domain.facts import ALL_MODELS, Facts, Location
from seaway.domain.network import Gateway, Link
from seaway.domain.node import Node, Taint, TaintEffect
from seaway.domain.units import cpu_milli, duration_ns, memory_mib, rate_mbps, share_ppm
from seaway.wire.facts import microprice
from seaway.wire.yaml import YamlError, yaml_document

LARGEST = 2**31 - 1
"""Maximum value of a field, equal to that of the engine's columns."""

MAX_VALUES = 10**6
"""Maximum number of values in a fleet file."""

MAX_BYTES = 8 * 2**20
"""Maximum size of a file, bytes."""

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Entry:
    """Value in a file, with its position.

    Attributes
    ----------
    file
        Name of the file as given.
    path
        Path of fields, such as ``clusters[0].nodes[1].cpu``; empty for the whole document.
    node
        The parsed YAML node.
    """

    file: str
    path: str
    node: yaml.Node

    def error(self, message: str) -> RejectedError:
        """Return an error for this position."""
        return RejectedError(message, where=self.where)

    @property
    def where(self) -> str:
        """File, line and field."""
        return ":".join(part for part in (self.file, str(self.node.start_mark.line + 1), self.path) if part)

    def fields(self, known: Sequence[str], needed: Collection[str] = ()) -> dict[str, Entry]:
        """Return the entries of a mapping by name.

        Raises
        ------
        RejectedError
            If it is not a mapping, has a field that is not `known`, or lacks one that is `needed`.
        """
        found = dict(self.pairs())
        for name, entry in found.items():
            if name not in known:
                near = get_close_matches(name, known, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"known are: {', '.join(known)}"
                raise entry.error(f"unknown field {name!r}; {hint}")
        for name in needed:
            if name not in found:
                raise self.error(f"{name!r} is missing")
        return found

    def pairs(self) -> Iterator[tuple[str, Entry]]:
        """Iterate over a mapping; raises as `fields`."""
        if not isinstance(self.node, yaml.MappingNode):
            raise self.error("must be a mapping, like 'name: north'")
        for key, value in self.node.value:
            name = Entry(self.file, self.path, key).text()
            yield name, Entry(self.file, f"{self.path}.{name}" if self.path else name, value)

    def items(self) -> list[Entry]:
        """Return the entries of a list."""
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.error("must be a list, with a '-' before each entry")
        return [Entry(self.file, f"{self.path}[{at}]", each) for at, each in enumerate(self.node.value)]

    def value(self) -> object:
        """Return the value: a string, number, boolean or None."""
        if not isinstance(self.node, yaml.ScalarNode):
            raise self.error("must be a single value")
        try:
            return yaml.constructor.SafeConstructor().construct_object(self.node)
        except (ValueError, yaml.YAMLError):
            raise self.error(f"{self.node.value!r} cannot be read") from None

    def text(self) -> str:
        """Return a non-empty string."""
        value = self.value()
        if not isinstance(value, str):
            raise self.error(f"{value!r} is not a text; put it in quotes")
        if not value:
            raise self.error("is empty")
        return value

    def whole(self, least: int, most: int = LARGEST) -> int:
        """Return an integer from `least` to `most`."""
        value = self.value()
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.error(f"must be a whole number from {least} to {most}")
        return value

    def number(self) -> float:
        """Return a number."""
        value = self.value()
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(f"{value!r} is not a number")
        return value

    def amount(self, read: Callable[..., int]) -> int:
        """Return the result of a parser of `seaway.domain.units`."""
        amount = read(self.value(), where=self.where)
        if amount > LARGEST and read.__name__ != "duration_ns":
            raise self.error("is too large")
        return amount


def read_yaml_file(path: Path) -> Entry:
    """Read a YAML file with one document.

    Raises
    ------
    RejectedError
        If it cannot be read or is not YAML; the message has the position.
    """
    try:
        raw = path.read_bytes()
        if len(raw) > MAX_BYTES:
            raise RejectedError(f"is larger than {MAX_BYTES >> 20} MiB", where=str(path))
        document = yaml_document(raw.decode(), MAX_VALUES)
    except OSError as error:
        raise RejectedError(f"cannot be read: {error.strerror}", where=str(path)) from None
    except UnicodeDecodeError:
        raise RejectedError("is not a text in UTF-8", where=str(path)) from None
    except YamlError as error:
        raise error.of_file(str(path)) from None
    if document.root is None:
        raise RejectedError("is empty", where=str(path))
    return Entry(str(path), "", document.root)


MAX_NODES = 100_000
"""Maximum number of nodes in one group."""

MAX_GPUS = 64
"""Maximum number of devices of one node."""

MAX_DEVICES = 2_000_000
"""Maximum number of devices of a fleet."""

FACT_FIELDS = (
    *("region", "zones", "provider", "location", "hardware"),
    *("price_per_gpu_hour", "spot_price_per_gpu_hour", "labels"),
)
CLUSTER_FIELDS = ("name", "gateway", *FACT_FIELDS, "nodes")
NODE_FIELDS = (
    *("name", "count", "cpu", "memory", "gpus", "model", "gpu_memory"),
    *("vendor", "share_limit", "mig", "topology", "labels", "taints"),
)
GROUPS = {"nvlink": "island", "pcie_switch": "pcie_switch", "numa": "numa"}
"""Fields of `topology`, and of a device."""
LINK_FIELDS = ("between", "from", "to", "latency", "jitter", "loss", "bandwidth")
LINK_FIGURES = (("latency", duration_ns), ("jitter", duration_ns), ("loss", share_ppm), ("bandwidth", rate_mbps))
MIG_FIELDS = ("name", "memory", "slices", "size", "starts")

MIG_STARTS = {1: tuple(range(7)), 2: (0, 2, 4), 3: (0, 4), 4: (0,), 7: (0,)}
"""Possible start positions of an instance by its number of compute slices, on devices with seven."""

TAINT = re.compile(r"([^=:\s]+)(?:=([^=:\s]*))?:([A-Za-z]+)")


def read_fleet_yaml(path: Path) -> Fleet:
    """Read a fleet.

    Raises
    ------
    RejectedError
        If the file is invalid; the message has the file, line and field.
    """
    top = read_yaml_file(path)
    fields = top.fields(("clusters", "gateways", "links"), ("clusters",))
    doors = dict(_gateways(fields.get("gateways")))
    clusters: dict[str, Cluster] = {}
    devices = 0
    for entry in fields["clusters"].items():
        cluster = _cluster(entry)
        if cluster.name in clusters:
            raise entry.error(f"another cluster is called {cluster.name!r}")
        clusters[cluster.name] = cluster
        devices += sum(len(node.devices) for node in cluster.nodes)
        if devices > MAX_DEVICES:
            raise entry.error(f"the fleet has more than {MAX_DEVICES} devices")
        if cluster.gateway:
            doors.setdefault(cluster.gateway, Gateway(cluster.gateway))
    if not clusters:
        raise fields["clusters"].error("is empty, but at least one cluster is needed")
    links = _links(fields["links"], doors) if "links" in fields else ()
    return Fleet(tuple(clusters.values()), tuple(doors.values()), links)


def _gateways(entry: Entry | None) -> Iterator[tuple[str, Gateway]]:
    """Yield gateways by name. Each entry is a name, or a mapping with name and address."""
    seen = set()
    for each in entry.items() if entry else ():
        if isinstance(each.node.value, str):
            gateway = Gateway(each.text())
        else:
            fields = each.fields(("name", "address", "location"), ("name",))
            address = fields["address"].text() if "address" in fields else ""
            gateway = Gateway(fields["name"].text(), address, location=_location(fields.get("location")))
        if gateway.name in seen:
            raise each.error(f"another gateway is called {gateway.name!r}")
        seen.add(gateway.name)
        yield gateway.name, gateway


def _cluster(entry: Entry) -> Cluster:
    fields = entry.fields(CLUSTER_FIELDS, ("name", "nodes"))
    name = fields["name"].text()
    nodes: dict[str, Node] = {}
    for group in fields["nodes"].items():
        for node in _nodes(group, name):
            if node.name in nodes:
                raise group.error(f"another node of cluster {name!r} is called {node.name!r}")
            nodes[node.name] = node
    return Cluster(
        name,
        tuple(nodes.values()),
        fields["gateway"].text() if "gateway" in fields else "",
        _facts(fields),
    )


def _facts(fields: Mapping[str, Entry]) -> Facts:
    texts = {name: fields[name].text() for name in ("region", "provider") if name in fields}
    lists = {name: [each.text() for each in fields[name].items()] for name in ("zones", "hardware") if name in fields}
    return Facts(
        **texts,
        zones=tuple(lists.get("zones", ())),
        location=_location(fields.get("location")),
        hardware=frozenset(lists["hardware"]) if "hardware" in lists else None,
        prices=_prices(fields.get("price_per_gpu_hour")),
        spot_prices=_prices(fields.get("spot_price_per_gpu_hour")),
        labels={key: value.text() for key, value in fields["labels"].pairs()} if "labels" in fields else {},
    )


def _location(entry: Entry | None) -> Location | None:
    if entry is None:
        return None
    ends = entry.fields(("latitude", "longitude"), ("latitude", "longitude"))
    try:
        return Location(ends["latitude"].number(), ends["longitude"].number())
    except RejectedError as error:
        raise entry.error(error.message) from None


def _prices(entry: Entry | None) -> dict[str, int]:
    """Read one price for all models, or prices by model."""
    if entry is None:
        return {}
    if isinstance(entry.node, yaml.MappingNode):
        return {model: _microprice(price) for model, price in entry.pairs()}
    return {ALL_MODELS: _microprice(entry)}


def _nodes(group: Entry, cluster: str) -> Iterator[Node]:
    """Yield the nodes of a group, which differ only in their names."""
    fields = group.fields(NODE_FIELDS, ("name", "cpu", "memory"))
    pattern = fields["name"].text()
    count = fields["count"].whole(1, MAX_NODES) if "count" in fields else 1
    if count > 1 and "{}" not in pattern:
        raise fields["name"].error(f"{count} nodes cannot have one name; put '{{}}' where the number goes")
    cpu, memory = fields["cpu"].amount(cpu_milli), fields["memory"].amount(memory_mib)
    gpus = fields["gpus"].whole(0, MAX_GPUS) if "gpus" in fields else 0
    device = _device(group, fields) if gpus else None
    connected = _topology(fields["topology"], gpus) if "topology" in fields else {}
    labels = {key: value.text() for key, value in fields["labels"].pairs()} if "labels" in fields else {}
    taints = tuple(_taint(each) for each in fields["taints"].items()) if "taints" in fields else ()
    for number in range(count):
        name = pattern.replace("{}", str(number))
        own = tuple(
            replace(device, uuid=f"GPU-{cluster}-{name}-{index}", index=index, **connected.get(index, {}))
            for index in range(gpus)
            if device
        )
        yield Node(name, cpu, memory, own, labels, taints)


def _device(group: Entry, fields: Mapping[str, Entry]) -> Device:
    """Return the common properties of the devices of a group."""
    for needed in ("model", "gpu_memory"):
        if needed not in fields:
            raise group.error(f"{needed!r} is missing, but the nodes have devices")
    memory = fields["gpu_memory"].amount(memory_mib)
    profiles = tuple(_mig(each, memory) for each in fields["mig"].items()) if "mig" in fields else ()
    device = Device("", 0, fields["model"].text(), memory)
    if "vendor" in fields:
        device = replace(device, vendor=fields["vendor"].text())
    if "share_limit" in fields:
        device = replace(device, share_limit=fields["share_limit"].whole(1))
    return replace(device, mode=DeviceMode.MIG, mig_profiles=profiles) if profiles else device


def _topology(entry: Entry, gpus: int) -> dict[int, dict[str, Any]]:
    """Read the groups of connected devices. Return the fields of each device by index."""
    found: dict[int, dict[str, Any]] = {}
    for name, groups in entry.fields(tuple(GROUPS), ()).items():
        for number, group in enumerate(groups.items()):
            for each in group.items():
                index = each.whole(0, gpus - 1)
                if found.setdefault(index, {}).setdefault(GROUPS[name], number) != number:
                    raise each.error(f"GPU {index} is in two groups")
    return found


def _mig(entry: Entry, gpu_memory_mib: int) -> MigProfile:
    """Read a MIG profile: a name, or a mapping for a profile that its name does not define."""
    if isinstance(entry.node.value, str):
        name = entry.text()
        slices = mig_figures(name)[0]
        if not slices:
            raise entry.error(f"{name!r} is not a MIG profile like 1g.10gb; for others, set {', '.join(MIG_FIELDS)}")
        size = MIG_SIZES[slices]
        return MigProfile(name, gpu_memory_mib * size // 8, _core_milli(slices), slices, size, MIG_STARTS[slices])
    fields = entry.fields(MIG_FIELDS, MIG_FIELDS)
    slices = fields["slices"].whole(1, 7)
    size = fields["size"].whole(1, 8)
    starts = tuple(each.whole(0, 8 - size) for each in fields["starts"].items())
    if not starts:
        raise fields["starts"].error("is empty")
    return MigProfile(
        fields["name"].text(), fields["memory"].amount(memory_mib), _core_milli(slices), slices, size, starts
    )


def _core_milli(slices: int) -> int:
    """Return the cores of a number of compute slices (of seven), thousandths; rounded up to percent as in HAMi."""
    return ceil(slices * 100 / 7) * 10


def _taint(entry: Entry) -> Taint:
    text = entry.text()
    match = TAINT.fullmatch(text)
    effects = [effect.value for effect in TaintEffect]
    if match is None or match[3] not in effects:
        raise entry.error(f"{text!r} is not a taint like dedicated=ml:NoSchedule; effects are: {', '.join(effects)}")
    return Taint(match[1], match[2] or "", TaintEffect(match[3]))


def _microprice(entry: Entry) -> int:
    """Read a price; return millionths of the currency unit."""
    try:
        return microprice(entry.value())
    except RejectedError as error:
        raise entry.error(error.message) from None


def _links(entry: Entry, gateways: Mapping[str, Gateway]) -> tuple[Link, ...]:
    """Read links. A link with `between` counts in both directions."""
    links: dict[tuple[str, str], Link] = {}
    for each in entry.items():
        fields = each.fields(LINK_FIELDS, ("latency",))
        ends, both = _ends(each, fields, gateways)
        figures = tuple(fields[name].amount(read) if name in fields else 0 for name, read in LINK_FIGURES)
        for source, target in (ends, ends[::-1]) if both else (ends,):
            if (source, target) in links:
                raise each.error(f"the link from {source!r} to {target!r} appears more than once")
            links[source, target] = Link(source, target, *figures)
    return tuple(links.values())


def _ends(entry: Entry, fields: Mapping[str, Entry], gateways: Mapping[str, Gateway]) -> tuple[tuple[str, str], bool]:
    """Return the two gateways of a link, and whether it counts in both directions."""
    given = fields.keys() & {"between", "from", "to"}
    if given not in ({"between"}, {"from", "to"}):
        raise entry.error("use 'between: [one, other]', or 'from' and 'to' for one direction")
    both = "between" in fields
    ends = fields["between"].items() if both else [fields["from"], fields["to"]]
    if len(ends) != 2:
        raise fields["between"].error("must name two gateways")
    for end in ends:
        name = end.text()
        if name not in gateways:
            near = get_close_matches(name, gateways, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"available: {', '.join(gateways)}"
            raise end.error(f"unknown gateway {name!r}; {hint}")
    source, target = ends[0].text(), ends[1].text()
    if source == target:
        raise ends[1].error("a link needs two different gateways")
    return (source, target), both
