"""How a request wants something written or deleted."""

from __future__ import annotations

from dataclasses import dataclass

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
PATCHES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)
"""Media types of patches."""


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How to write.

    Attributes
    ----------
    manager
        Who writes, for managedFields; empty for the server's own controllers, which are not tracked.
    dry_run
        Whether nothing is to be stored.
    force
        Whether an apply takes fields from others.
    """

    manager: str = ""
    dry_run: bool = False
    force: bool = False


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """How to delete.

    Attributes
    ----------
    grace_period_s
        gracePeriodSeconds; None for what the pod says.
    propagation
        ``Foreground``, ``Background``, ``Orphan``, or empty for the kind's default.
    uid, version
        Which object it must be, and at which version; empty for any.
    dry_run
        Whether nothing is to be deleted.
    """

    grace_period_s: int | None = None
    propagation: str = ""
    uid: str = ""
    version: str = ""
    dry_run: bool = False
