"""Pages beside the API, in one process."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from nicegui import Client

from seaway.api.app import make_app
from seaway.web.mount import mount
from tests.unit.api.rig import Rig, make_rig

pytestmark = pytest.mark.anyio

PUBLIC = "https://seaway.example"


@pytest.fixture
def anyio_backend() -> str:
    """Run asynchronous tests on asyncio."""
    return "asyncio"


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """Have a control plane with pages, as people know it behind a proxy; once, as the library has it."""
    made = make_rig()
    app = make_app(made.plane, home=False)
    mount(app, app.inside, public_url=PUBLIC)
    made.app = app
    yield made
    made.plane.stop()


async def ask(rig: Rig, method: str, path: str, **headers: str) -> httpx.Response:
    """Ask without being let in by anything but a cookie."""
    transport = httpx.ASGITransport(rig.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://10.0.0.1:8080", headers=headers) as client:
        return await client.request(method, path)


@pytest.mark.parametrize(
    "path", ["/", "/jobs", "/jobs/x", "/login", "/nothing", "/_nicegui/nothing", "/static/seaway/no"]
)
async def test_nothing_is_kept_of_who_is_not_let_in(rig: Rig, path: str) -> None:
    """However often he asks, and for whatever: a page that lives costs the server seventy kilobytes."""
    before = len(Client.instances)
    for cookie in ("", "seaway_token=sw_no_token"):
        answer = await ask(rig, "GET", path, cookie=cookie)
        assert answer.status_code in (200, 303, 404)
    assert len(Client.instances) == before


async def test_who_is_not_known_is_led_to_the_log_in_and_back_with_what_he_looked_at(rig: Rig) -> None:
    """A filter is not lost on the way, and an ended log-in is said to have been one."""
    wanted = "/jobs?state=running&queue=a%20b"
    answer = await ask(rig, "GET", wanted)
    assert answer.headers["location"] == "/login?next=%2Fjobs%3Fstate%3Drunning%26queue%3Da%2520b"
    answer = await ask(rig, "GET", "/", cookie="seaway_token=sw_no_token")
    assert answer.headers["location"] == "/login?ended=1"


async def test_an_agent_sees_no_pages(rig: Rig) -> None:
    """Its token is for reports; it is told so on a page."""
    answer = await ask(rig, "GET", "/", cookie=f"seaway_token={rig.tokens['agent']}")
    assert (answer.status_code, "agent" in answer.text) == (403, True)


async def test_only_the_server_s_own_pages_send_something(rig: Rig) -> None:
    """By the address that is asked, or the one that people know; a refusal is a page, too."""
    for origin, status in (("http://10.0.0.1:8080", 303), (PUBLIC, 303), ("https://evil.example", 403)):
        answer = await ask(rig, "POST", "/logout", origin=origin)
        assert answer.status_code == status
    assert "another site" in answer.text


async def test_pages_and_what_they_ask_are_counted_apart_from_requests_to_the_api(rig: Rig) -> None:
    """A page is known by its address as it is declared, so that there are as many figures as pages."""
    await ask(rig, "GET", "/jobs/some-job")
    await ask(rig, "GET", "/nothing/at/all")
    async with httpx.AsyncClient(transport=httpx.ASGITransport(rig.app), base_url="http://127.0.0.1") as client:
        await client.get("/healthz")
        bearer = {"authorization": f"Bearer {rig.tokens['admin']}"}
        lines = (await client.get("/metrics", headers=bearer)).text.splitlines()
    counted = {line.rpartition(" ")[0] for line in lines if line.startswith("seaway_") and "_total{" in line}
    assert 'seaway_page_requests_total{page="/jobs/{job}",status="303"}' in counted
    assert 'seaway_page_requests_total{page="other",status="404"}' in counted
    assert 'seaway_page_asks_total{operation="who_am_i",status="401"}' in counted
    api = {each for each in counted if each.startswith("seaway_http_requests_total")}
    assert api == {'seaway_http_requests_total{operation="other",status="200"}'}
