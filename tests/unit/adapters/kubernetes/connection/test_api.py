"""Calls to an API server over real HTTP: credentials, time limits, errors."""

from __future__ import annotations

import json
import stat
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from seaway.adapters.kubernetes.connection import api as api_module
from seaway.adapters.kubernetes.connection import responses as answers
from seaway.adapters.kubernetes.connection.api import Api
from seaway.adapters.kubernetes.connection.credentials import Credentials, RenewalLimit
from seaway.adapters.kubernetes.connection.event_loop import EventLoopThread
from seaway.adapters.kubernetes.connection.responses import ApiError
from seaway.domain.errors import RejectedError, UnavailableError
from tests.unit.adapters.kubernetes.connection.processes import runs

Answering = Callable[[BaseHTTPRequestHandler], None]
Connect = Callable[..., Api]


class Server(ThreadingHTTPServer):
    """Answers as a test defines, and records the requests."""

    daemon_threads = True

    def __init__(self) -> None:
        self.answering: Answering = lambda request: reply(request, 200, {})
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                server.asked.append((self.command, self.path, headers, body))
                server.answering(self)

            do_GET = do_POST = do_PATCH = do_DELETE = handle_any  # noqa: N815  # http.server's names

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401
                """Log nothing."""

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        """URL of the server."""
        return f"http://127.0.0.1:{self.server_address[1]}"


def reply(request: BaseHTTPRequestHandler, status: int, body: object, **headers: str) -> None:
    """Answer a request with JSON."""
    content = json.dumps(body).encode()
    request.send_response(status)
    for name, value in {"content-length": str(len(content)), **headers}.items():
        request.send_header(name.replace("_", "-"), value)
    request.end_headers()
    request.wfile.write(content)


@pytest.fixture
def server() -> Iterator[Server]:
    """Start a server."""
    started = Server()
    yield started
    started.shutdown()
    started.server_close()


@pytest.fixture
def reactor() -> Iterator[EventLoopThread]:
    """Start an event loop."""
    started = EventLoopThread()
    yield started
    started.close()


@pytest.fixture
def connect(reactor: EventLoopThread) -> Iterator[Connect]:
    """Create a connection that is closed after the test."""
    made: list[Api] = []

    def connect(credentials: Credentials, request_timeout_s: float = 10) -> Api:
        made.append(Api("east", credentials, request_timeout_s=request_timeout_s))
        return made[-1]

    yield connect
    for api in made:
        reactor.run(api.close(), 10)


