"""A rig behind a real server, with or without TLS."""

# ruff: noqa: ANN401  # options go on as they are

from __future__ import annotations

import datetime as dt
import ipaddress
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from seaway.api.http.server import Server, make_server
from seaway.application.changes import Change
from seaway.application.records import Event
from seaway.bootstrap.policies import warm_up
from seaway.bootstrap.settings import ServerSettings
from tests.unit.api.rig import Rig, make_rig

TIMEOUT_S = 60


class Served:
    """A rig behind a server on its own port."""

    def __init__(self, rig: Rig, settings: ServerSettings) -> None:
        self.rig = rig
        self.server: Server = make_server(rig.app, settings)
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.url = f"http{'s' if settings.tls_certificate else ''}://127.0.0.1:{self.port}"
        self.thread = Thread(target=self.server.run, kwargs={"sockets": [self.socket]})

    def headers(self, token: str) -> dict[str, str]:
        """Return the headers that authenticate a user."""
        return {"authorization": f"Bearer {self.rig.tokens[token]}"}

    def client(self, token: str = "user", **options: Any) -> httpx.Client:
        """Create a client."""
        return httpx.Client(base_url=self.url, headers=self.headers(token), timeout=TIMEOUT_S, **options)

    def store_events(self, count: int, *, tenant: str = "default", reason: str = "x") -> None:
        """Store some events."""
        now_ns = self.rig.clock.now_ns()
        for _ in range(count):
            self.rig.plane.writer.commit([Change(insert=[Event(now_ns, "cluster", reason, "test", tenant)])])


@contextmanager
def serving(settings: ServerSettings | None = None, **options: Any) -> Iterator[Served]:
    """Serve a rig, after compiling its engine."""
    warm_up()
    served = Served(make_rig(**options), settings or ServerSettings())
    served.thread.start()
    until = time.monotonic() + TIMEOUT_S
    while not served.server.started and time.monotonic() < until:
        time.sleep(0.005)
    try:
        yield served
    finally:
        served.server.should_exit = True
        served.thread.join(TIMEOUT_S)
        served.socket.close()
        served.rig.plane.stop()
    assert not served.thread.is_alive()


def certificate(folder: Path, lifetime: dt.timedelta = dt.timedelta(hours=1)) -> ServerSettings:
    """Create a self-signed certificate for localhost, which was valid a week ago."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=7))
        .not_valid_after(now + lifetime)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate_path, key_path = folder / "tls.crt", folder / "tls.key"
    certificate_path.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return ServerSettings(tls_certificate=str(certificate_path), tls_key=str(key_path))
