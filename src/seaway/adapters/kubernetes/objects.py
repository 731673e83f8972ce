"""Kubernetes' objects, as far as Seaway reads them, and how they are decoded.

Fields that are not named here are skipped while decoding. Every field has a default, so an object may lack any
of them; a null counts as lacking. What is of the wrong type spoils its object, never the page that it came with.

References
----------
Kubernetes API, v1.36: core/v1, resource.k8s.io/v1, and "API Concepts" for pages and watches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Generic, TypeVar, cast

import msgspec

Quantity = str | int | float
"""An amount as it stands in JSON; `quantities` reads it."""


class Part(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What all structs here are: frozen, spelt as in JSON, and passed over by the garbage collector (no cycles)."""


# ---------------------------------------------------------------- metadata


class Owner(Part, frozen=True):
    """An object that this one belongs to."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class Meta(Part, frozen=True):
    """What every object has. Times are RFC 3339 texts, empty when not set."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    owner_references: tuple[Owner, ...] = ()


class Item(Part, frozen=True):
    """An object of which nothing but its metadata is read, like a bookmark."""

    api_version: str = ""
    kind: str = ""
    metadata: Meta = Meta()


class Condition(Part, frozen=True):
    """One condition of an object; `status` is ``True``, ``False`` or ``Unknown``."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""


# ---------------------------------------------------------------- nodes


class TaintMark(Part, frozen=True):
    """A taint, of a node or of a device in a resource slice."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Part, frozen=True):
    """What is wanted of a node."""

    unschedulable: bool = False
    taints: tuple[TaintMark, ...] = ()


class NodeAddress(Part, frozen=True):
    """An address of a node; `type` is like ``InternalIP``."""

    type: str = ""
    address: str = ""


