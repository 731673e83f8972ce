"""Built-in plugins, one file each; they do not know each other."""

from __future__ import annotations

from seaway.scheduling.framework import Filter
from seaway.scheduling.plugins.clusters import ClusterRules
from seaway.scheduling.plugins.network import Network
from seaway.scheduling.plugins.nodes import Avoidance, DeviceFit, NodeLabels, NodeReady, NodeResources, TaintToleration


def rules_of_fit() -> tuple[Filter, ...]:
    """Return the filters that together are the engine's rules of fit, in order: links first."""
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
"""Names of the rules of fit, in order: a profile with just these filters can be compiled."""
