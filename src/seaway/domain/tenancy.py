"""Tenants and pools."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase

from seaway.domain.amounts import NO_AMOUNTS, Amounts, checked, require_bounds, require_models
from seaway.domain.errors import RejectedError
from seaway.domain.reasons import Reason, also
from seaway.domain.units import LARGEST

DEFAULT = "default"
"""Name of the initial tenant, pool and queue."""

NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?")
"""Pattern of names. Names are used as values of Kubernetes labels, in lower case."""


def require_name(kind: str, name: str, where: str = "name") -> None:
    """Check a name from a user.

    Raises
    ------
    RejectedError
        If it is not a valid value of a Kubernetes label.
    """
    if not NAME.fullmatch(name):
        raise RejectedError(Reason("name_invalid", kind=kind, name=name, why=Reason("use_name")), where=where)


def unknown_name(kind: str, name: str, known: Iterable[str], where: str | None = None) -> RejectedError:
    """Return the error of a name that nothing has, with the names that the caller may see.

    Parameters
    ----------
    kind
        Kind of the object, such as ``queue``.
    known
        All names. The nearest ones are listed first. The others keep the order of a sequence, and are sorted otherwise.
    where
        Path of the field; `kind` by default.
    """
    names = list(known) if isinstance(known, Sequence) else sorted(known)
    near = get_close_matches(name, names)
    listed = (*near, *(each for each in names if each not in near))
    hint = Reason("available", names=listed) if listed else Reason("none_visible")
    return RejectedError(
        also(Reason("unknown_name", kind=kind, name=name), hint), where=kind if where is None else where
    )


OBJECT_PATTERN = re.compile(r"[a-z0-9*][-a-z0-9.*]{0,252}")
"""Pattern of the name of an object in Kubernetes, or of a pattern of such names."""

MAX_WEIGHT = 1_000_000
"""Maximum weight of a tenant or a queue."""


@dataclass(frozen=True, slots=True)
class Quota:
    """Quota of a tenant in a pool.

    Attributes
    ----------
    guarantee
        Amounts that its jobs get before those of other tenants in the same queue.
    limit
        Amounts that its jobs never exceed together; a missing resource has no limit.
    max_waiting
        Maximum number of its waiting jobs; None for no maximum.
    user_limit, user_max_waiting
        The same, for the jobs of each of its users.
    """

    guarantee: Amounts = field(default_factory=lambda: NO_AMOUNTS)
    limit: Amounts = field(default_factory=lambda: NO_AMOUNTS)
    max_waiting: int | None = None
    user_limit: Amounts = field(default_factory=lambda: NO_AMOUNTS)
    user_max_waiting: int | None = None

    def require(self, where: str) -> None:
        """Check the numbers.

        Raises
        ------
        RejectedError
            If a number is invalid, or the guarantee exceeds the limit.
        """
        require_bounds(self.guarantee, self.limit, where)
        checked(self.user_limit, f"{where}user_limit")
        for name in ("max_waiting", "user_max_waiting"):
            number = getattr(self, name)
            if number is not None and not 0 <= number <= LARGEST:
                raise RejectedError(Reason("not_between", value=number, least=0, most=LARGEST), where=where + name)


@dataclass(frozen=True, slots=True)
class Tenant:
    """Owner of jobs: a team, a project or a customer.

    Attributes
    ----------
    weight
        Its share of a fair queue, beyond the guarantees of tenants; 0 for nothing beyond its guarantee.
    quotas
        Quota by pool; none for pools without a quota.
    secrets
        Secrets of its namespace that its jobs may use; ``*`` stands for any text.
    """

    name: str
    description: str = ""
    weight: int = 1
    quotas: Mapping[str, Quota] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the name, the numbers and the Secrets."""
        require_name("tenant", self.name)
        for each in self.secrets:
            if not OBJECT_PATTERN.fullmatch(each):
                said = Reason("use_secret_names", value=each)
                raise RejectedError(said, where="secrets")
        if not 0 <= self.weight <= MAX_WEIGHT:
            raise RejectedError(Reason("not_between", value=self.weight, least=0, most=MAX_WEIGHT), where="weight")
        for pool, quota in self.quotas.items():
            quota.require(f"quotas.{pool}.")

    def may_use(self, secret: str) -> bool:
        """Report whether its jobs may use a Secret."""
        return any(fnmatchcase(secret, each) for each in self.secrets)

    def require_models(self) -> None:
        """Check the guarantees of models and GPUs together.

        Raises
        ------
        RejectedError
            If a quota guarantees more GPUs of single models than GPUs, or than its limit of them.
        """
        for pool, quota in self.quotas.items():
            require_models(quota.guarantee, quota.limit, f"quotas.{pool}.")


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
