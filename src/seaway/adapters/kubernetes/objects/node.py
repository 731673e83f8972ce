"""Nodes.

References
----------
Kubernetes API, v1.36: core/v1.
"""

from __future__ import annotations

from seaway.adapters.kubernetes.objects.meta import Condition, Meta
from seaway.adapters.kubernetes.objects.part import Part, Quantity


class TaintMark(Part, frozen=True):
    """A taint, of a node or of a device in a resource slice."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Part, frozen=True):
    """What is wanted of a node."""

    unschedulable: bool = False
    taints: tuple[TaintMark, ...] = ()


class NodeStatus(Part, frozen=True):
    """What a node says of itself."""

    allocatable: dict[str, Quantity] = {}
    capacity: dict[str, Quantity] = {}
    conditions: tuple[Condition, ...] = ()


class NodeObject(Part, frozen=True):
    """A node."""

    metadata: Meta = Meta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
