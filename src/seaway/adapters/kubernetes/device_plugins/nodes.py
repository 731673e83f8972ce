"""Decoder of nodes: selects the decoders of their device plugins and merges the results."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from seaway.adapters.kubernetes.device_plugins import counted, dra, hami, hami_status, topology, volcano
from seaway.adapters.kubernetes.device_plugins import nvidia as nvidia_plugin
from seaway.adapters.kubernetes.device_plugins.findings import MAX_QUOTED, Findings
from seaway.adapters.kubernetes.device_plugins.resources import Amounts
from seaway.adapters.kubernetes.device_plugins.vendors import NVIDIA_KEY
from seaway.adapters.kubernetes.device_plugins.views import DevicePlugin, NodeView, PluginOptions
from seaway.adapters.kubernetes.facts import PRICE, node_price
from seaway.adapters.kubernetes.objects.core import NodeObject, TaintMark
from seaway.adapters.kubernetes.objects.dra import ResourceSlice
from seaway.domain.errors import RejectedError
from seaway.domain.node import Node, Taint, TaintEffect
from seaway.domain.reasons import Reason, also

_EFFECTS = {effect.value: effect for effect in TaintEffect}
DEFAULTS = PluginOptions()

CORDONED = Reason("cordoned_there")


def read_node(
    cluster: str, node: NodeObject, slices: Iterable[ResourceSlice] = (), options: PluginOptions = DEFAULTS
) -> NodeView:
    """Decode a node with its devices.

    Sources that identify cards take precedence: HAMi's register, Volcano's register, resource slices. The numbers of
    NVIDIA's plugin are used only if none of these lists NVIDIA cards.

    Parameters
    ----------
    cluster
        Name of the cluster; part of the IDs of devices without their own.
    slices
        Resource slices; those of other nodes and of incomplete pools are skipped.
    options
        Custom names of annotations and labels.

    Returns
    -------
    NodeView
        The decoded node. Its problems list skipped and uncertain data.
    """
    findings = Findings(cluster, node.metadata.name, options)
    _cards(node, tuple(slices), findings)
    try:
        node_price(node.metadata.labels)
    except RejectedError as error:
        findings.broken(PRICE, error.message)
    hami_status.read(node, findings)
    counted.read(node, findings)
    topology.read(node, findings)
    amounts, silence = Amounts(node, findings), _not_ready_reason(node)
    return findings.close(
        Node(
            node.metadata.name,
            amounts.cpu_milli(),
            amounts.memory_mib(),
            labels=node.metadata.labels,
            taints=tuple(taint for mark in node.spec.taints if (taint := _taint(mark, findings))),
            ready=not silence and not node.spec.unschedulable,
            pods=amounts.pods(),
            reason=_closed(silence) if node.spec.unschedulable else silence,
        ),
        reachable=not silence,
    )


def _cards(node: NodeObject, slices: tuple[ResourceSlice, ...], findings: Findings) -> None:
    by_volcano = volcano.is_used(node) and not (hami.has_nvidia(node) and not _moved_to_volcano(node, findings))
    hami.read(node, findings, nvidia=not by_volcano)
    if by_volcano:
        volcano.read(node, findings)
    dra.read(node, slices, findings)
    if by_volcano or hami.has_nvidia(node):
        return
    if any(access.resources.plugin is DevicePlugin.DRA for access in findings.accesses):
        if Amounts(node, findings).allocatable(nvidia_plugin.WHOLE[0]):
            text = "resource slices list the same cards; the slices take precedence"
            findings.uncertain(nvidia_plugin.WHOLE[0], text)
        return
    nvidia_plugin.read(node, findings)


def _moved_to_volcano(node: NodeObject, findings: Findings) -> bool:
    """Report whether HAMi's register is the stale one on a node with both registers."""
    amounts = Amounts(node, findings)
    moved = not amounts.allocatable(findings.options.nvidia_count) and amounts.allocatable(volcano.COUNT) > 0
    stale = NVIDIA_KEY if moved else volcano.REGISTER_KEY
    findings.uncertain(stale, "the node has registers of HAMi and Volcano; this one is considered stale")
    return moved


def _not_ready_reason(node: NodeObject) -> str:
    """Return the reason why a node is not ready; empty if it is ready."""
    for condition in node.status.conditions:
        if condition.type == "Ready":
            if condition.status == "True":
                return ""
            why = " ".join((condition.message or condition.reason or condition.status).split())
            return _not_ready(why[:MAX_QUOTED])
    return _not_ready(Reason("no_kubelet"))


@lru_cache(64)
def _not_ready(why: str) -> Reason:
    """Return the reason of a node. The cache shares it among nodes."""
    return Reason("node_not_ready", why=why)


def _closed(silence: str) -> Reason:
    """Return the reason of a cordoned node, which may also not be ready."""
    return also(silence, CORDONED) if silence else CORDONED


def _taint(mark: TaintMark, findings: Findings) -> Taint | None:
    effect = _EFFECTS.get(mark.effect)
    if effect is None or not mark.key:
        findings.broken("spec.taints", f"the taint {mark.key[:60]!r} has the unknown effect {mark.effect[:60]!r}")
        return None
    return Taint(mark.key, mark.value, effect)
