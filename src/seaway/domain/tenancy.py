"""Tenants and pools."""

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
