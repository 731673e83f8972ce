"""Certificates on both sides, over real TLS."""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from seaway.adapters.kubernetes.connection.api import Api
from seaway.adapters.kubernetes.connection.contexts import current_context
from seaway.adapters.kubernetes.connection.credentials import Credentials
from seaway.adapters.kubernetes.connection.event_loop import EventLoopThread
from seaway.domain.errors import UnavailableError
from tests.fakes.kubernetes import ApiServer
from tests.fakes.kubernetes.certificates import Certificates

EXEC = "client.authentication.k8s.io/v1"


@pytest.fixture
def reactor() -> Iterator[EventLoopThread]:
    """Start an event loop."""
    started = EventLoopThread()
    yield started
    started.close()


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """Start a server that authenticates clients by certificate."""
    with ApiServer(tls="certificate", controllers=()) as started:
        yield started


def read_nodes(reactor: EventLoopThread, kubeconfig: Path) -> bytes:
    """Request the nodes of a server once."""
    api = Api("east", Credentials(kubeconfig, current_context(kubeconfig)))
    try:
        return reactor.run(api.get("/api/v1/nodes"), 20)
    finally:
        reactor.run(api.close(), 10)


def change(kubeconfig: Path, **said: str) -> Path:
    """Change fields of the cluster in a kubeconfig."""
    read = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
    read["clusters"][0]["cluster"] |= {name.replace("_", "-"): value for name, value in said.items()}
    kubeconfig.write_text(yaml.safe_dump(read), encoding="utf-8")
    return kubeconfig


def test_a_client_s_certificate_says_who_requests(server: ApiServer, reactor: EventLoopThread, tmp_path: Path) -> None:
    """With a certificate in the kubeconfig no token is needed."""
    assert b"NodeList" in read_nodes(reactor, server.kubeconfig(tmp_path / "k"))


def test_keys_are_not_written_to_files(
    server: ApiServer, reactor: EventLoopThread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is killed leaves no key of a kubeconfig or exec plugin in the temporary folder."""
    kubeconfig = server.kubeconfig(tmp_path / "k")
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr("kubernetes.config.kube_config._temp_files", {})
    assert b"NodeList" in read_nodes(reactor, kubeconfig)
    assert list(folder.iterdir()) == []


def test_the_name_in_the_certificate_is_the_one_that_the_kubeconfig_expects(
    server: ApiServer, reactor: EventLoopThread, tmp_path: Path
) -> None:
    """With ``tls-server-name`` the address does not count, and another name is not trusted."""
    kubeconfig = server.kubeconfig(tmp_path / "k")
    assert b"NodeList" in read_nodes(reactor, change(kubeconfig, tls_server_name="localhost"))
    with pytest.raises(UnavailableError, match=r"east: cannot be reached at https://127\.0\.0\.1.*certificate"):
        read_nodes(reactor, change(kubeconfig, tls_server_name="elsewhere.example"))


def test_a_certificate_of_a_program_that_ended_is_asked_for_again(
    server: ApiServer, reactor: EventLoopThread, tmp_path: Path
) -> None:
    """A server may close the connection on an expired certificate without an answer."""
    program, said = tmp_path / "program", tmp_path / "said"
    program.write_text(f"#!/bin/sh\ncat {said}\n", encoding="utf-8")
    program.chmod(0o700)
    kubeconfig = server.kubeconfig(tmp_path / "k")
    written = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
    own = {key: base64.b64decode(text).decode() for key, text in written["users"][0]["user"].items()}
    other = Certificates.make().client

    def say(certificate: str, key: str, ends: str) -> None:
        status = {"clientCertificateData": certificate, "clientKeyData": key, "expirationTimestamp": ends}
        said.write_text(json.dumps({"apiVersion": EXEC, "kind": "ExecCredential", "status": status}), encoding="utf-8")

    run = {"apiVersion": EXEC, "command": str(program), "interactiveMode": "Never"}
    written["users"][0]["user"] = {"exec": run}
    kubeconfig.write_text(yaml.safe_dump(written), encoding="utf-8")
    say(other.certificate.decode(), other.key.decode(), "2001-01-01T00:00:00Z")
    api = Api("east", Credentials(kubeconfig, current_context(kubeconfig)))
    with pytest.raises(UnavailableError, match="cannot be reached"):
        reactor.run(api.get("/api/v1/nodes"), 20)
    say(own["client-certificate-data"], own["client-key-data"], "2999-01-01T00:00:00Z")
    assert b"NodeList" in reactor.run(api.get("/api/v1/nodes"), 20)
    reactor.run(api.close(), 10)