@pytest.fixture
def standing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make pauses endless."""
    monkeypatch.setattr(api_module, "RenewalLimit", lambda _, *pauses_s: RenewalLimit(lambda: 0.0, *pauses_s))


def kubeconfig(folder: Path, server: str, user: dict[str, Any], **cluster: str) -> Credentials:
    """Write a kubeconfig, with more fields of its cluster; return its credentials."""
    written = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server} | cluster}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(written), encoding="utf-8")
    return Credentials(file, "x")


def program(folder: Path, text: str) -> dict[str, Any]:
    """Write a credential program; return the user of a kubeconfig that runs it."""
    file = folder / "plugin"
    file.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(file), "interactiveMode": "Never"}}


def say_token(text: str, ends: str = "") -> str:
    """Return a shell command that prints a token and its expiry, as credential plugins do."""
    status = {"token": text} | ({"expirationTimestamp": ends} if ends else {})
    said = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    return f"echo '{json.dumps(said)}'"


def wait(what: Callable[[], bool], why: str) -> None:
    """Wait until a condition is met."""
    until_s = time.monotonic() + 10
    while not what():
        assert time.monotonic() < until_s, why
        time.sleep(0.02)


def test_a_token_is_shown_and_json_is_sent(
    server: Server, reactor: EventLoopThread, connect: Connect, tmp_path: Path
) -> None:
    """A request has the token and a JSON body."""
    api = connect(kubeconfig(tmp_path, server.url, {"token": "secret"}))
    reactor.run(api.apply("/api/v1/namespaces/seaway", {"kind": "Namespace"}), 10)
    method, path, headers, body = server.asked[-1]
    assert (method, path) == ("PATCH", "/api/v1/namespaces/seaway?fieldManager=seaway&force=true")
    assert headers["authorization"] == "Bearer secret"
    assert headers["content-type"] == "application/apply-patch+yaml"
    assert json.loads(body) == {"kind": "Namespace"}


def test_a_member_is_reached_through_the_proxy(
    server: Server, reactor: EventLoopThread, connect: Connect, tmp_path: Path
) -> None:
    """A member is reached through the proxy."""
    api = connect(kubeconfig(tmp_path, server.url, {"token": "secret"})).proxied("m1", "/clusters/m1/proxy")
    reactor.run(api.get("/api/v1/nodes"), 10)
    reactor.run(api.close(), 10)
    assert server.asked[-1][1] == "/clusters/m1/proxy/api/v1/nodes"


def test_a_token_file_is_read_again_when_the_server_knows_the_old_token_no_more(
    server: Server, reactor: EventLoopThread, connect: Connect, tmp_path: Path
) -> None:
    """A token file is read again when the server rejects the old token."""
    token = tmp_path / "token"
    token.write_text("old", encoding="utf-8")
    api = connect(kubeconfig(tmp_path, server.url, {"tokenFile": str(token)}))
    reactor.run(api.get("/a"), 10)
    token.write_text("new", encoding="utf-8")
    server.answering = lambda request: reply(
        request, 200 if request.headers["authorization"] == "Bearer new" else 401, {"message": "who are you"}
    )
    reactor.run(api.get("/b"), 10)
    assert [headers["authorization"] for _, _, headers, _ in server.asked] == ["Bearer old", "Bearer old", "Bearer new"]


def test_of_a_long_answer_the_end_is_stored(
    server: Server, reactor: EventLoopThread, connect: Connect, tmp_path: Path
) -> None:
    """The last bytes of an answer are returned, also after a new log-in; a short answer is returned whole."""
    token = tmp_path / "token"
    token.write_text("old", encoding="utf-8")
    api = connect(kubeconfig(tmp_path, server.url, {"tokenFile": str(token)}))
    assert reactor.run(api.tail("/a", {}, 100), 10) == b"{}"
    token.write_text("new", encoding="utf-8")
    said = "x" * 1_000_000 + "end"
    server.answering = lambda request: reply(
        request, 200 if request.headers["authorization"] == "Bearer new" else 401, said
    )
    assert reactor.run(api.tail("/b", {}, 5), 10) == b'xend"'


def test_a_token_that_is_never_known_is_a_refusal(
    server: Server, reactor: EventLoopThread, connect: Connect, tmp_path: Path
) -> None:
    """A token that is always rejected is an error."""
    api = connect(kubeconfig(tmp_path, server.url, {"token": "wrong"}))
    server.answering = lambda request: reply(request, 401, {"message": "Unauthorized", "reason": "Unauthorized"})
    with pytest.raises(ApiError, match="Unauthorized") as caught:
        reactor.run(api.get("/a"), 10)
    assert caught.value.status == 401
    assert len(server.asked) == 2


def test_a_program_of_the_kubeconfig_gives_the_token(
    server: Server, reactor: EventLoopThread, connect: Connect, tmp_path: Path
) -> None:
    """A credential program of the kubeconfig provides the token."""
    api = connect(kubeconfig(tmp_path, server.url, program(tmp_path, say_token("from-cloud"))))
    reactor.run(api.get("/a"), 10)
    assert server.asked[-1][2]["authorization"] == "Bearer from-cloud"


def test_a_program_that_fails_is_reported_in_its_own_words(
    server: Server, reactor: EventLoopThread, connect: Connect, tmp_path: Path
) -> None:
    """The error has the program's own message."""
    credentials = kubeconfig(tmp_path, server.url, program(tmp_path, "echo log in first >&2; exit 3"))
    with pytest.raises(UnavailableError, match="log in first"):
        reactor.run(connect(credentials).get("/a"), 10)
    assert server.asked == []


