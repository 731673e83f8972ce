"""Requests and views of tenants and pools."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any

import orjson
from pydantic import Field, StringConstraints

from seaway.domain.amounts import parse_amounts, written_amounts
from seaway.domain.tenancy import MAX_WEIGHT, Pool, Quota, Tenant
from seaway.domain.units import LARGEST
from seaway.wire.fields import LINE_PATTERN, Amount, Line, Name, References, Unit, no_entries, no_pairs
from seaway.wire.message import CodedOut, Incoming, Shown

MAX_AMOUNTS = 64
"""Maximum number of resources of a guarantee or limit."""

ResourceName = Annotated[str, StringConstraints(pattern=LINE_PATTERN, min_length=1, max_length=258)]
WrittenAmount = Annotated[Amount, Unit(lambda value: value, "640GB", 16)]
"""An amount whose unit depends on the resource. `parse_amounts` parses it."""

AmountsIn = Annotated[dict[ResourceName, WrittenAmount], Field(max_length=MAX_AMOUNTS)]
AmountsOut = dict[str, int | float | str]

NumberOfJobs = Annotated[int, Field(ge=0, le=LARGEST)] | None


def versioned(fields: dict[str, Any]) -> dict[str, Any]:
    """Add a version: a hash of the fields."""
    return {**fields, "version": hashlib.sha256(orjson.dumps(fields)).hexdigest()[:16]}


class QuotaIn(Incoming):
    """Quota of a tenant in a pool. Amounts are as in `QueueIn`."""

    guarantee: AmountsIn = no_pairs()
    """Amounts that its jobs get before those of other tenants in the same queue."""
    limit: AmountsIn = no_pairs()
    """Maximum amounts of its jobs, by resource; `jobs` is the number of jobs that hold resources."""
    max_waiting: NumberOfJobs = None
    """Maximum number of its waiting jobs; a further submit is rejected. Null for no maximum."""
    user_limit: AmountsIn = no_pairs()
    """Maximum amounts of the jobs of each user. A user is a token."""
    user_max_waiting: NumberOfJobs = None
    """Maximum number of waiting jobs of each user; null for no maximum."""

    def values(self, pool: str) -> dict[str, Any]:
        """Return the values of all fields, by their names in `Quota`.

        Raises
        ------
        RejectedError
            If an amount or its resource is invalid.
        """
        amounts = {
            name: parse_amounts(getattr(self, name), where=f"quotas.{pool}.{name}")
            for name in ("guarantee", "limit", "user_limit")
        }
        return {**amounts, "max_waiting": self.max_waiting, "user_max_waiting": self.user_max_waiting}


class TenantIn(Incoming):
    """A tenant, the owner of jobs. The name is part of the path."""

    description: Line = ""
    weight: Annotated[int, Field(ge=0, le=MAX_WEIGHT)] = 1
    """Share of a queue of the order `fair`; 0 for nothing beyond its guarantee."""
    quotas: Annotated[dict[Name, QuotaIn], Field(max_length=MAX_AMOUNTS)] = no_pairs()
    """Quotas by pool."""
    secrets: References = no_entries()
    """Secrets of the tenant's namespace that its jobs may use; `*` stands for any text. Empty for none."""

    def tenant(self, name: str) -> Tenant:
        """Return the record.

        Raises
        ------
        RejectedError
            If an amount is invalid, or a guarantee exceeds its limit.
        """
        quotas = {pool: Quota(**quota.values(pool)) for pool, quota in self.quotas.items()}
        return Tenant(name, self.description, self.weight, quotas, tuple(self.secrets))


class TenantChangeIn(TenantIn):
    """A new tenant, or the changed fields of a tenant and of its quotas. Omitted fields keep their value."""

    name: Name

    def change(self) -> tuple[str, dict[str, Any]]:
        """Return the name and the values of the given fields; `quotas` has those of each given quota, by pool.

        Raises
        ------
        RejectedError
            If an amount or its resource is invalid.
        """
        fields: dict[str, Any] = {name: getattr(self, name) for name in self.model_fields_set - {"name", "quotas"}}
        if "secrets" in fields:
            fields["secrets"] = tuple(self.secrets)
        for pool, quota in self.quotas.items():
            given = {name: value for name, value in quota.values(pool).items() if name in quota.model_fields_set}
            fields.setdefault("quotas", {})[pool] = given
        return self.name, fields


class PoolIn(Incoming):
    """A part of the fleet. The name is part of the path."""

    clusters: References = no_entries()
    """Clusters of the pool; empty for all current and future clusters."""
    description: Line = ""

    def pool(self, name: str) -> Pool:
        """Return the record."""
        return Pool(name, frozenset(self.clusters), self.description)


class QuotaOut(Shown):
    """Quota of a tenant in a pool, as in `QuotaIn`."""

    guarantee: AmountsOut
    limit: AmountsOut
    max_waiting: int | None
    user_limit: AmountsOut
    user_max_waiting: int | None


class TenantOut(Shown):
    """A tenant, the owner of jobs."""

    name: str
    description: str
    weight: int = 1
    """Share of a queue of the order `fair`."""
    quotas: dict[str, QuotaOut] = Field(default_factory=dict)
    """Quotas by pool."""
    secrets: list[str] = Field(default_factory=list)
    """Secrets of the tenant's namespace that its jobs may use."""
    version: str
    """Version, used as ETag."""


class TenantStored(TenantOut):
    """A tenant that was created or changed."""

    warnings: list[CodedOut] = Field(default_factory=list)
    """Parts of its quotas that have no effect now, or that differ from what jobs hold."""


class TenantList(Shown):
    """Tenants, by name."""

    tenants: list[TenantOut]


class PoolOut(Shown):
    """A part of the fleet."""

    name: str
    clusters: list[str]
    """Clusters of the pool; empty for all."""
    description: str
    version: str
    """Version, used as ETag."""


class PoolList(Shown):
    """Pools, by name."""

    pools: list[PoolOut]


def tenant_fields(tenant: Tenant) -> dict[str, Any]:
    """Return the fields of `TenantOut` for a tenant."""
    quotas = {
        pool: {
            "guarantee": written_amounts(quota.guarantee),
            "limit": written_amounts(quota.limit),
            "max_waiting": quota.max_waiting,
            "user_limit": written_amounts(quota.user_limit),
            "user_max_waiting": quota.user_max_waiting,
        }
        for pool, quota in sorted(tenant.quotas.items())
    }
    fields = {"name": tenant.name, "description": tenant.description, "weight": tenant.weight, "quotas": quotas}
    return versioned({**fields, "secrets": list(tenant.secrets)})


def pool_fields(pool: Pool) -> dict[str, Any]:
    """Return the fields of `PoolOut` for a pool."""
    return versioned({"name": pool.name, "clusters": sorted(pool.clusters), "description": pool.description})
