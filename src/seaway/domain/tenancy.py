"""Tenants, queues and pools."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from seaway.domain.errors import RejectedError
from seaway.domain.job import NodeRules

ANY_KEY = "*"
DEFAULT = "default"
"""Name of the initial tenant, pool and queue."""

NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?")
"""Pattern of names. Names are used as values of Kubernetes labels, in lower case."""


def require_name(kind: str, name: str) -> None:
    """Check a name from a user.

    Raises
    ------
    RejectedError
        If it is not a valid value of a Kubernetes label.
    """
    if not NAME.fullmatch(name):
        raise RejectedError(
            f"{kind} {name!r}: use 1 to 63 of a-z, 0-9, '-' and '.', a letter or digit first and last", where="name"
        )


@dataclass(frozen=True, slots=True)
class Tenant:
    """Owner of jobs: a team, a project or a customer."""

    name: str
    description: str = ""

    def __post_init__(self) -> None:
        """Check the name."""
        require_name("tenant", self.name)


@dataclass(frozen=True, slots=True)
class Pool:
    """A named part of the fleet.

    Attributes
    ----------
    clusters
        Names of its clusters; empty for all present and future clusters.
    """

    name: str
    clusters: frozenset[str] = frozenset()
    description: str = ""

    def __post_init__(self) -> None:
        """Check the name."""
        require_name("pool", self.name)


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue of jobs.

    Attributes
    ----------
    tenant
        Tenant whose jobs it accepts; empty for all tenants.
    pool
        Pool of clusters for its jobs.
    policy
        Policy that places its jobs.
    shadow
        Shadow policy, whose decisions have no effect and serve for comparison; empty for none.
    open
        Whether it accepts new jobs. Jobs that already wait in it are placed even if it is closed.
    allowed_taints, allowed_node_labels
        Keys of the taints that its jobs may tolerate, and of the node labels that they may require; `ANY_KEY` for all.
    """

    name: str
    tenant: str = ""
    pool: str = DEFAULT
    policy: str = "bestfit"
    shadow: str = ""
    open: bool = True
    description: str = ""
    allowed_taints: tuple[str, ...] = ()
    allowed_node_labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the name."""
        require_name("queue", self.name)

    def forbidden(self, nodes: NodeRules) -> Iterator[RejectedError]:
        """Yield the errors of a job's requirements on nodes that the queue does not allow."""
        taints = sorted({each.key for each in nodes.tolerations} - {*self.allowed_taints})
        if taints and ANY_KEY not in self.allowed_taints:
            named = ", ".join(repr(key) for key in taints if key) or "every taint"
            yield RejectedError(
                f"queue {self.name!r} does not allow jobs to tolerate {named}; an operator can allow it: "
                f"seaway queues set {self.name} --allow-taint {taints[-1] or repr(ANY_KEY)}",
                where="placement.tolerations",
            )
        labels = sorted({key for key, _ in nodes.node_labels} - {*self.allowed_node_labels})
        if labels and ANY_KEY not in self.allowed_node_labels:
            yield RejectedError(
                f"queue {self.name!r} does not allow jobs to require {', '.join(map(repr, labels))}; an operator can "
                f"allow it: seaway queues set {self.name} --allow-node-label {labels[0]}",
                where="placement.node_labels",
            )
