"""Entry points of other packages."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

from seaway.domain.errors import RejectedError


def entry_point_names(group: str) -> list[str]:
    """Return the names of the entry points in a group, sorted."""
    return sorted({point.name for point in entry_points(group=group)})


def load_entry_point(group: str, name: str) -> Any | None:  # noqa: ANN401 (any object of a package)
    """Load an entry point by name; return None if it does not exist.

    Raises
    ------
    RejectedError
        If the package cannot be imported, or lacks the object that its entry point names.
    """
    for point in entry_points(group=group):
        if point.name == name:
            try:
                return point.load()
            except (ImportError, AttributeError) as error:
                raise RejectedError(f"{name!r}, offered as {point.value!r}, cannot be loaded: {error}") from error
    return None
