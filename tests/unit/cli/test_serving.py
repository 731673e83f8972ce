from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from seaway.bootstrap.settings import ServerSettings
from seaway.cli.serving import server as serving
from seaway.domain.errors import RejectedError


def test_the_age_of_a_process_counts_from_its_start() -> None:
    """Anything that was imported before anybody could look at a clock counts as well."""
    code = """if True:
        import time
        began = time.monotonic()
        from seaway.cli.serving.server import age_s
        age, imports = age_s(), time.monotonic() - began
        print(age >= imports > 0)
    """
    before = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
    assert serving.age_s() > time.monotonic() - before


def test_where_the_system_does_not_tell_it_counts_from_the_import(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without /proc the figure is smaller than it should be, and there is one."""
    monkeypatch.setattr(Path, "read_text", _nothing)
    age_s = serving.age_s()
    assert 0 < age_s <= time.monotonic() - serving.IMPORTED_S


def test_the_wait_for_the_lease_is_no_part_of_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """A waiting user for weeks until it is to lead is ready soon after that, and says both."""
    monkeypatch.setattr(serving, "age_s", lambda: 95.4)
    assert serving._ready_after(0.0) == "95.4 s"  # noqa: SLF001
    assert serving._ready_after(90.0) == "5.4 s, and 90.0 s until it became the leader"  # noqa: SLF001


def _nothing(*_: object, **__: object) -> str:
    raise FileNotFoundError


def test_files_for_tls_are_looked_at(tmp_path: Path) -> None:
    """A file that is not there, that may not be read or is of another kind is named, with the setting."""
    there = tmp_path / "there.pem"
    there.write_text("no certificate", encoding="ascii")
    serving.require_tls(ServerSettings())
    for certificate, key, where in (
        ("none.pem", "there.pem", "tls_certificate"),
        ("there.pem", "none.pem", "tls_key"),
        ("there.pem", "there.pem", "tls_certificate"),
        (".", "there.pem", "tls_certificate"),
    ):
        server = ServerSettings(tls_certificate=str(tmp_path / certificate), tls_key=str(tmp_path / key))
        with pytest.raises(RejectedError) as wrong:
            serving.require_tls(server)
        assert wrong.value.where == f"[server] {where}"


@pytest.mark.parametrize(("host", "other"), [("192.0.2.1", "--host"), ("127.0.0.1", "--port")])
def test_an_address_that_cannot_be_taken_is_reported(host: str, other: str) -> None:
    """An address that is not this machine's is distinguished from a port that is in use."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        server = ServerSettings(host=host, port=taken.getsockname()[1])
        with (
            pytest.raises(RejectedError, match=f"choose another {other}"),
            serving._listening(server),  # noqa: SLF001
        ):
            pytest.fail("it was taken")


@pytest.mark.parametrize(
    ("settings", "warns"),
    [
        (ServerSettings(host="0.0.0.0"), True),  # the case in question
        (ServerSettings(host="::"), True),
        (ServerSettings(host="10.1.2.3", public_url="http://seaway.example"), True),
        (ServerSettings(host="127.0.0.1"), False),
        (ServerSettings(host="0.0.0.0", public_url="https://seaway.example"), False),  # behind a proxy
        (ServerSettings(host="0.0.0.0", tls_certificate="a", tls_key="b"), False),  # with TLS
    ],
)
def test_plain_http_beyond_loopback_is_warned_of(
    settings: ServerSettings, warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Tokens can be read on the network, which the log of each start says."""
    serving._warn_without_tls(settings)  # noqa: SLF001  # the start of a whole server has no other output of it
    assert ("WITHOUT TLS" in caplog.text) is warns
