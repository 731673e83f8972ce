"""A control plane in memory for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.api.rig import Rig, make_rig


@pytest.fixture
def anyio_backend() -> str:
    """Run asynchronous tests on asyncio."""
    return "asyncio"


@pytest.fixture
def rig() -> Iterator[Rig]:
    """Create a control plane over two small clusters."""
    made = make_rig()
    yield made
    made.plane.stop()
