"""Tenants, queues and pools."""

from __future__ import annotations

import re
from dataclasses import dataclass

from seaway.domain.errors import RejectedError

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
    """

    name: str
    tenant: str = ""
    pool: str = DEFAULT
    policy: str = "bestfit"
    shadow: str = ""
    open: bool = True
    description: str = ""

    def __post_init__(self) -> None:
        """Check the name."""
        require_name("queue", self.name)
