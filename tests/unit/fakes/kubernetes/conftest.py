"""A server and a client that speaks HTTP to it."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.fakes.kubernetes import ApiServer


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """Return a server at which no one works but who deletes."""
    with ApiServer(controllers=("garbage", "namespaces")) as server:
        yield server


@pytest.fixture
def api(server: ApiServer) -> Iterator[httpx.Client]:
    """Return a client of the server."""
    with httpx.Client(base_url=server.url, headers=server.headers, timeout=10) as client:
        yield client


@pytest.fixture
def cluster() -> Iterator[ApiServer]:
    """Return a server at which everybody works."""
    with ApiServer() as server:
        yield server
