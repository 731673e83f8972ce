"""Queue disciplines by name, built in and from other packages."""

from __future__ import annotations

from collections.abc import Callable

from seaway.domain.errors import RejectedError
from seaway.scheduling.entry_points import entry_point_names, load_entry_point
from seaway.scheduling.queueing.discipline import QueueDiscipline
from seaway.scheduling.queueing.priority import Priority

ENTRY_POINTS = "seaway.queue_disciplines"
"""Group of entry points under which other packages offer queue disciplines: classes or functions without arguments."""

BUILT_IN: dict[str, Callable[[], QueueDiscipline]] = {"priority": Priority}
"""Factory of each built-in queue discipline."""


def queue_discipline_names() -> list[str]:
    """Return the names that `make_queue_discipline` accepts, built-in names first."""
    return [*BUILT_IN, *entry_point_names(ENTRY_POINTS)]


def make_queue_discipline(name: str) -> QueueDiscipline:
    """Create a queue discipline.

    Raises
    ------
    RejectedError
        When no queue discipline has that name, or its package cannot be loaded.
    """
    factory: Callable[[], QueueDiscipline] | None = BUILT_IN.get(name) or load_entry_point(ENTRY_POINTS, name)
    if factory is None:
        raise RejectedError(f"queue discipline {name!r} not found; available: {', '.join(queue_discipline_names())}")
    return factory()
