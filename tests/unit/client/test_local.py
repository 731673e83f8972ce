"""Calls of a server on this machine without httpx."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import ClassVar

import httpx
import pytest

from seaway.client.call import Data, get, send
from seaway.client.config import Target
from seaway.client.connection import Pace, request, settings
from seaway.client.errors import UnavailableError, UnknownError
from seaway.client.local import LocalHttp
from seaway.client.sync import LightClient

TOKEN = "sw_1_secret"


class Handler(BaseHTTPRequestHandler):
    """Answers with what it got; paths that end with a status have that status, and those with `gone` none."""

    seen: ClassVar[list[tuple[str, str, dict[str, str], bytes]]] = []

    def answer(self) -> None:
        """Answer a request."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.seen.append((self.command, self.path, headers, body))
        if self.path.endswith("gone"):
            return
        status = int(self.path[-3:]) if self.path[-3:].isdigit() else 200
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(b'{"detail": "said"}')

    do_GET = do_POST = answer  # noqa: N815  # names of the standard library

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def server() -> Iterator[str]:
    """Serve, and return the URL."""
    Handler.seen.clear()
    served = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=served.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{served.server_port}"
    served.shutdown()
    thread.join()
    served.server_close()


def client(server: str) -> LightClient:
    """Return a client that does not retry."""
    return LightClient(server, TOKEN, pace=Pace(0.0))


def test_changes_are_reported(server: str) -> None:
    """A command can name what the server has done. Reads, dry runs and questions change nothing."""
    one = client(server)
    changed: list[str] = []
    one.on_change = changed.append
    for call in (
        get("/jobs", Data()),
        replace(send("POST", "/jobs", Data(), {"name": "x"}), query={"dry_run": True}),
        send("POST", "/whatif", Data(), {}),
        send("POST", "/jobs/x/cancel", Data(), {}),
    ):
        one.send(call)
    assert changed == ["POST /jobs/x/cancel"]


def test_requests_are_those_of_httpx(server: str) -> None:
    """Path, query, token, headers and body are the same, whichever library sends them."""
    calls = [
        get("/jobs", Data(), {"name": "ä b&c", "state": ["running", "failed"], "limit": None, "ready": True}),
        send("POST", "/jobs/x%2Fy/cancel", Data(), {"reason": "because"}),
    ]
    target = Target(server, TOKEN)
    for call in calls:
        client(server).send(call)
        with httpx.Client(**settings(target, 1)) as other:
            other.request(**request(call))
    for ours, theirs in (Handler.seen[:2], Handler.seen[2:]):
        assert ours[:2] == theirs[:2]
        assert ours[3] == theirs[3]
        same = ("authorization", "user-agent", "content-type", "host")
        assert [ours[2].get(name) for name in same] == [theirs[2].get(name) for name in same]


def test_errors_are_those_of_the_client(server: str) -> None:
    """A problem of the server, a lost connection, and a server that is not there are the usual errors."""
    with pytest.raises(UnknownError, match="said"):
        client(server).send(get("/404", Data()))
    with pytest.raises(UnavailableError, match="broke"):
        client(server).send(get("/gone", Data()))
    with pytest.raises(UnavailableError, match="cannot be reached"):
        client("http://127.0.0.1:1").send(get("/", Data()))


def test_other_servers_are_called_by_httpx() -> None:
    """Encryption and proxies are for httpx."""
    assert LocalHttp.serves(Target("http://localhost:8080"))
    assert LocalHttp.serves(Target("http://[::1]:8080"))
    assert not LocalHttp.serves(Target("https://localhost:8080"))
    assert not LocalHttp.serves(Target("http://seaway.example"))


@pytest.mark.slow
def test_httpx_is_not_imported(server: str) -> None:
    """A call that succeeds needs neither httpx nor pydantic."""
    code = (
        "import sys; from seaway.client.sync import LightClient; from seaway.client.call import Data, get\n"
        f"LightClient({server!r}).send(get('/jobs', Data()))\n"
        "print([name for name in ('httpx', 'pydantic') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
