"""Tenants, queues and pools."""

from __future__ import annotations

import re
from dataclasses import dataclass

from seaway.domain.errors import RejectedError

DEFAULT = "default"
"""Name of the tenant, the pool and the queue that are there from the start."""

NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?")
"""Pattern of names: values of Kubernetes labels in lower case, since names are used as labels."""


def require_name(kind: str, name: str) -> None:
    """Check a name that a user chose.

    Raises
    ------
    RejectedError
        When it is not valid in a Kubernetes label.
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
        Shadow policy, which decides without effect, for comparison; empty for none.
    open
        Whether it accepts new jobs. Waiting jobs are placed in any case.
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
