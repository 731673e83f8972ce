"""Webhooks, Slack and e-mail against real receivers on loopback, and the addresses that they may have."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address, ip_network
from typing import Any, ClassVar

import pytest

from seaway.adapters.notifications.channels import NetworkChannels
from seaway.adapters.notifications.guard import Guard
from seaway.adapters.notifications.mail import SmtpServer
from seaway.adapters.notifications.vault import AesVault, read_key
from seaway.application.ports.channels import Message, Result
from seaway.application.ports.clock import SystemClock
from seaway.domain.errors import RejectedError
from seaway.domain.notifications import Channel
from seaway.domain.public_addresses import is_public

SECRET = "whsec_" + base64.b64encode(b"k" * 24).decode()
PATIENCE_S = 60
LOOPBACK = Guard([ip_network("127.0.0.0/8")])


@dataclass
class Receiver:
    """An HTTP server that notes requests."""

    status: int = 204
    headers: dict[str, str] = field(default_factory=dict)
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    port: int = 0


@contextmanager
def receiving(status: int = 204, **headers: str) -> Iterator[Receiver]:
    """Run an HTTP server."""
    receiver = Receiver(status, {name.replace("_", "-"): value for name, value in headers.items()})

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            receiver.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            self.send_response(receiver.status)
            for name, value in receiver.headers.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class MailServer(socketserver.StreamRequestHandler):
    """An SMTP server that notes e-mails (RFC 5321), and rejects those to ``gone@…``."""

    mails: ClassVar[list[tuple[list[str], bytes]]] = []

    def handle(self) -> None:
        """Serve a connection."""
        self.say("220 test ESMTP")
        to: list[str] = []
        while line := self.rfile.readline().decode().strip():
            match line.upper().split(":")[0].split(" ")[0]:
                case "EHLO":
                    self.say("250 test")
                case "MAIL":
                    self.say("250 ok")
                case "RCPT" if "gone@" in line:
                    self.say("550 no such user")
                case "RCPT":
                    to.append(line.partition("<")[2].partition(">")[0])
                    self.say("250 ok")
                case "DATA":
                    self.say("354 go on")
                    content = b""
                    while (each := self.rfile.readline()) != b".\r\n":
                        content += each
                    self.mails.append((to, content))
                    self.say("250 ok")
                case "RSET":
                    self.say("250 ok")
                case _:
                    self.say("221 bye")
                    return

    def say(self, text: str) -> None:
        """Answer."""
        self.wfile.write(f"{text}\r\n".encode())


@contextmanager
def mail_server() -> Iterator[int]:
    """Run an SMTP server; yield its port."""
    MailServer.mails.clear()
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), MailServer) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


@contextmanager
def hung_server() -> Iterator[int]:
    """Run a server that accepts connections and never answers; yield its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def message(channel: Channel = Channel.WEBHOOK, **fields: Any) -> Message:  # noqa: ANN401
    """Return a message."""
    data = {"job": "6hhgq2g019edv", "name": "train", "tenant": "vision", "queue": "batch", "summary": "", "reason": ""}
    content = {"type": "job.failed", "timestamp": "2026-11-21T10:00:00.000Z", "data": data}
    texts = "job train has failed", "exit code 1 on <node> & elsewhere"
    return Message("msg_1", channel, *texts, content, 1_763_719_200_000_000_000, **fields)


def tried(
    *messages: Message, guard: Guard = LOOPBACK, smtp: SmtpServer | None = None, timeout_s: float = 20
) -> list[Result]:
    """Send messages at once, and return their results in the order in which they came."""
    channels = NetworkChannels(guard, smtp or SmtpServer("", 0, ""), timeout_s, SystemClock())
    results: list[Result] = []
    came = threading.Semaphore(0)

    def done(result: Result) -> None:
        results.append(result)
        came.release()

    for each in messages:
        channels.send(each, done)
    for _ in messages:
        assert came.acquire(timeout=PATIENCE_S)
    channels.close()
    return results


