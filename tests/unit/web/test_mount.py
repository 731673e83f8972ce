"""Pages beside the API, in one process."""

from __future__ import annotations

import httpx
import pytest
from nicegui import Client

from seaway.domain.errors import InvariantError
from seaway.web import mount as mount_module
from tests.unit.api.rig import Rig
from tests.unit.web.conftest import PUBLIC, inside

pytestmark = pytest.mark.anyio


async def ask(rig: Rig, method: str, path: str, **headers: str) -> httpx.Response:
    """Ask without being let in by anything but a cookie."""
    transport = httpx.ASGITransport(rig.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://10.0.0.1:8080", headers=headers) as client:
        return await client.request(method, path)


@pytest.mark.parametrize(
    "path", ["/", "/jobs", "/jobs/x", "/login", "/nothing", "/_nicegui/nothing", "/static/seaway/no"]
)
async def test_nothing_is_stored_of_a_user_who_is_not_let_in(rig: Rig, path: str) -> None:
    """However often he asks, and for whatever: a page that lives costs the server seventy kilobytes."""
    before = len(Client.instances)
    for cookie in ("", "__Host-seaway_token=sw_no_token"):
        answer = await ask(rig, "GET", path, cookie=cookie)
        assert answer.status_code in (200, 303, 404)
    assert len(Client.instances) == before


async def test_who_is_not_known_is_led_to_the_log_in_and_back_with_what_he_looked_at(rig: Rig) -> None:
    """A filter is not lost on the way, and an ended log-in is reported to have been one."""
    wanted = "/jobs?state=running&queue=a%20b"
    answer = await ask(rig, "GET", wanted)
    assert answer.headers["location"] == "/login?next=%2Fjobs%3Fstate%3Drunning%26queue%3Da%2520b"
    answer = await ask(rig, "GET", "/", cookie="__Host-seaway_token=sw_no_token")
    assert answer.headers["location"] == "/login?ended=1"


async def test_an_agent_sees_no_pages(rig: Rig) -> None:
    """Its token is for reports; it is reported so on a page."""
    answer = await ask(rig, "GET", "/", cookie=f"__Host-seaway_token={rig.tokens['agent']}")
    assert (answer.status_code, "agent" in answer.text) == (403, True)


async def test_only_the_server_s_own_pages_send_something(rig: Rig) -> None:
    """By the address that is asked, or the one that people know; a refusal is a page, too."""
    for origin, status in (("http://10.0.0.1:8080", 303), (PUBLIC, 303), ("https://evil.example", 403)):
        answer = await ask(rig, "POST", "/logout", origin=origin)
        assert answer.status_code == status
    assert "another site" in answer.text


async def test_an_address_that_takes_what_is_sent_says_so_on_a_page(rig: Rig) -> None:
    """Anyone who comes there by a link reads that there is nothing to see, and where to go on."""
    answer = await ask(rig, "GET", "/logout")
    assert (answer.status_code, answer.headers["content-type"]) == (405, "text/html; charset=utf-8")
    assert "No page at this address" in answer.text
    assert 'href="/"' in answer.text


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
    assert 'seaway_page_api_requests_total{operation="who_am_i",status="401"}' in counted
    api = {each for each in counted if each.startswith("seaway_http_requests_total")}
    assert api == {'seaway_http_requests_total{operation="other",status="200"}'}


async def test_another_version_of_the_library_is_refused_at_start(monkeypatch: pytest.MonkeyPatch, rig: Rig) -> None:
    """Its inside is known in one version; what to install is reported before anything is changed."""
    monkeypatch.setattr(mount_module, "__version__", "3.19.0")
    with pytest.raises(InvariantError, match=r"NiceGUI 3\.18, and this is 3\.19\.0"):
        mount_module.mount(rig.app, inside(rig))
