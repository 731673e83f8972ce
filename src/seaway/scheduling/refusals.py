"""Order and wording of the reasons why nodes do not fit: what can never be mended comes first."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from seaway.domain.placement import Refusal
from seaway.domain.reasons import Reason

RESERVATIONS = "Reservations"
"""Name of the rule that excludes nodes with capacity that is reserved for others."""

LIMITS = "Limits"
"""Name of the rule that excludes nodes with GPU models beyond a limit."""

CAPACITY_RULES = frozenset({RESERVATIONS, LIMITS})
"""Rules outside of the policy."""


class Mend(IntEnum):
    """Time at which a node could take the job, latest first."""

    NEVER = 0
    """Only with another job: vendor, model, size of the node."""
    DECIDED = 1
    """After a decision: a cordon, maintenance, a lost cluster."""
    FULL = 2
    """After other jobs have ended."""
    RESERVED = 3
    """After the jobs for which its room is reserved."""


MENDS: Mapping[str, Mend] = {
    **dict.fromkeys(("NodeLabels", "TaintToleration", "ClusterRules"), Mend.NEVER),
    **dict.fromkeys(("NodeResources.4", "NodeResources.5", "Network.2"), Mend.NEVER),
    **dict.fromkeys((f"DeviceFit.{code}" for code in (1, 2, 4, 5, 14, 16, 17)), Mend.NEVER),
    **dict.fromkeys(("Avoidance", "NodeReady", "Network.1", "DeviceFit.3"), Mend.DECIDED),
    **dict.fromkeys(CAPACITY_RULES, Mend.RESERVED),
}
"""Times by plugin, or by plugin and code. Other reasons, also those of other packages, are `Mend.FULL`."""

_HAVE = ("no ", "not enough ", "too ", "GPUs in use", "all ")
"""Beginnings of reasons that follow the word "have"."""

_PLACED = ("reserved ", "under ", "cordoned", "in ")
"""Beginnings of reasons that follow the nodes without a verb."""


def mend(plugin: str, code: int = 0) -> Mend:
    """Return when nodes that a plugin excludes with a code could take the job."""
    return MENDS.get(f"{plugin}.{code}", MENDS.get(plugin, Mend.FULL))


def mend_of(refusal: Refusal) -> Mend:
    """Return when the nodes of a refusal could take the job."""
    if refusal.code == "tpu_slice":
        return Mend.NEVER
    return MENDS.get(refusal.code, MENDS.get(refusal.plugin, Mend.FULL))


def ordered(refusals: list[Refusal]) -> tuple[Refusal, ...]:
    """Return refusals in the order in which they can be mended, then most nodes first."""
    return tuple(sorted(refusals, key=lambda each: (mend_of(each), -each.nodes)))


def clause(refusal: Refusal) -> Reason:
    """Return a refusal as a clause.

    Examples
    --------
    >>> clause(Refusal("DeviceFit", "too few GPUs", 24))
    '24 nodes have too few GPUs'
    >>> clause(Refusal("NodeReady", "cordoned", 1, code="is_cordoned"))
    '1 node cordoned'
    """
    if refusal.reason.startswith(_HAVE):
        code = "node_has" if refusal.nodes == 1 else "nodes_have"
    else:
        code = "nodes_excluded" if refusal.reason.startswith(_PLACED) else "nodes_refused"
    return Reason(code, count=refusal.nodes, why=refusal.reason)
