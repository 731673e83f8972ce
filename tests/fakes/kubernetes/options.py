"""Options of writes and deletes."""

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
    """Options of a write.

    Attributes
    ----------
    manager
        The manager for managedFields; empty for the server's own controllers, which are not tracked.
    dry_run
        Whether to store nothing.
    force
        Whether an apply takes fields from other managers.
    """

    manager: str = ""
    dry_run: bool = False
    force: bool = False


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """Options of a delete.

    Attributes
    ----------
    grace_period_s
        gracePeriodSeconds; None for the value of the pod.
    propagation
        ``Foreground``, ``Background``, ``Orphan``, or empty for the kind's default.
    uid, version
        Preconditions: uid and version of the object; empty for any.
    dry_run
        Whether to delete nothing.
    """

    grace_period_s: int | None = None
    propagation: str = ""
    uid: str = ""
    version: str = ""
    dry_run: bool = False
