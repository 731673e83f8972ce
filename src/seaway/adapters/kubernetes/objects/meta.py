"""Metadata and conditions, which objects of every kind have.

References
----------
Kubernetes API, v1.36: meta/v1.
"""

from __future__ import annotations

import msgspec

Quantity = str | int | float
"""An amount in its JSON form; `quantities` parses it."""


class Part(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """Base of all structs here: frozen, named as in JSON, and ignored by the garbage collector (no cycles)."""


class Owner(Part, frozen=True):
    """An owner of an object."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class Meta(Part, frozen=True):
    """Metadata of every object. Times are RFC 3339 texts, empty if not set."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    owner_references: tuple[Owner, ...] = ()

    @property
    def full_name(self) -> str:
        """Identity of an object among its kind, ``namespace/name``."""
        return f"{self.namespace}/{self.name}"


class Item(Part, frozen=True):
    """An object of which only the metadata is read, such as a bookmark."""

    kind: str = ""
    metadata: Meta = Meta()


class Condition(Part, frozen=True):
    """One condition of an object; `status` is ``True``, ``False`` or ``Unknown``."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
