"""Requests and views of tenants and pools."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson

from seaway.domain.tenancy import Pool, Tenant
from seaway.wire.fields import Line, References, no_entries
from seaway.wire.message import Incoming, Shown


def versioned(fields: dict[str, Any]) -> dict[str, Any]:
    """Add a version: a hash of the fields."""
    return {**fields, "version": hashlib.sha256(orjson.dumps(fields)).hexdigest()[:16]}


class TenantIn(Incoming):
    """A tenant, the owner of jobs. The name is part of the path."""

    description: Line = ""

    def tenant(self, name: str) -> Tenant:
        """Return the record."""
        return Tenant(name, self.description)


class PoolIn(Incoming):
    """A part of the fleet. The name is part of the path."""

    clusters: References = no_entries()
    """Clusters of the pool; empty for all current and future clusters."""
    description: Line = ""

    def pool(self, name: str) -> Pool:
        """Return the record."""
        return Pool(name, frozenset(self.clusters), self.description)


class TenantOut(Shown):
    """A tenant, the owner of jobs."""

    name: str
    description: str
    version: str
    """Version, used as ETag."""


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
    return versioned({"name": tenant.name, "description": tenant.description})


def pool_fields(pool: Pool) -> dict[str, Any]:
    """Return the fields of `PoolOut` for a pool."""
    return versioned({"name": pool.name, "clusters": sorted(pool.clusters), "description": pool.description})
