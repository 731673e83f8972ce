"""Who jobs belong to, where they wait, and which part of the fleet they may use."""

from __future__ import annotations

import re
from dataclasses import dataclass

from seaway.domain.errors import RejectedError

DEFAULT = "default"
"""Name of the tenant, the pool and the queue that are there from the start."""

NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?")
"""What Kubernetes allows as a label's value, in lower case: names end up in labels."""


def require_name(kind: str, name: str) -> None:
    """Check a name that people choose.

    Raises
    ------
    RejectedError
        When it could not stand in a Kubernetes label.
    """
    if not NAME.fullmatch(name):
        raise RejectedError(
            f"{kind} {name!r}: use 1 to 63 of a-z, 0-9, '-' and '.', a letter or digit first and last", where="name"
        )


@dataclass(frozen=True, slots=True)
class Tenant:
    """A user jobs belong to: a team, a project, a customer."""

    name: str
    description: str = ""

    def __post_init__(self) -> None:
        """Check the name."""
        require_name("tenant", self.name)


@dataclass(frozen=True, slots=True)
class Pool:
    """A part of the fleet by name.

    Attributes
    ----------
    clusters
        Its clusters; empty means all there are and will be.
    """

    name: str
    clusters: frozenset[str] = frozenset()
    description: str = ""

    def __post_init__(self) -> None:
        """Check the name."""
        require_name("pool", self.name)


@dataclass(frozen=True, slots=True)
class Queue:
    """Where jobs wait.

    Attributes
    ----------
    tenant
        Whose jobs it takes; empty takes every tenant's.
    pool
        Pool of clusters for its jobs.
    policy
        By which policy its jobs are placed.
    shadow
        A policy that decides beside it without consequences, to compare; empty for none.
    open
        Whether it takes new jobs. What waits in it is placed either way.
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
