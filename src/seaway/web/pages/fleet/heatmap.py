"""Heat map of the fleet: the use of all nodes at a glance, by cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from nicegui import ui
from nicegui.element import Element

from seaway.web import words as figures
from seaway.web.fragment import Fragment, once
from seaway.web.words import Words

if TYPE_CHECKING:
    from seaway.wire.fleet import FleetMap, NodeUseOut

SIZES = ((200, 22), (1000, 16), (4000, 11))
"""Sides of cells in pixels up to a number of nodes."""

SMALLEST = 8

LEVELS = 5
"""Number of colours of the scale beyond the one of free nodes, as in `static/heatmap.js`."""


class _Block(Element, component="../../static/heatmap.js"):
    """Nodes of one cluster."""


@dataclass(frozen=True, slots=True)
class _Cluster:
    """Nodes of one cluster with the lists that their numbers refer to."""

    name: str
    gpus: int
    used_milli: int
    cells: Sequence[Sequence[object]]
    models: Sequence[str]
    tenants: Sequence[str]


class HeatMap:
    """Blocks of clusters with a cell for each node. The server sends only changed clusters."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._states: Mapping[str, str] = {}
        self._blocks: dict[str, tuple[_Block, dict[str, Any]]] = {}
        self._clusters: Sequence[_Cluster] = ()
        self.element = ui.element("div").classes("heat-map")
        with self.element:
            Fragment("fleet_scale", words).show(levels=LEVELS)
            self._place = ui.element("div").classes("heats")

    def know(self, states: Mapping[str, str]) -> None:
        """Set the states of the clusters, by name."""
        if states != self._states:
            self._states = states
            self._draw()

    def show(self, of: FleetMap) -> int:
        """Show the nodes, and return their number."""
        self._clusters = once(("map", self._words.language), [of], lambda: clusters_of(of.nodes, self._words))
        self._draw()
        return len(of.nodes)

    def _draw(self) -> None:
        count = sum(len(each.cells) for each in self._clusters)
        size = next((size for most, size in SIZES if count <= most), SMALLEST)
        order = sorted(self._clusters, key=lambda each: self._states.get(each.name, "up") == "up")
        for gone in self._blocks.keys() - {each.name for each in order}:
            self._blocks.pop(gone)[0].delete()
        for at, each in enumerate(order):
            shown = self._shown(each, size)
            if each.name not in self._blocks:
                with self._place:
                    self._blocks[each.name] = _Block(), {}
            block, before = self._blocks[each.name]
            if shown != before:
                block.props.update(shown)
                block.update()
                self._blocks[each.name] = block, shown
            block.style(f"order: {at}")

    def _shown(self, of: _Cluster, size: int) -> dict[str, Any]:
        words, locale = self._words, self._words.locale
        state = self._states.get(of.name, "up")
        summary = [words("{nodes:node}, {gpus:GPU}", nodes=len(of.cells), gpus=of.gpus)]
        if of.gpus:
            share = figures.share(of.used_milli, of.gpus * 1000)
            summary.append(words("{share} allocated", share=figures.percent(share, locale)))
        return {
            "name": of.name,
            "state": "" if state == "up" else state,
            "summary": " · ".join(summary),
            "size": size,
            "cells": of.cells,
            "models": of.models,
            "tenants": of.tenants,
            "texts": {
                "state": words(state),
                "label": words("Nodes of {cluster}: arrow keys move, Enter opens the node", cluster=of.name),
                "none": words("no GPUs"),
                "use": words("{use} % allocated", use="{use}"),
                "of": words("Tenants: {tenants}", tenants="{tenants}"),
                "closed": words("unschedulable"),
                "dead": words("The node does not answer"),
                "unhealthy": words("GPUs are not healthy"),
            },
        }


def clusters_of(nodes: Sequence[NodeUseOut], words: Words) -> list[_Cluster]:
    """Return the clusters with a cell for each node, as `static/heatmap.js` reads them."""
    return [_cluster(name, list(each), words) for name, each in groupby(nodes, key=lambda node: node.cluster)]


def _cluster(name: str, nodes: Sequence[NodeUseOut], words: Words) -> _Cluster:
    models: dict[str, int] = {}
    tenants: dict[str, int] = {}
    cells = [
        (
            each.name,
            round(each.gpu_milli_used / each.gpus / 10) if each.gpus else -1,
            mark(each),
            models.setdefault(", ".join(each.models), len(models)),
            each.gpus,
            [tenants.setdefault(tenant or words("another tenant"), len(tenants)) for tenant in each.tenants],
        )
        for each in nodes
    ]
    gpus, used = sum(each.gpus for each in nodes), sum(each.gpu_milli_used for each in nodes)
    return _Cluster(name, gpus, used, cells, list(models), list(tenants))


def mark(node: NodeUseOut) -> str:
    """Return the mark of a node: the worst of dead, unhealthy and closed; empty for a node that accepts jobs."""
    if not node.answers:
        return "dead"
    if node.unhealthy:
        return "unhealthy"
    return "" if node.ready else "closed"
