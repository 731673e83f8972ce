"""Every store, the one in memory and the real ones, passes the same suite."""

from __future__ import annotations

import doctest
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from seaway.adapters.sqlalchemy import open_store
from seaway.application.ports.store import Store
from tests.conformance.store_suite import CASES, Case, Opening
from tests.fakes import memory_store
from tests.fakes.memory_store import MemoryDatabase, MemoryStore
from tests.missing import skip_or_fail
from tests.servers.databases import SERVERS, Server, servers
from tests.servers.missing import MissingError


@pytest.fixture(scope="module")
def give_server() -> Iterator[Callable[[str], Server]]:
    """Return a function that starts database servers."""
    with servers() as give:
        yield give


@pytest.fixture
def opening(kind: str, tmp_path: Path, give_server: Callable[[str], Server]) -> Iterator[Opening]:
    """Return an opener of stores on an empty database."""
    if kind == "memory":
        database = MemoryDatabase()
        yield lambda: MemoryStore(database)
        return
    try:
        url = f"sqlite:///{tmp_path / 'store.sqlite3'}" if kind == "sqlite" else give_server(kind).new_database()
    except MissingError as missing:
        skip_or_fail(missing)
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
    """A store follows the rule that the case states."""
    case(opening)


def test_memory_store_fails_as_its_docstring_says() -> None:
    """The example in the docstring runs."""
    assert doctest.testmod(memory_store).failed == 0
