"""Opening a store."""

from __future__ import annotations

from seaway.adapters.sqlalchemy.engines import open_engines
from seaway.adapters.sqlalchemy.failures import answering
from seaway.adapters.sqlalchemy.schema import bring_up
from seaway.adapters.sqlalchemy.store import SqlStore


def open_store(url: str, *, readers: int = 8) -> SqlStore:
    """Open a store, and bring its tables up to date.

    Parameters
    ----------
    url
        ``sqlite:///path``, ``mysql://user:password@host/name`` (or ``mariadb://``) or
        ``postgresql://user:password@host/name``.
    readers
        How many threads may read at once without waiting for each other.

    Raises
    ------
    RejectedError
        When the URL is none, its driver is not installed, or the tables are of a newer Seaway.
    UnavailableError
        When the database does not answer.
    """
    engines = open_engines(url, readers)
    try:
        with answering():
            bring_up(engines.write)
    except BaseException:
        engines.dispose()
        raise
    return SqlStore(engines)
