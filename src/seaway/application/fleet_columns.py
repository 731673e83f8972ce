"""The nodes and devices of a fleet as columns, so that what is looked for is found among 80,000 devices at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from seaway.domain.node import Node

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]

NOWHERE = -1
"""In place of a column of the engine's: it does not know the node or device yet."""


@dataclass(frozen=True, slots=True)
class Columns:
    """What there is, by cluster, and by node as clusters told; N nodes, D devices.

    Attributes
    ----------
    clusters, nodes
        Names of clusters, and their nodes, one after the other.
    cluster_of
        Which cluster each node is of, shape (N,).
    node_of
        Which node each device is on, shape (D,); the devices of a node stand together.
    first_of
        The place of the first device of each node, shape (N,).
    uuids
        Of the devices, in small letters.
    models, model_of
        Models by name, and which one each device is, shape (D,).
    memory_mib, core_milli
        All that each device has, shape (D,).
    node_at, device_at
        Where each stands in the engine's columns, shapes (N,) and (D,); `NOWHERE` where it does not.
    """

    clusters: Sequence[str]
    nodes: Sequence[Node]
    cluster_of: Numbers
    node_of: Numbers
    first_of: Numbers
    uuids: Sequence[str]
    models: Sequence[str]
    model_of: Numbers
    memory_mib: Numbers
    core_milli: Numbers
    node_at: Numbers
    device_at: Numbers

    def device(self, at: int) -> tuple[int, str]:
        """Return of a device, given by its place, that of its node, and its uuid."""
        node = int(self.node_of[at])
        return node, self.nodes[node].devices[at - self.first_of[node]].uuid


def columns_of(
    told: Mapping[str, Sequence[Node]], node_index: Mapping[tuple[str, str], int], device_index: Mapping[str, int]
) -> Columns:
    """Put the nodes of clusters into columns.

    Parameters
    ----------
    told
        The nodes of each cluster.
    node_index, device_index
        Where the engine has nodes, by cluster and name, and devices, by uuid.
    """
    nodes = list(chain.from_iterable(told.values()))
    devices = [device for node in nodes for device in node.devices]
    models = {name: at for at, name in enumerate(sorted({each.model for each in devices}))}
    return Columns(
        clusters=list(told),
        nodes=nodes,
        cluster_of=np.repeat(np.arange(len(told)), [len(each) for each in told.values()]),
        node_of=np.repeat(np.arange(len(nodes)), [len(node.devices) for node in nodes]),
        first_of=np.cumsum([0, *(len(node.devices) for node in nodes)])[:-1],
        uuids=[each.uuid.casefold() for each in devices],
        models=list(models),
        model_of=_numbers([models[each.model] for each in devices]),
        memory_mib=_numbers([each.memory_mib for each in devices]),
        core_milli=_numbers([each.core_milli for each in devices]),
        node_at=_numbers([node_index.get((name, node.name), NOWHERE) for name in told for node in told[name]]),
        device_at=_numbers([device_index.get(each.uuid, NOWHERE) for each in devices]),
    )


def picked(row: NDArray[np.int32], at: Numbers, otherwise: Numbers | int) -> Numbers:
    """Return the figures of a row of the engine's columns that stand at these places, and others for `NOWHERE`."""
    if not row.size:
        return np.broadcast_to(np.asarray(otherwise, np.int64), at.shape).copy()
    found: Numbers = np.where(at == NOWHERE, otherwise, row[at])
    return found


def _numbers(values: Sequence[int]) -> Numbers:
    return np.array(values, np.int64)
