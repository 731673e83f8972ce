"""Built-in plugins, which are independent of each other."""

from __future__ import annotations

from seaway.scheduling.framework import Filter
from seaway.scheduling.plugins.clusters import ClusterRules
from seaway.scheduling.plugins.network import Network
from seaway.scheduling.plugins.nodes import Avoidance, DeviceFit, NodeLabels, NodeReady, NodeResources, TaintToleration


def rules_of_fit() -> tuple[Filter, ...]:
    """Return the built-in filters that decide whether a replica fits a node, in order."""
    return (
        Network(),
        ClusterRules(),
        Avoidance(),
        NodeReady(),
        TaintToleration(),
        NodeLabels(),
        NodeResources(),
        DeviceFit(),
    )


RULES_OF_FIT = tuple(rule.name for rule in rules_of_fit())
"""Names of the built-in filters, in order. A profile with exactly these filters can be compiled."""
