"""Entry points of other packages."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

from seaway.domain.errors import RejectedError


def entry_point_names(group: str) -> list[str]:
    """Return the names that other packages offer in a group of entry points, sorted."""
    return sorted({point.name for point in entry_points(group=group)})


def load_entry_point(group: str, name: str) -> Any | None:  # noqa: ANN401 (whatever the package offers)
    """Return what a package offers by a name; None when no package does.

    Raises
    ------
    RejectedError
        When the package cannot be imported, or does not have what its entry point names.
    """
    for point in entry_points(group=group):
        if point.name == name:
            try:
                return point.load()
            except (ImportError, AttributeError) as error:
                raise RejectedError(f"{name!r}, offered as {point.value!r}, cannot be loaded: {error}") from error
    return None
