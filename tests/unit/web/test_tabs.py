"""Pages are kept for their visitors, and act for no one else."""

from __future__ import annotations

import asyncio
import gc
import logging
import re
import weakref
from collections.abc import AsyncIterator, Callable, MutableMapping
from typing import Any, TypeVar

import httpx
import pytest
from nicegui import Client, core
from nicegui.app.app import State
from socketio import AsyncServer
from socketio.exceptions import ConnectionRefusedError as RefusedError
from starlette.requests import Request
from starlette.responses import Response

from seaway.client.call import Call
from seaway.web import mount, tabs
from seaway.web import page as page_module
from seaway.web.cookies import SECURE
from seaway.web.mount import Sockets
from seaway.web.query_cache import EVERY_S, Callback
from seaway.web.visit import Visit
from tests.unit.api.rig import Rig
from tests.unit.web.conftest import inside
from tests.unit.web.test_mount import ask

T = TypeVar("T")

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
async def library(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Have the library make pages on the test's loop, and none left at the end."""
    monkeypatch.setattr(core, "loop", asyncio.get_running_loop())
    yield
    for client in list(Client.instances.values()):
        client.delete()


def cookie(rig: Rig, role: str) -> str:
    """Return what the browser of a user sends along."""
    return f"__Host-seaway_token={rig.tokens[role]}"


async def page_of(rig: Rig, role: str, path: str = "/jobs") -> Client:
    """Ask for a page; return the tab that is kept for it."""
    answer = await ask(rig, "GET", path, cookie=cookie(rig, role))
    found = re.search(r"'client_id': '([0-9a-f-]+)'", answer.text)
    assert found is not None, answer.text
    return Client.instances[found[1]]


def socket(client: Client, cookie: str) -> dict[str, Any]:
    """Return what the library is informed of a web socket that is to be opened."""
    headers = [(b"cookie", cookie.encode())] if cookie else []
    query = f"client_id={client.id}&implicit_handshake=true".encode()
    scope = {
        "type": "websocket",
        "path": "/_nicegui_ws/socket.io/",
        "query_string": query,
        "headers": headers,
        SECURE: True,
    }
    return {"asgi.scope": {**scope, "client": ("10.0.0.2", 1)}}


class Server:
    """A socket server with handlers of the library that say what they were given."""

    def __init__(self, rig: Rig) -> None:
        self.came: list[tuple[str, object]] = []
        self.environ: dict[str, Any] = {}
        server = AsyncServer(async_mode="asgi")
        server.get_environ = lambda sid: self.environ[sid]

        async def connect(sid: str, environ: dict[str, Any]) -> None:
            int(environ.get("next_message_id", 0))
            self.came.append(("connect", sid))

        server.on("connect", connect)
        for name in ("handshake", "event", "javascript_response", "ack", "log"):
            server.on(name, self._taking(name))
        Sockets(inside(rig)).guard(server)
        self.call = server.handlers["/"]
        self.server = server
        self.read = server.eio.handlers["message"]

    def _taking(self, name: str) -> Callable[..., None]:
        def take(_: str, message: dict[str, Any]) -> None:
            message["args"][0].strip()
            self.came.append((name, message["client_id"]))

        return take


@pytest.mark.parametrize(("role", "lets_in"), [("viewer", True), ("admin", False), ("", False)])
async def test_a_web_socket_opens_for_a_user_who_asked_for_the_page(rig: Rig, role: str, lets_in: bool) -> None:
    """A user who has a page's identifier and another token, or none, is refused as if there were no such page."""
    client, server = await page_of(rig, "viewer"), Server(rig)
    environ = socket(client, cookie(rig, role) if role else "")
    if lets_in:
        await server.call["connect"]("1", environ)
        assert server.came == [("connect", "1")]
    else:
        with pytest.raises(RefusedError, match="handshake failed"):
            await server.call["connect"]("1", environ)
        assert server.came == []


async def test_a_token_in_the_place_of_another_is_the_same_visitor_s(rig: Rig) -> None:
    """A log-in that was renewed in another tab opens this one's socket, too; another person's does not."""
    client = await page_of(rig, "viewer")
    visitor = tabs.visitor_of(client)
    assert visitor is not None
    visitor.asker.take("sw_before_before")
    assert await tabs.is_of(socket(client, cookie(rig, "viewer"))["asgi.scope"], inside(rig))
    assert not await tabs.is_of(socket(client, cookie(rig, "user"))["asgi.scope"], inside(rig))


async def test_a_socket_speaks_for_its_own_page_alone(rig: Rig) -> None:
    """A viewer's socket that names the page of an administrator presses nothing there."""
    own, other, server = await page_of(rig, "viewer"), await page_of(rig, "admin"), Server(rig)
    server.environ["1"] = socket(own, cookie(rig, "viewer"))
    for name in ("handshake", "event", "javascript_response", "ack"):
        await server.call[name]("1", {"client_id": other.id, "args": ["{}"]})
        assert server.came == []
        await server.call[name]("1", {"client_id": own.id, "args": ["{}"]})
        assert server.came.pop() == (name, own.id)


async def test_what_makes_no_sense_is_a_line_in_the_log_now_and_then(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    """However much of it comes: one short line, without what Python says of where it was."""
    client, server = await page_of(rig, "viewer"), Server(rig)
    server.environ["1"] = socket(client, cookie(rig, "viewer"))
    caplog.set_level(logging.INFO)
    messages: tuple[Any, ...] = ({"client_id": client.id, "args": [{}]}, [], {"client_id": client.id}, "x\n" * 10_000)
    for message in messages:
        await server.call["event"]("1", message)
        server.call["log"]("1", message)
    for packet in ("2{bad", '2["event"', "9", '"'):
        await server.read("1", packet)
    await server.call["event"]("1")
    server.call["log"]("1")
    with pytest.raises(RefusedError):
        await server.call["connect"]("2", socket(client, cookie(rig, "viewer")) | {"next_message_id": "x"})
    lines = [each for each in caplog.records if each.name == "seaway.web.mount"]
    assert len(lines) == 1
    assert (lines[0].exc_info, len(lines[0].getMessage()) < 300) == (None, True)


@pytest.mark.parametrize("sent", [b"1234", '51-["event",{"_placeholder":true,"num":0}]', "61-[]"])
async def test_binary_packets_are_not_collected(rig: Rig, monkeypatch: pytest.MonkeyPatch, sent: str | bytes) -> None:
    """A browser that sends or announces binary packets is disconnected."""
    server, left = Server(rig), []

    async def disconnect(sid: str) -> None:
        left.append(sid)

    monkeypatch.setattr(server.server.eio, "disconnect", disconnect)
    await server.read("1", sent)
    assert left == ["1"]
    assert server.server._binary_packet == {}  # noqa: SLF001  # where the library collects them


async def test_long_packets_are_for_pages_only(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A web socket that no page has connected, which everyone can open, may only send short packets."""
    server, left = Server(rig), []

    async def disconnect(sid: str) -> None:
        left.append(sid)

    monkeypatch.setattr(server.server.eio, "disconnect", disconnect)
    await server.server.manager.connect("2", "/")
    for sid in ("1", "2"):
        await server.read(sid, "2" + "x" * (mount.LONGEST_BEFORE_PAGE - 1))
        assert left == []
    for sid in ("1", "2"):
        await server.read(sid, "2" + "x" * mount.LONGEST_BEFORE_PAGE)
    assert left == ["1"]


async def test_a_web_socket_has_a_limit_of_bytes(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser may send much, but not without end; another one is not affected."""
    server, left = Server(rig), []

    async def disconnect(sid: str) -> None:
        left.append(sid)

    monkeypatch.setattr(mount, "MAX_BYTES", 1000)
    monkeypatch.setattr(server.server.eio, "disconnect", disconnect)
    for _ in range(10):
        await server.read("1", "2" + "x" * 99)
    assert left == []
    await server.read("2", "2[]")
    await server.read("1", "2[]")
    assert left == ["1"]
    monkeypatch.setattr(mount, "WINDOW_S", -1)
    await server.read("1", "2[]")
    assert left == ["1"]


async def test_files_are_taken_from_the_page_s_visitor(rig: Rig) -> None:
    """A user who has the address where a page sends files, and another's token or none, is refused."""
    client = await page_of(rig, "admin")
    path = f"/_nicegui/client/{client.id}/upload/1"
    for given, status in ((cookie(rig, "admin"), 404), (cookie(rig, "viewer"), 403), ("", 403)):
        assert (await ask(rig, "POST", path, cookie=given)).status_code == status
    assert (await ask(rig, "POST", "/_nicegui/client/none/upload/1", cookie=cookie(rig, "admin"))).status_code == 403


async def test_a_page_whose_browser_never_connects_is_let_go(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anyone who fetches pages as a program does leaves nothing behind; one that has connected stays."""
    stays = await page_of(rig, "viewer")
    await stays.handle_handshake("1", "tab", None, "document", None)
    monkeypatch.setattr(tabs, "HIDDEN_S", 0.01)
    assert (await ask(rig, "GET", "/jobs", cookie=cookie(rig, "viewer"))).status_code == 200
    async with asyncio.timeout(5):
        while len(Client.instances) > 1:
            await asyncio.sleep(0.01)
    assert list(Client.instances.values()) == [stays]


async def test_pages_that_are_stored_for_a_token_have_an_end(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who has as many open as are kept reads so on a plain page; others are not concerned."""
    monkeypatch.setattr(tabs, "MOST", 2)
    for _ in range(2):
        await page_of(rig, "viewer")
    before = len(Client.instances)
    answer = await ask(rig, "GET", "/fleet?name=q", cookie=cookie(rig, "viewer"))
    assert (answer.status_code, "Too many pages" in answer.text, len(Client.instances)) == (429, True, before)
    await page_of(rig, "admin")


@pytest.mark.parametrize(
    ("path", "role", "status"),
    [
        ("/jobs/nope", "viewer", 404),
        ("/fleet/a/b", "viewer", 404),
        ("/network/x/y", "viewer", 404),
        ("/submit", "viewer", 403),
        ("/whatif", "viewer", 403),
    ],
)
async def test_what_is_not_there_or_not_his_is_a_plain_page(rig: Rig, path: str, role: str, status: int) -> None:
    """A program sees by the status that there is nothing, and nothing is kept."""
    answer = await ask(rig, "GET", path, cookie=cookie(rig, role))
    assert (answer.status_code, "<script" in answer.text, len(Client.instances)) == (status, False, 0)


@pytest.mark.parametrize(
    ("role", "path", "status", "step"),
    [
        ("admin", "/jobs/no-such-job", 404, "/jobs?name=no-such-job"),
        ("viewer", "/fleet/a/no-such-node", 404, "/fleet?name=no-such-node"),
        ("viewer", "/network/a/b", 404, "/network"),
        ("viewer", "/nothing", 404, "/"),
        ("viewer", "/logout", 405, "/"),
        ("agent", "/", 403, "/login?next=%2F"),
    ],
)
async def test_an_error_is_within_the_frame_and_has_a_next_step(
    rig: Rig, role: str, path: str, status: int, step: str
) -> None:
    """A visitor keeps the menu of the role, and a user who is not logged in sees none."""
    answer = await ask(rig, "GET", path, cookie=cookie(rig, role))
    assert (answer.status_code, f'href="{step}"' in answer.text) == (status, True)
    assert ('href="/settings"' in answer.text) == (role != "agent" and status != 405)
    assert 'href="/whatif"' not in answer.text or role == "admin"
    assert len(Client.instances) == 0
    assert 'href="/settings"' not in (await ask(rig, "GET", path, cookie="")).text


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/submit", "/jobs", "/queues", "/fleet", "/fleet/a/node-0", "/network", "/policies", "/whatif"),
        *(f"/jobs/JOB?tab={tab}" for tab in ("overview", "events", "why", "manifests", "logs")),
        *(
            f"/settings?section={section}"
            for section in ("tokens", "users", "provider", "clusters", "gateways", "notifications", "audit", "server")
        ),
    ],
)
async def test_a_page_is_served_when_it_is_whole(rig: Rig, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No one sees half of one: the library serves a page as it stands once anything on it waits for its browser."""
    done: list[str] = []
    made, serve, follow = tabs.drop_unless_it_comes, Client.build_response, Visit.follow

    def make(client: Client) -> None:
        done.append("made")
        made(client)

    def answer(client: Client, request: Request, status: int = 200) -> Response:
        done.append("served")
        return serve(client, request, status)

    async def slowly(
        visit: Visit, call: Call[T], callback: Callback[T], interval_s: float = EVERY_S
    ) -> Callable[[], None]:
        await asyncio.sleep(0.01)
        return await follow(visit, call, callback, interval_s)

    monkeypatch.setattr(core.app, "_state", State.STARTED)  # nothing waits for browsers before
    monkeypatch.setattr(Visit, "follow", slowly)
    monkeypatch.setattr(tabs, "drop_unless_it_comes", make)
    monkeypatch.setattr(Client, "build_response", answer)
    job = await rig.submit()
    page = await ask(rig, "GET", path.replace("JOB", job["id"]), cookie=cookie(rig, "admin"))
    assert (page.status_code, done) == (200, ["made", "served"])


@pytest.fixture
def slow_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have pages take longer than they may."""

    async def stay(_: Visit) -> None:
        await asyncio.sleep(60)

    monkeypatch.setattr(page_module, "SLOWEST_S", 0.05)
    monkeypatch.setattr(Visit, "stay", stay)


@pytest.mark.usefixtures("slow_build")
async def test_a_page_that_takes_too_long_says_so(rig: Rig) -> None:
    """In the visitor's language, on a plain page, and nothing is kept."""
    answer = await ask(rig, "GET", "/jobs", cookie=cookie(rig, "viewer"), **{"accept-language": "zh"})
    assert (answer.status_code, "服务器繁忙" in answer.text, len(Client.instances)) == (503, True, 0)


async def test_a_mistake_of_ours_is_reported_without_its_text(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anything that Python raised is for the log; people read what to do, in their language."""

    async def stay(_: Visit) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(Visit, "stay", stay)
    transport = httpx.ASGITransport(rig.app, raise_app_exceptions=False)
    headers = {"cookie": cookie(rig, "viewer"), "accept-language": "zh"}
    async with httpx.AsyncClient(transport=transport, base_url="http://10.0.0.1:8080", headers=headers) as client:
        answer = await client.get("/jobs")
    assert (answer.status_code, "此处出现故障" in answer.text, "secret" in answer.text) == (500, True, False)
    assert len(Client.instances) == 0


@pytest.mark.parametrize("path", ["/", "/jobs", "/queues", "/fleet", "/network", "/whatif", "/policies"])
async def test_a_deleted_tab_leaves_nothing_to_the_garbage_collector(rig: Rig, path: str) -> None:
    """The tab and all its elements are freed at once, because the collector rarely examines old objects."""
    await page_of(rig, "admin", path)  # what the first page leaves stays for the others
    gc.disable()
    try:
        client = await page_of(rig, "admin", path)
        tab, elements = weakref.ref(client), [weakref.ref(each) for each in client.elements.values()]
        client.delete()
        del client
        for _ in range(20):  # tasks of the page end
            await asyncio.sleep(0.01)
        assert len(elements) > 10
        assert not [found for each in elements if (found := each()) is not None]
        assert tab() is None
    finally:
        gc.enable()


class Browser:
    """A browser that opens a web socket, sends what it is given, and leaves."""

    def __init__(self, *packets: str) -> None:
        self._events = [{"type": "websocket.connect"}, *({"type": "websocket.receive", "text": it} for it in packets)]
        self.received: list[str] = []

    async def receive(self) -> dict[str, Any]:
        """Return the next event."""
        return self._events.pop(0) if self._events else {"type": "websocket.disconnect", "code": 1006}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Take what the server sends."""
        self.received.append(message["type"])


@pytest.mark.parametrize("packet", ["", "x", "4" * 200_000, "40"], ids=["empty", "senseless", "too long", "connect"])
async def test_a_lost_web_socket_is_freed_without_the_collector(rig: Rig, packet: str) -> None:
    """Lost connections do not stay in cycles until the next collection, which may be an hour away."""
    scope = {
        "type": "websocket",
        "path": "/_nicegui_ws/socket.io/",
        "query_string": b"EIO=4&transport=websocket",
        "headers": [(b"host", b"seaway.example"), (b"upgrade", b"websocket"), (b"connection", b"upgrade")],
        "client": ("10.0.0.2", 1),
    }
    gc.collect()
    gc.disable()
    try:
        browser = Browser(packet)
        assert rig.app is not None
        await rig.app(scope, browser.receive, browser.send)
        assert browser.received[0] == "websocket.accept"
        held = weakref.ref(browser)
        del browser
        for _ in range(200):
            if held() is None:
                break
            await asyncio.sleep(0.01)
        assert held() is None
    finally:
        gc.enable()
