"""Pods and nodes.

References
----------
Kubernetes API, v1.36: core/v1.
"""

from __future__ import annotations

import msgspec

Quantity = str | int | float
"""Amount in its JSON form, which `quantities` parses."""


class Part(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """Base of all structs here: frozen, with JSON names, and untracked by the garbage collector (no cycles)."""


class Owner(Part, frozen=True):
    """An owner of an object."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class Meta(Part, frozen=True):
    """Metadata of every object. Times are RFC 3339 texts; they are empty if unset."""

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

    @property
    def full_name(self) -> str:
        """Unique identifier among objects of the same kind, ``namespace/name``."""
        return f"{self.namespace}/{self.name}"


class ManagedFields(Part, frozen=True):
    """Fields of an object that a manager owns, in FieldsV1; `subresource` is empty for the object itself."""

    manager: str = ""
    subresource: str = ""
    time: str = ""
    fields_v1: msgspec.Raw = msgspec.Raw(b"")


class OwnedMeta(Meta, frozen=True):
    """Metadata with the owners of fields, which is only read for Seaway's objects."""

    managed_fields: tuple[ManagedFields, ...] = ()


class OwnedItem(Part, frozen=True):
    """Object of Seaway of which only the metadata is read."""

    metadata: OwnedMeta = OwnedMeta()


class Item(Part, frozen=True):
    """Object of which only the metadata is read, such as a bookmark."""

    kind: str = ""
    metadata: Meta = Meta()


class Condition(Part, frozen=True):
    """Condition of an object; `status` is ``True``, ``False`` or ``Unknown``."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class ContainerClaim(Part, frozen=True):
    """A container's use of one of its pod's resource claims; an empty `request` refers to the whole claim."""

    name: str = ""
    request: str = ""


class Resources(Part, frozen=True):
    """Resource requests of a container or a pod."""

    limits: dict[str, Quantity] = {}
    requests: dict[str, Quantity] = {}
    claims: tuple[ContainerClaim, ...] = ()


class ContainerPort(Part, frozen=True):
    """A port of a container."""

    container_port: int = 0


class Container(Part, frozen=True):
    """A container of a pod; an init container with the restart policy ``Always`` is a sidecar."""

    name: str = ""
    image: str = ""
    ports: tuple[ContainerPort, ...] = ()
    resources: Resources = Resources()
    restart_policy: str = ""

    @property
    def sidecar(self) -> bool:
        """True for an init container that keeps running beside the others."""
        return self.restart_policy == "Always"


class PodClaim(Part, frozen=True):
    """A resource claim of a pod. A claim made from a template has its name in the pod's status."""

    name: str = ""
    resource_claim_name: str = ""


class PodSpec(Part, frozen=True):
    """Specification of a pod."""

    node_name: str = ""
    node_selector: dict[str, str] = {}
    scheduler_name: str = ""
    restart_policy: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: Resources = Resources()
    """Resources of the whole pod (Kubernetes 1.34 and later), which override those of its containers."""
    overhead: dict[str, Quantity] = {}
    resource_claims: tuple[PodClaim, ...] = ()


class Waiting(Part, frozen=True):
    """State of a container that is not running yet or is to be restarted."""

    reason: str = ""
    message: str = ""


class Running(Part, frozen=True):
    """State of a running container."""


class Terminated(Part, frozen=True):
    """State of an ended container."""

    reason: str = ""
    message: str = ""
    exit_code: int = 0
    signal: int = 0


class ContainerState(Part, frozen=True):
    """State of a container; at most one of the three fields is set."""

    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(Part, frozen=True):
    """Status of a container."""

    name: str = ""
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class PodClaimStatus(Part, frozen=True):
    """Resource claim that was created for a pod's claim; empty if none was needed."""

    name: str = ""
    resource_claim_name: str = ""


class PodStatus(Part, frozen=True):
    """Status of a pod."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    nominated_node_name: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resource_claim_statuses: tuple[PodClaimStatus, ...] = ()


class PodObject(Part, frozen=True):
    """A pod."""

    metadata: Meta = Meta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class TaintMark(Part, frozen=True):
    """Taint of a node or of a device in a resource slice."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Part, frozen=True):
    """Specification of a node."""

    unschedulable: bool = False
    taints: tuple[TaintMark, ...] = ()


class NodeAddress(Part, frozen=True):
    """Address of a node, such as its ``InternalIP``."""

    type: str = ""
    address: str = ""


class NodeStatus(Part, frozen=True):
    """Status of a node."""

    addresses: tuple[NodeAddress, ...] = ()
    allocatable: dict[str, Quantity] = {}
    capacity: dict[str, Quantity] = {}
    conditions: tuple[Condition, ...] = ()


class NodeObject(Part, frozen=True):
    """A node."""

    metadata: Meta = Meta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