@pytest.mark.usefixtures("standing")
def test_a_program_that_hangs_is_ended_and_holds_up_no_other_cluster(
    server: Server, reactor: EventLoopThread, connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed with its child processes, and its cluster runs it at most once more before a pause."""
    monkeypatch.setattr(api_module, "CREDENTIALS_TIMEOUT_S", 1.0)
    began, hangs, good = tmp_path / "began", tmp_path / "hangs", tmp_path / "good"
    hangs.mkdir()
    good.mkdir()
    bad = connect(kubeconfig(hangs, server.url, program(hangs, f"sleep 60 & echo $! >> {began}; wait")))
    for _ in range(12):
        with pytest.raises(UnavailableError, match="was not determined within"):
            reactor.run(bad.get("/a"), 10)
    reactor.run(connect(kubeconfig(good, server.url, {"token": "t"})).get("/b"), 10)
    pids = [int(each) for each in began.read_text(encoding="utf-8").split()]
    assert len(pids) == 2
    wait(lambda: not any(map(runs, pids)), "they ended")


@pytest.mark.usefixtures("standing")
def test_a_program_that_hangs_before_its_token_ends_makes_no_cluster_unreachable(
    server: Server, reactor: EventLoopThread, connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed, and its last token is used until that expires."""
    monkeypatch.setattr(api_module, "CREDENTIALS_TIMEOUT_S", 1.0)
    ends = (datetime.now(UTC) + timedelta(seconds=50)).isoformat()
    text = f"[ -e hangs ] && {{ echo x >> hangs; sleep 60; }}; {say_token('good', ends)}; touch hangs"
    api = connect(kubeconfig(tmp_path, server.url, program(tmp_path, text)))
    for path in ("/a", "/b"):
        reactor.run(api.get(path), 10)
    assert [headers["authorization"] for _, _, headers, _ in server.asked] == ["Bearer good"] * 2
    assert (tmp_path / "hangs").read_bytes() == b"x\n"


def test_a_program_ends_when_its_cluster_is_left(
    server: Server, reactor: EventLoopThread, connect: Connect, tmp_path: Path
) -> None:
    """A program is ended with its cluster."""
    began = tmp_path / "began"
    api = connect(kubeconfig(tmp_path, server.url, program(tmp_path, f"sleep 60 & echo $! > {began}; wait")))
    requesting = reactor.submit(api.get("/a"))
    wait(lambda: began.exists() and began.read_text(encoding="utf-8").endswith("\n"), "it runs")
    reactor.run(api.close(), 10)
    with pytest.raises(UnavailableError):
        requesting.result(10)
    wait(lambda: not runs(int(began.read_text(encoding="utf-8"))), "it ended")


@pytest.mark.usefixtures("standing")
def test_a_program_that_fails_later_is_not_run_for_every_call_either(
    server: Server, reactor: EventLoopThread, connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When a token expires and a user must log in again, all callers get that error, and the program runs once more."""
    monkeypatch.setattr(api_module, "HEADER_TTL_S", 0.0)
    times, failing = tmp_path / "times", tmp_path / "failing"
    text = f"echo x >> {times}\n[ ! -e {failing} ] || {{ echo log in >&2; exit 3; }}\n"
    api = connect(
        kubeconfig(tmp_path, server.url, program(tmp_path, text + say_token("short", "2001-01-01T00:00:00Z")))
    )
    assert reactor.run(api.get("/a"), 10) == b"{}"
    failing.touch()
    before, asked = len(times.read_text(encoding="utf-8").split()), len(server.asked)
    for _ in range(8):
        with pytest.raises(UnavailableError, match="log in"):
            reactor.run(api.get("/a"), 10)
    assert len(times.read_text(encoding="utf-8").split()) == before + 2
    assert len(server.asked) == asked, "no one asks with a token that ended"


@pytest.mark.usefixtures("standing")
@pytest.mark.parametrize(
    ("ends", "says"), [(say_token("wrong"), "Unauthorized"), ("echo log in >&2; exit 3", "log in")]
)
def test_a_program_is_not_run_for_every_call_that_does_not_help(
    ends: str, says: str, server: Server, reactor: EventLoopThread, connect: Connect, tmp_path: Path
) -> None:
    """If the server keeps rejecting Seaway, or the program keeps failing, it runs only once more."""
    times = tmp_path / "times"
    api = connect(kubeconfig(tmp_path, server.url, program(tmp_path, f"echo x >> {times}\n{ends}")))
    server.answering = lambda request: reply(request, 401, {"message": "Unauthorized"})
    for _ in range(5):
        for ask in (api.get("/a"), api.tail("/b", {}, 5)):
            with pytest.raises((ApiError, UnavailableError), match=says):
                reactor.run(ask, 10)
    assert times.read_text(encoding="utf-8").split() == ["x", "x"]


def test_the_password_of_a_proxy_is_reported_no_one(
    server: Server, reactor: EventLoopThread, connect: Connect, tmp_path: Path
) -> None:
    """An error shows a proxy's answer, not its URL."""
    server.answering = lambda request: reply(request, 407, {})
    proxy = server.url.replace("http://", "http://ada:geheim@")
    api = connect(kubeconfig(tmp_path, "https://kubernetes.invalid:6443", {"token": "t"}, **{"proxy-url": proxy}))
    with pytest.raises(UnavailableError, match="east: cannot be reached") as caught:
        reactor.run(api.get("/a"), 10)
    assert "geheim" not in str(caught.value)


def test_an_address_with_a_password_is_refused_without_showing_it(
    reactor: EventLoopThread, connect: Connect, tmp_path: Path
) -> None:
    """A user name in the server's URL is rejected."""
    api = connect(kubeconfig(tmp_path, "http://ada:geheim@127.0.0.1:1", {"token": "t"}))
    with pytest.raises(UnavailableError, match="has a user in it") as caught:
        reactor.run(api.get("/a"), 10)
    assert "geheim" not in str(caught.value)


def test_no_one_is_asked_to_stay_away_for_long(
    server: Server, reactor: EventLoopThread, connect: Connect, tmp_path: Path
) -> None:
    """Whatever Retry-After a server or a proxy sends, requests resume soon."""
    api = connect(kubeconfig(tmp_path, server.url, {"token": "t"}))
    for said, wait_s in (("3600", 30), ("9" * 400, 1), ("7", 7), ("soon", 1)):
        server.answering = lambda request, said=said: reply(request, 429, {}, retry_after=said)  # type: ignore[misc]
        with pytest.raises(UnavailableError) as caught:
            reactor.run(api.get("/a"), 10)
        assert caught.value.retry_after_s == wait_s


def test_a_name_that_leads_elsewhere_is_not_followed(
    server: Server, reactor: EventLoopThread, connect: Connect, tmp_path: Path
) -> None:
    """A pod named ``..`` does not change the path of a request."""
    api = connect(kubeconfig(tmp_path, server.url, {"token": "t"}))
    for name in ("..", "../../../secrets", "."):
        with pytest.raises(RejectedError, match="leads out"):
            reactor.run(api.get(f"/api/v1/namespaces/seaway/pods/{name}/log"), 10)
    assert not server.asked


def test_a_kubeconfig_without_the_context_is_rejected(server: Server, tmp_path: Path) -> None:
    """A kubeconfig without the context is rejected."""
    kubeconfig(tmp_path, server.url, {})
    with pytest.raises(RejectedError, match="no-such"):
        Credentials(tmp_path / "kubeconfig", "no-such").load()


def test_a_server_that_hangs_is_given_up(
    server: Server, reactor: EventLoopThread, connect: Connect, tmp_path: Path
) -> None:
    """A hanging server causes a timeout."""
    server.answering = lambda _: time.sleep(3)
    api = connect(kubeconfig(tmp_path, server.url, {"token": "t"}), request_timeout_s=0.3)
    began = time.monotonic()
    with pytest.raises(UnavailableError, match="east: did not answer"):
        reactor.run(api.get("/a"), 10)
    assert time.monotonic() - began < 2.5


def test_a_server_that_hangs_holds_up_no_other(
    server: Server, reactor: EventLoopThread, connect: Connect, tmp_path: Path
) -> None:
    """A hanging server does not delay others."""
    server.answering = lambda request: time.sleep(2) if request.path == "/slow" else reply(request, 200, {})
    api = connect(kubeconfig(tmp_path, server.url, {"token": "t"}), request_timeout_s=5)
    reactor.run(api.get("/first"), 10)
    with ThreadPoolExecutor() as pool:
        slow = pool.submit(reactor.run, api.get("/slow"), 10)
        for _ in range(5):
            reactor.run(api.get("/quick"), 1)
        assert not slow.done()
        slow.cancel()


@pytest.mark.parametrize("status", [429, 500, 503, 504])
def test_a_server_that_cannot_right_now_may_be_asked_later(
    server: Server, reactor: EventLoopThread, connect: Connect, tmp_path: Path, status: int
) -> None:
    """A temporary error of a server permits a retry."""
    server.answering = lambda request: reply(request, status, {"message": "busy"}, retry_after="7")
    with pytest.raises(UnavailableError, match="busy") as caught:
        reactor.run(connect(kubeconfig(tmp_path, server.url, {"token": "t"})).get("/a"), 10)
    assert caught.value.retry_after_s == 7


def test_a_refusal_has_kubernetes_own_words(
    server: Server, reactor: EventLoopThread, connect: Connect, tmp_path: Path
) -> None:
    """A rejection has Kubernetes' own message."""
    server.answering = lambda request: reply(request, 409, {"message": "already there", "reason": "AlreadyExists"})
    with pytest.raises(ApiError, match="already there") as caught:
        reactor.run(connect(kubeconfig(tmp_path, server.url, {"token": "t"})).create("/a", {}), 10)
    assert caught.value.conflict
    assert caught.value.reason == "AlreadyExists"


def test_no_one_there_is_unavailable(reactor: EventLoopThread, connect: Connect, tmp_path: Path) -> None:
    """A server that does not answer is unavailable."""
    api = connect(kubeconfig(tmp_path, "http://127.0.0.1:1", {"token": "t"}))
    with pytest.raises(UnavailableError, match="east: cannot be reached"):
        reactor.run(api.get("/a"), 10)


def test_a_stream_is_cut_into_lines_and_ends_when_nothing_comes(
    server: Server, reactor: EventLoopThread, connect: Connect, tmp_path: Path
) -> None:
    """A stream is split into lines and ends after a time without data."""

    def two_lines_then_silence(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("connection", "close")
        request.end_headers()
        for piece in (b'{"a":', b"1}\n{", b'"b":2}\n'):
            request.wfile.write(piece)
            request.wfile.flush()
            time.sleep(0.05)
        time.sleep(3)

    server.answering = two_lines_then_silence
    api = connect(kubeconfig(tmp_path, server.url, {"token": "t"}))
    received: list[bytes] = []

    async def follow() -> None:
        async with api.stream("/watch", {"watch": "true"}, idle_timeout_s=0.5) as lines:
            async for line in lines:
                received.append(line)  # noqa: PERF401  # the stream ends with an error

    with pytest.raises(UnavailableError, match="in time"):
        reactor.run(follow(), 10)
    assert received == [b'{"a":1}', b'{"b":2}']


def test_an_answer_without_an_end_is_given_up(
    server: Server, reactor: EventLoopThread, connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Endless answers and endless lines are given up at a limit."""
    monkeypatch.setattr(answers, "MAX_BYTES", 100_000)
    monkeypatch.setattr(answers, "MAX_LINE_BYTES", 100_000)
    api = connect(kubeconfig(tmp_path, server.url, {"token": "t"}))

    def go_on(request: BaseHTTPRequestHandler) -> None:
        request.send_response(int(request.path.rpartition("/")[2]))
        request.end_headers()
        with suppress(OSError):
            while True:
                request.wfile.write(b"x" * 10_000)

    async def follow(path: str) -> None:
        async with api.stream(path, {}, 5) as lines:
            async for _ in lines:
                pass

    server.answering = go_on
    for ask in (api.get("/200"), api.get("/403"), follow("/200"), follow("/403")):
        with pytest.raises(UnavailableError, match="more than 100000 bytes"):
            reactor.run(ask, 10)
    server.answering = lambda request: reply(request, 200, "x" * 90_000)
    assert len(reactor.run(api.get("/a"), 10)) > 90_000


def test_a_proxy_of_the_kubeconfig_is_gone_through(
    server: Server, reactor: EventLoopThread, connect: Connect, tmp_path: Path
) -> None:
    """The proxy gets the whole URL, whose host this machine need not resolve."""
    far = "http://kubernetes.invalid:6443"
    api = connect(kubeconfig(tmp_path, far, {"token": "t"}, **{"proxy-url": server.url}))
    reactor.run(api.get("/api/v1/nodes"), 10)
    assert [path for _, path, _, _ in server.asked] == [f"{far}/api/v1/nodes"]


def test_a_token_that_no_header_can_have_is_reported(
    server: Server, reactor: EventLoopThread, connect: Connect, tmp_path: Path
) -> None:
    """A token with a line break adds no header, and the error does not show it."""
    api = connect(kubeconfig(tmp_path, server.url, {"token": "one\r\nx-two: secret"}))
    with pytest.raises(UnavailableError, match="the token for east contains invalid characters") as caught:
        reactor.run(api.get("/a"), 10)
    assert "secret" not in str(caught.value)
    assert not server.asked


def test_a_page_behind_a_proxy_is_read_to_a_limit(
    server: Server, reactor: EventLoopThread, connect: Connect, tmp_path: Path
) -> None:
    """A page that is too long, or compressed without request, is rejected."""
    api = connect(kubeconfig(tmp_path, server.url, {"token": "secret"}))
    assert reactor.run(api.page("/proxy/metrics", 2), 10) == b"{}"
    assert server.asked[-1][2]["accept-encoding"] == "identity"
    with pytest.raises(RejectedError, match="more than 1 bytes"):
        reactor.run(api.page("/proxy/metrics", 1), 10)
    server.answering = lambda request: reply(request, 200, {}, content_encoding="gzip")
    with pytest.raises(RejectedError, match="compressed"):
        reactor.run(api.page("/proxy/metrics", 100), 10)


def test_a_page_that_drips_ends_in_time(
    server: Server, reactor: EventLoopThread, connect: Connect, tmp_path: Path
) -> None:
    """A byte now and then does not extend the time limit."""

    def drip(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("content-length", "1000000")
        request.end_headers()
        with suppress(OSError):
            for _ in range(1000):
                request.wfile.write(b"#")
                request.wfile.flush()
                time.sleep(0.01)

    server.answering = drip
    api = connect(kubeconfig(tmp_path, server.url, {"token": "secret"}), request_timeout_s=0.3)
    with pytest.raises(UnavailableError, match="in time"):
        reactor.run(api.page("/proxy/metrics", 10**6), 10)


def test_a_page_that_knows_no_one_has_it_asked_once_who_seaway_is(
    server: Server, reactor: EventLoopThread, connect: Connect, tmp_path: Path
) -> None:
    """A server behind the proxy cannot make the credential program run again and again."""
    times = tmp_path / "times"
    user = program(tmp_path, f"echo x >> {times}\n{say_token('secret')}")
    api = connect(kubeconfig(tmp_path, server.url, user))
    server.answering = lambda request: reply(request, 401, {"message": "who are you"})
    for _ in range(5):
        with pytest.raises(ApiError, match="who are you"):
            reactor.run(api.page("/proxy/metrics", 100), 10)
    assert len(times.read_text().split()) == 2


def test_a_server_that_hung_up_is_asked_once_more(
    server: Server, reactor: EventLoopThread, connect: Connect, tmp_path: Path
) -> None:
    """A kept-alive connection that the server closes during a request causes no failure."""
    api = connect(kubeconfig(tmp_path, server.url, {"token": "t"}))
    hung_up: list[str] = []

    def hang_up_once(request: BaseHTTPRequestHandler) -> None:
        if hung_up:
            reply(request, 200, {})
        else:
            hung_up.append(request.path)
            request.close_connection = True

    server.answering = hang_up_once
    reactor.run(api.patch("/a", {}), 10)
    assert (hung_up, [path.partition("?")[0] for _, path, _, _ in server.asked]) == ([hung_up[0]], ["/a", "/a"])
    hung_up.clear()
    server.answering = lambda request: setattr(request, "close_connection", True)
    with pytest.raises(UnavailableError, match="east: cannot be reached"):
        reactor.run(api.patch("/b", {}), 10)
