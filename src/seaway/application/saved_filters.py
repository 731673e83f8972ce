"""Use cases of saved filters: views of the list of jobs that a user stores under a name."""

from __future__ import annotations

from seaway.application.changes import Change
from seaway.application.ports.clock import Clock
from seaway.application.ports.store import Store
from seaway.application.records import SavedFilter
from seaway.application.writer import Writer
from seaway.domain.errors import ConflictError, UnknownError
from seaway.domain.reasons import Reason

MAX_FILTERS = 50
"""Maximum number of saved filters of a user."""


class SavedFilters:
    """Use cases of saved filters. Each user sees only their own."""

    def __init__(self, store: Store, writer: Writer, clock: Clock) -> None:
        self._store, self._writer, self._clock = store, writer, clock

    def all_of(self, owner: str) -> list[SavedFilter]:
        """Return the saved filters of a user, by name."""
        return self._store.saved_filters(owner)

    def put(self, owner: str, name: str, query: str) -> SavedFilter:
        """Create or replace a saved filter.

        Raises
        ------
        ConflictError
            If the user has too many.
        """
        with self._writer.setting_up:
            known = {each.name for each in self._store.saved_filters(owner)}
            if name not in known and len(known) >= MAX_FILTERS:
                raise ConflictError(Reason("filters_full", most=MAX_FILTERS))
            row = SavedFilter(owner, name, query, self._clock.now_ns())
            self._writer.require(Change(put=[row]))
        return row

    def delete(self, owner: str, name: str) -> None:
        """Remove a saved filter.

        Raises
        ------
        UnknownError
            If the user has none of this name.
        """
        found = [each for each in self._store.saved_filters(owner) if each.name == name]
        if not found:
            raise UnknownError(Reason("not_found", kind="saved filter", name=name[:63]))
        self._writer.require(Change(delete=[*found]))