def test_a_webhook_is_signed() -> None:
    """A receiver that follows Standard Webhooks can verify the signature of the body, its ID and its time."""
    with receiving() as receiver:
        assert tried(message(url=f"http://127.0.0.1:{receiver.port}/hook?a=b", secret=SECRET)) == [Result()]
    ((path, headers, body),) = receiver.requests
    assert path == "/hook?a=b"
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.new(b"k" * 24, signed, hashlib.sha256).digest()).decode()
    assert (headers["webhook-id"], headers["webhook-signature"]) == ("msg_1", f"v1,{expected}")
    read = json.loads(body)
    assert (read["type"], read["data"]["name"]) == ("job.failed", "train")


def test_slack_gets_text_and_blocks() -> None:
    """Texts are escaped as Slack asks, and no signature is sent."""
    with receiving(200) as receiver:
        url = f"http://127.0.0.1:{receiver.port}/services/T/B/x"
        assert tried(message(Channel.SLACK, url=url, link="https://seaway.example.com/jobs/1")) == [Result()]
    ((path, headers, body),) = receiver.requests
    read = json.loads(body)
    assert (path, read["text"], "webhook-signature" in headers) == ("/services/T/B/x", "job train has failed", False)
    section = read["blocks"][0]["text"]["text"]
    assert "<https://seaway.example.com/jobs/1|job train has failed>" in section
    assert "exit code 1 on &lt;node&gt; &amp; elsewhere" in section


@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        (500, {}, Result("the receiver answers 500")),
        (429, {"retry_after": "120"}, Result("the receiver answers 429", retry_after_s=120)),
        (410, {}, Result("the receiver answers 410", final=True)),
    ],
)
def test_other_answers_are_failures(status: int, headers: dict[str, str], expected: Result) -> None:
    """410 asks for no further messages, and others for further tries."""
    with receiving(status, **headers) as receiver:
        assert tried(message(url=f"http://127.0.0.1:{receiver.port}/", secret=SECRET)) == [expected]


def test_redirects_are_not_followed() -> None:
    """A receiver cannot make Seaway send requests elsewhere."""
    with receiving() as inside, receiving(307, location=f"http://127.0.0.1:{inside.port}/") as receiver:
        (result,) = tried(message(url=f"http://127.0.0.1:{receiver.port}/", secret=SECRET))
    assert "redirects are not followed" in result.error
    assert inside.requests == []


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"]
)
def test_private_addresses_get_no_request(host: str) -> None:
    """However it is written, an address of this machine gets no request unless an operator allows it."""
    with receiving() as receiver:
        (result,) = tried(message(url=f"http://{host}:{receiver.port}/", secret=SECRET), guard=Guard())
        assert (bool(result.error), receiver.requests) == (True, [])
        if host == "localhost":
            assert "not public" in result.error
            url = f"http://localhost:{receiver.port}/"
            assert tried(message(url=url, secret=SECRET), guard=Guard(hosts=["localhost"])) == [Result()]


