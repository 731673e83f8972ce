"""A control plane with pages: once in a process, as the library has it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest
from nicegui import Client, ui
from starlette.types import ASGIApp

from seaway.api.app import Application, make_app
from seaway.web.mount import mount
from tests.unit.api.rig import Rig, make_rig

PUBLIC = "https://seaway.example"
"""As what people know it, behind a proxy."""


@pytest.fixture
def anyio_backend() -> str:
    """Run asynchronous tests on asyncio."""
    return "asyncio"


@pytest.fixture
def client() -> Iterator[Client]:
    """Have a page to make something on, without a server."""
    made = Client(ui.page(""), request=None)
    yield made
    made.delete()


@pytest.fixture(scope="session")
def rig() -> Iterator[Rig]:
    """Have a control plane with pages."""
    made = make_rig()
    app = make_app(made.plane, home=False)
    mount(app, app.inside, public_url=PUBLIC)
    made.app = app
    yield made
    made.plane.stop()


def inside(rig: Rig) -> ASGIApp:
    """Return the API as pages ask it."""
    return cast(Application, rig.app).inside
