"""Every store, the one in memory and the real ones, passes the same suite."""

from __future__ import annotations

import doctest
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from seaway.adapters.sqlalchemy import open_store
from seaway.application.ports.store import Store
from seaway.testing import memory_store
from seaway.testing.databases import MariaDb, MissingError, PostgreSql, Server
from seaway.testing.memory_store import MemoryDatabase, MemoryStore
from seaway.testing.stores import CASES, Case, Opening

SERVERS: dict[str, type[Server]] = {"mariadb": MariaDb, "postgresql": PostgreSql}


@pytest.fixture(scope="module")
def servers() -> Iterator[Callable[[str], Server]]:
    """Return what starts a server, or gives the one that runs."""
    running: dict[str, Server] = {}

    def get(name: str) -> Server:
        if name not in running:
            try:
                running[name] = SERVERS[name]()
            except MissingError as missing:
                pytest.skip(str(missing))
        return running[name]

    yield get
    for server in running.values():
        server.remove()


@pytest.fixture
def opening(kind: str, tmp_path: Path, servers: Callable[[str], Server]) -> Iterator[Opening]:
    """Return what opens a store on an empty database, as often as asked."""
    if kind == "memory":
        database = MemoryDatabase()
        yield lambda: MemoryStore(database)
        return
    url = f"sqlite:///{tmp_path / 'store.sqlite3'}" if kind == "sqlite" else servers(kind).new_database()
    with ExitStack() as stores:

        def open_another() -> Store:
            store = open_store(url)
            stores.callback(store.close)
            return store

        yield open_another


@pytest.mark.parametrize(
    "kind", ["memory", "sqlite", *(pytest.param(name, marks=pytest.mark.slow) for name in SERVERS)]
)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_store_passes(case: Case, opening: Opening) -> None:
    """A store keeps the rule that the case states."""
    case(opening)


def test_memory_store_fails_as_its_docstring_says() -> None:
    """The example in the docstring runs."""
    assert doctest.testmod(memory_store).failed == 0
