from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from seaway.adapters.http_pages import MAX_BYTES, AddressPolicy, HttpPages, TlsTrust
from seaway.application.ports.traffic import NoPage, Page
from seaway.domain.errors import RejectedError

PATIENCE_S = 20


class Handler(BaseHTTPRequestHandler):
    """Answers by the path."""

    def do_GET(self) -> None:
        """Answer."""
        status, headers, body = 200, {}, b"hello"
        if self.path == "/elsewhere":
            status, headers = 302, {"Location": "/"}
        elif self.path == "/compressed":
            headers = {"Content-Encoding": "gzip"}
        elif self.path == "/refused":
            status = 403
        elif self.path == "/long":
            body = b"x" * (MAX_BYTES + 1)
        elif self.path == "/headers":
            body = bytes(self.headers)
        elif self.path == "/cut":
            headers = {"Content-Length": "9"}
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # http.server's name
        """Log nothing."""


@contextmanager
def server() -> Iterator[str]:
    """Run a server; yields its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{http.server_address[1]}"
        finally:
            http.shutdown()
            thread.join()


def read_one(address: str, trust: TlsTrust = TlsTrust(), timeout_s: float = PATIENCE_S) -> Page | NoPage:  # noqa: B008  # frozen
    """Read one page."""
    (found,) = HttpPages(trust, timeout_s).read([address])
    return found


def test_pages_come_in_the_order_in_which_they_were_asked_for() -> None:
    """Their status does not matter."""
    with server() as url:
        found = HttpPages(TlsTrust(), PATIENCE_S).read([f"{url}/", f"{url}/refused", f"{url}/headers"])
    assert [(each.status, each.body[:5]) for each in found if isinstance(each, Page)][:2] == [
        (200, b"hello"),
        (403, b"hello"),
    ]
    assert isinstance(found[2], Page)
    assert b"Accept-Encoding: identity" in found[2].body


@pytest.mark.parametrize(
    ("path", "why"), [("/elsewhere", "redirects"), ("/compressed", "compressed"), ("/long", f"more than {MAX_BYTES}")]
)
def test_what_is_not_read_is_reported(path: str, why: str) -> None:
    """Redirects, compressed pages and long pages are rejected."""
    with server() as url:
        found = read_one(url + path)
    assert isinstance(found, NoPage)
    assert why in found.why
    assert found.answered


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:1/", "http://", "nonsense", "ftp://x/", "http://[::1/", "http://x:99999/"]
)
def test_an_address_where_no_one_answers_is_no_mistake_of_ours(address: str) -> None:
    """The error is one sentence."""
    found = read_one(address)
    assert isinstance(found, NoPage)
    assert found.why
    assert not found.answered


def test_who_says_nothing_delays_no_one() -> None:
    """Others are read concurrently, and the wait has a limit."""
    with server() as url, socket.create_server(("127.0.0.1", 0)) as unreachable:
        address = f"http://127.0.0.1:{unreachable.getsockname()[1]}/"
        found = HttpPages(TlsTrust(), 0.5).read([address, f"{url}/"])
    assert found[0] == NoPage("no answer within 0.5 s")
    assert isinstance(found[1], Page)


def test_an_answer_that_breaks_off_is_none() -> None:
    """Half a page could lack half of the counters."""
    with server() as url:
        assert isinstance(read_one(f"{url}/cut"), NoPage)


def test_a_token_is_read_again_every_time(tmp_path: Path) -> None:
    """It can be replaced without notice; without a readable token no request is sent."""
    file = tmp_path / "token"
    pages = HttpPages(TlsTrust(token_file=str(file)), PATIENCE_S)
    with server() as url:
        for token in ("first", "second"):
            file.write_text(f"{token}\n", encoding="ascii")
            (found,) = pages.read([f"{url}/headers"])
            assert isinstance(found, Page)
            assert f"Authorization: Bearer {token}\n".encode() in found.body
        file.unlink()
        assert (
            pages.read([f"{url}/"] * 2) == [NoPage(f"cannot read the token in {file}: No such file or directory")] * 2
        )


def test_certificates_that_cannot_be_read_are_refused_at_the_start(tmp_path: Path) -> None:
    """The error does not wait for the first page."""
    (tmp_path / "ca.pem").write_text("nothing", encoding="ascii")
    for name in ("ca.pem", "none.pem"):
        with pytest.raises(RejectedError, match="cannot read the certificates"):
            HttpPages(TlsTrust(ca=str(tmp_path / name)), PATIENCE_S)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "::1",
        "0.0.0.0",
        "10.1.2.3",
        "192.168.1.1",
        "169.254.169.254",
        "fe80::1",
        "fe80::1%eth0",
        "fd00:ec2::254",
        "100.100.100.200",
        "224.0.0.1",
        "ff0e::1",
        "::ffff:169.254.169.254",
        "64:ff9b::169.254.169.254",
        "2002:a9fe:a9fe::1",
        "exporter.example",
    ],
)
def test_only_public_addresses_are_allowed_without_networks(address: str) -> None:
    """An operator cannot make Seaway read metadata services, loopback services or private networks."""
    assert not AddressPolicy().allows(address)
    assert AddressPolicy().allows("1.1.1.1")
    assert AddressPolicy().allows("2606:4700:4700::1111")


def test_only_given_networks_are_allowed() -> None:
    """A list replaces the default, so public addresses are not allowed either."""
    policy = AddressPolicy(["10.8.0.0/16", "fd00:51d::/32"])
    assert [policy.allows(each) for each in ("10.8.1.2", "::ffff:10.8.1.2", "fd00:51d:1::1")] == [True] * 3
    assert [policy.allows(each) for each in ("10.9.1.2", "1.1.1.1", "fd00:51e::1", "127.0.0.1")] == [False] * 4


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0x7f000001", "127.1", "[::ffff:127.0.0.1]", "2130706433"])
def test_refused_address_gets_no_connection(host: str) -> None:
    """No notation of an address leads past the check."""
    with server() as url:
        port = url.rpartition(":")[2]
        (found,) = HttpPages(TlsTrust(), PATIENCE_S, AddressPolicy()).read([f"http://{host}:{port}/"])
        assert isinstance(found, NoPage)
        assert "exporter_networks" in found.why or "not a valid address" in found.why


def test_name_with_another_address_later_is_not_resolved_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection goes to the address that was checked, also if the name has another one a moment later."""
    asked = []

    def resolve(*given: object, **_: object) -> list[object]:
        asked.append(given[0])
        address = "127.0.0.1" if len(asked) == 1 else "127.0.0.2"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, given[1]))]

    with server() as url:
        port = url.rpartition(":")[2]
        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        pages = HttpPages(TlsTrust(), PATIENCE_S, AddressPolicy(["127.0.0.1/32"]))
        (found,) = pages.read([f"http://rebinding.example:{port}/"])
    assert isinstance(found, Page)
    assert asked == ["rebinding.example"]