def test_the_checked_address_is_the_one_of_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name is resolved once for a request, so a second answer of its server reaches nothing (DNS rebinding)."""
    asked: list[str] = []

    async def resolve(_loop: object, host: str, port: int, **_: object) -> list[Any]:
        asked.append(host)
        address = "93.184.215.14" if len(asked) == 1 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(asyncio.base_events.BaseEventLoop, "getaddrinfo", resolve)
    connected: list[str] = []

    async def connect(_loop: object, _sock: socket.socket, address: tuple[str, int]) -> None:
        connected.append(address[0])
        raise OSError(113, "No route to host")

    monkeypatch.setattr(asyncio.selector_events.BaseSelectorEventLoop, "sock_connect", connect)
    (result,) = tried(message(url="https://rebinding.example.com/", secret=SECRET), guard=Guard())
    assert (asked, connected) == (["rebinding.example.com"], ["93.184.215.14"])
    assert "cannot connect" in result.error
    (result,) = tried(message(url="https://rebinding.example.com/", secret=SECRET), guard=Guard())
    assert (result.final, "not public" in result.error, connected) == (True, True, ["93.184.215.14"])
    assert "127.0.0.1" not in result.error  # names of internal hosts have the same text as unknown ones


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True),
        ("2606:4700::1111", True),
        ("10.0.0.1", False),
        ("169.254.169.254", False),
        ("100.100.100.200", False),
        ("fd00:ec2::254", False),
        ("fe80::1", False),
        ("::", False),
        ("224.0.0.1", False),
        ("::ffff:10.0.0.1", False),
        ("2002:0a00:0001::1", False),
        ("64:ff9b::a00:1", False),
        ("64:ff9b::808:808", True),
        ("64:ff9b:1::808:808", False),
        ("64:ff9b:1::7f00:1", False),
        ("::127.0.0.1", False),
        ("fec0::1", False),
    ],
)
def test_public_addresses(address: str, public: bool) -> None:
    """Private, loopback, link-local, shared, multicast and metadata addresses are not public, in no notation."""
    assert is_public(ip_address(address)) is public


def test_an_email_has_the_facts_of_the_job() -> None:
    """It reaches all addresses, and refused ones are the result."""
    with mail_server() as port:
        smtp = SmtpServer("127.0.0.1", port, "seaway@example.com", "none", domains=("example.com",))
        to = message(Channel.EMAIL, addresses=("ada@example.com", "bob@example.com"), link="https://s.example/jobs/1")
        assert tried(to, smtp=smtp) == [Result()]
        (result,) = tried(message(Channel.EMAIL, addresses=("gone@example.com",)), smtp=smtp)
        (other,) = tried(message(Channel.EMAIL, addresses=("eve@elsewhere.example",)), smtp=smtp)
    ((receivers, content),) = MailServer.mails
    mail = message_from_bytes(content, policy=default)
    assert receivers == ["ada@example.com", "bob@example.com"]
    assert (mail["subject"], mail["message-id"]) == ("[Seaway] job train has failed", "<msg_1@seaway>")
    assert "exit code 1" in mail.get_content()
    assert "https://s.example/jobs/1" in mail.get_content()
    assert (result.final, "550 no such user" in result.error) == (True, True)
    assert (other.final, other.error) == (True, "e-mails are sent to example.com only")


def test_an_email_is_never_sent_in_clear_if_tls_is_required() -> None:
    """A server without STARTTLS gets nothing."""
    with mail_server() as port:
        smtp = SmtpServer("127.0.0.1", port, "seaway@example.com", domains=("example.com",))
        (result,) = tried(message(Channel.EMAIL, addresses=("ada@example.com",)), smtp=smtp)
    assert ("STARTTLS" in result.error, MailServer.mails) == (True, [])


def test_receivers_without_answers_delay_no_others() -> None:
    """While an SMTP server and webhooks hang, another webhook has its message."""
    with hung_server() as hung, receiving() as receiver:
        smtp = SmtpServer("127.0.0.1", hung, "seaway@example.com", "none", domains=("example.com",), timeout_s=4)
        mails = [message(Channel.EMAIL, addresses=("ada@example.com",)) for _ in range(6)]
        unanswered = [message(url=f"http://127.0.0.1:{hung}/", secret=SECRET) for _ in range(6)]
        well = message(url=f"http://127.0.0.1:{receiver.port}/", secret=SECRET)
        results = tried(*mails[:2], *unanswered, well, smtp=smtp, timeout_s=4)
    assert results[0] == Result()
    assert all(each.error and not each.final for each in results[1:])


def test_an_unreachable_receiver_is_named() -> None:
    """Nothing listens there."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    (result,) = tried(message(url=f"http://127.0.0.1:{port}/", secret=SECRET))
    assert (result.error.startswith("cannot connect: "), result.final) == (True, False)


def test_secrets_are_encrypted_for_one_owner() -> None:
    """Equal secrets differ in the database, and neither another key nor another owner can read them."""
    vault = AesVault(bytes(32))
    first, second = vault.seal("whsec_x", "a/b"), vault.seal("whsec_x", "a/b")
    assert (first != second, "whsec" in first, vault.unseal(first, "a/b")) == (True, False, "whsec_x")
    for other, of in ((AesVault(b"1" * 32), "a/b"), (vault, "a/c")):
        with pytest.raises(RejectedError, match="another key"):
            other.unseal(first, of)
    with pytest.raises(RejectedError, match="32 bytes"):
        read_key("c2hvcnQ=", "[notifications] encryption_key")