class NodeStatus(Part, frozen=True):
    """What a node says of itself."""

    allocatable: dict[str, Quantity] = {}
    capacity: dict[str, Quantity] = {}
    conditions: tuple[Condition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()


class NodeObject(Part, frozen=True):
    """A node."""

    metadata: Meta = Meta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


# ---------------------------------------------------------------- pods


class ContainerClaim(Part, frozen=True):
    """A container's use of one of its pod's resource claims; `request` is empty for all of the claim."""

    name: str = ""
    request: str = ""


class Resources(Part, frozen=True):
    """What a container, or a pod, asks for."""

    limits: dict[str, Quantity] = {}
    requests: dict[str, Quantity] = {}
    claims: tuple[ContainerClaim, ...] = ()


class ContainerPort(Part, frozen=True):
    """A port that a container names."""

    name: str = ""
    container_port: int = 0
    protocol: str = "TCP"


class Container(Part, frozen=True):
    """A container of a pod; an init container with the restart policy ``Always`` is a sidecar."""

    name: str = ""
    image: str = ""
    ports: tuple[ContainerPort, ...] = ()
    resources: Resources = Resources()
    restart_policy: str = ""

    @property
    def sidecar(self) -> bool:
        """Whether, as an init container, it goes on running beside the others."""
        return self.restart_policy == "Always"


class PodClaim(Part, frozen=True):
    """A resource claim that a pod names, or has made from a template."""

    name: str = ""
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class PodSpec(Part, frozen=True):
    """What is wanted of a pod."""

    node_name: str = ""
    node_selector: dict[str, str] = {}
    scheduler_name: str = ""
    restart_policy: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: Resources = Resources()
    """Of the pod as a whole (Kubernetes 1.34 and later); wins over those of its containers."""
    overhead: dict[str, Quantity] = {}
    resource_claims: tuple[PodClaim, ...] = ()


class Waiting(Part, frozen=True):
    """Why a container does not run yet, or again."""

    reason: str = ""
    message: str = ""


class Running(Part, frozen=True):
    """A container runs."""

    started_at: str = ""


class Terminated(Part, frozen=True):
    """How a container ended."""

    reason: str = ""
    message: str = ""
    exit_code: int = 0
    signal: int = 0
    started_at: str = ""
    finished_at: str = ""


class ContainerState(Part, frozen=True):
    """At most one of the three is set."""

    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(Part, frozen=True):
    """What is seen of a container."""

    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class PodClaimStatus(Part, frozen=True):
    """Which resource claim a pod's claim became; empty when none was needed."""

    name: str = ""
    resource_claim_name: str = ""


class PodStatus(Part, frozen=True):
    """What is seen of a pod."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    pod_ip: str = msgspec.field(default="", name="podIP")
    start_time: str = ""
    resource_claim_statuses: tuple[PodClaimStatus, ...] = ()


class PodObject(Part, frozen=True):
    """A pod."""

    metadata: Meta = Meta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


# ---------------------------------------------------------------- dynamic resource allocation


class Attribute(Part, frozen=True):
    """A property of a device; at most one of the four is set."""

    text: str | None = msgspec.field(default=None, name="string")
    whole: int | None = msgspec.field(default=None, name="int")
    flag: bool | None = msgspec.field(default=None, name="bool")
    version: str | None = None


class Amount(Part, frozen=True):
    """A capacity of a device, or a counter."""

    value: Quantity = "0"


class CounterSet(Part, frozen=True):
    """Counters that the devices of a pool share, under one name."""

    name: str = ""
    counters: dict[str, Amount] = {}


class CounterUse(Part, frozen=True):
    """What a device takes of a counter set while it is allocated."""

    counter_set: str = ""
    counters: dict[str, Amount] = {}


class SliceDevice(Part, frozen=True):
    """A device in a resource slice."""

    name: str = ""
    attributes: dict[str, Attribute] = {}
    capacity: dict[str, Amount] = {}
    consumes_counters: tuple[CounterUse, ...] = ()
    taints: tuple[TaintMark, ...] = ()
    allow_multiple_allocations: bool = False
    node_name: str = ""


class ResourcePool(Part, frozen=True):
    """Which pool a slice belongs to, in which generation, and how many slices make that generation complete."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class SliceSpec(Part, frozen=True):
    """What a driver offers in one slice."""

    driver: str = ""
    node_name: str = ""
    pool: ResourcePool = ResourcePool()
    devices: tuple[SliceDevice, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(Part, frozen=True):
    """Devices that a driver offers."""

    metadata: Meta = Meta()
    spec: SliceSpec = SliceSpec()


class ClaimResult(Part, frozen=True):
    """A device given to a claim; `consumed_capacity` only of devices that several claims may share."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool = False
    share_id: str = msgspec.field(default="", name="shareID")
    consumed_capacity: dict[str, Quantity] = {}


class ClaimDevices(Part, frozen=True):
    """The devices of an allocation."""

    results: tuple[ClaimResult, ...] = ()


class Allocation(Part, frozen=True):
    """What was given to a claim."""

    devices: ClaimDevices = ClaimDevices()
    allocation_timestamp: str = ""


class ClaimUser(Part, frozen=True):
    """Who may use a claim's devices; `resource` is ``pods``."""

    resource: str = ""
    name: str = ""
    uid: str = ""


class ClaimStatus(Part, frozen=True):
    """How far a claim is; without an allocation it holds nothing."""

    allocation: Allocation | None = None
    reserved_for: tuple[ClaimUser, ...] = ()


class ResourceClaim(Part, frozen=True):
    """A pod's claim to devices."""

    metadata: Meta = Meta()
    status: ClaimStatus = ClaimStatus()


# ---------------------------------------------------------------- pages and watches


class Failure(Part, frozen=True):
    """Kubernetes' ``Status``: why a call, or a watch, failed."""

    reason: str = ""
    message: str = ""
    code: int = 0


class PageMeta(Part, frozen=True):
    """Where a list stands, and how to get its next page."""

    resource_version: str = ""
    next_page: str = msgspec.field(default="", name="continue")
    """Give this as ``continue``; empty on the last page."""
    remaining_item_count: int | None = None


class RawPage(Part, frozen=True):
    """A page of a list, its items not decoded yet."""

    metadata: PageMeta = PageMeta()
    items: list[msgspec.Raw] | None = None


T = TypeVar("T", bound=Part)


class WholePage(Part, Generic[T], frozen=True):
    """A page of a list with its items, where all of them are as they should be."""

    metadata: PageMeta = PageMeta()
    items: tuple[T, ...] | None = None


class WatchEvent(Part, frozen=True):
    """A change; `type` is ``ADDED``, ``MODIFIED``, ``DELETED``, ``BOOKMARK`` or ``ERROR``.

    The object of a bookmark is an `Item`, that of an error a `Failure`.
    """

    type: str = ""
    object: msgspec.Raw = msgspec.Raw(b"{}")


@dataclass(frozen=True, slots=True)
class Broken:
    """An object that could not be decoded.

    Attributes
    ----------
    name, namespace, uid, resource_version
        Its metadata as far as they could be read.
    text
        What is wrong with it.
    """

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A page of a list: what could be decoded, and what could not."""

    metadata: PageMeta
    items: tuple[T, ...]
    broken: tuple[Broken, ...]


class UndecodableError(ValueError):
    """What came is not what Kubernetes sends: no JSON, or nothing like a page, an event or a failure."""


def read_page(data: bytes, kind: type[T]) -> Page[T]:
    """Decode a page of a list, at once where that can be done, and else item by item.

    Parameters
    ----------
    data
        The body of the answer.
    kind
        What its items are.

    Raises
    ------
    UndecodableError
        When `data` as a whole is no page. A broken item is not an error; it is among the page's broken ones.
    """
    try:
        whole = _page_decoder(kind).decode(data)
    except (ValueError, RecursionError):  # an item that is broken, or has nulls, must not spoil the others
        return _read_items(read_body(data, RawPage), kind)
    return Page(metadata=whole.metadata, items=cast("tuple[T, ...]", whole.items or ()), broken=())


def _read_items(page: RawPage, kind: type[T]) -> Page[T]:
    items: list[T] = []
    broken: list[Broken] = []
    for raw in page.items or ():
        item = read_item(raw, kind)
        if isinstance(item, Broken):
            broken.append(item)
        else:
            items.append(item)
    return Page(metadata=page.metadata, items=tuple(items), broken=tuple(broken))


def read_event(line: bytes) -> WatchEvent:
    """Decode a line of a watch, leaving its object for `read_item`.

    Raises
    ------
    UndecodableError
        When it is no event.
    """
    return read_body(line, WatchEvent)


def read_body(data: bytes, kind: type[T]) -> T:
    """Decode an answer that is one object.

    Raises
    ------
    UndecodableError
        When it is not of this kind.
    """
    try:
        return cast("T", _decoder(kind).decode(data))
    except (ValueError, RecursionError) as error:
        if kind in (RawPage, WatchEvent):  # what they keep raw could not be kept below
            raise UndecodableError(str(error)) from error
    try:
        return _without_nulls(data, kind)
    except (ValueError, RecursionError) as error:
        raise UndecodableError(str(error)) from error


def read_item(raw: bytes | msgspec.Raw, kind: type[T]) -> T | Broken:
    """Decode one object, of a page or a watch; never raises."""
    try:
        return read_body(bytes(raw), kind)
    except UndecodableError as error:
        return _broken(bytes(raw), str(error))


@cache
def _decoder(kind: type[Part]) -> msgspec.json.Decoder[Part]:
    return msgspec.json.Decoder(kind)


@cache
def _page_decoder(kind: type[Part]) -> msgspec.json.Decoder[WholePage[Part]]:
    return msgspec.json.Decoder(WholePage[kind])  # type: ignore[valid-type]  # the kind is known only now


def _without_nulls(data: bytes, kind: type[T]) -> T:
    """Decode once more, taking every null for something that is not there; slower, and seldom needed."""
    return msgspec.convert(_stripped(msgspec.json.decode(data)), kind)


def _stripped(value: object) -> object:
    if isinstance(value, dict):
        return {key: _stripped(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_stripped(inner) for inner in value if inner is not None]
    return value


def _broken(data: bytes, text: str) -> Broken:
    found = dict(_names(data))
    return Broken(
        name=found.get("name", ""),
        namespace=found.get("namespace", ""),
        uid=found.get("uid", ""),
        resource_version=found.get("resourceVersion", ""),
        text=text,
    )


def _names(data: bytes) -> Iterator[tuple[str, str]]:
    """Yield those of an object's metadata that are texts, if it has any."""
    try:
        value = msgspec.json.decode(data)
    except (ValueError, RecursionError):
        return
    metadata = value.get("metadata") if isinstance(value, dict) else None
    if isinstance(metadata, dict):
        yield from ((key, inner) for key, inner in metadata.items() if isinstance(inner, str))
