"""Credentials of kubeconfigs in every form, also broken ones."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import pytest
import yaml

from seaway.adapters.kubernetes.connection import credentials
from seaway.adapters.kubernetes.connection.contexts import minified
from seaway.adapters.kubernetes.connection.credentials import MIN_S, Credentials, RenewalLimit
from seaway.domain.errors import RejectedError, UnavailableError

PROXY = "http://proxy.example:3128"
MANY = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 10)}]\n" for at in range(1, 12)
)


def kubeconfig(file: Path, server: str = "https://a:6443", user: dict[str, Any] | None = None, proxy: str = "") -> Path:
    """Write a kubeconfig with one context, ``x``."""
    cluster = {"server": server} | ({"proxy-url": proxy} if proxy else {})
    written: dict[str, Any] = {
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user or {"token": "secret"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    }
    file.write_text(yaml.safe_dump(written), encoding="utf-8")
    return file


def test_what_is_larger_than_it_looks_is_refused_before_anybody_writes_it_out(tmp_path: Path) -> None:
    """Files that expand beyond a limit are rejected by both readers: the connection, and the copy of one context."""
    file = tmp_path / "k"
    entries = "clusters: [{name: c, cluster: {server: 'https://a', extensions: *a11}}]\n"
    entries += "contexts: [{name: x, context: {cluster: c}}]\n"
    file.write_text(MANY + entries, encoding="utf-8")
    for read in (Credentials(file, "x").load, lambda: minified(file, "x", "x")):
        with pytest.raises(RejectedError, match="k is not a kubeconfig: this YAML"):
            read()


def test_what_a_kubeconfig_names_is_beside_it(tmp_path: Path) -> None:
    """Relative paths start from the file's folder, whatever its name and the working directory."""
    (tmp_path / "token").write_text("from-a-file", encoding="utf-8")
    who = Credentials(kubeconfig(tmp_path / "arn:aws:eks:eu:1234:gpu", user={"tokenFile": "token"}), "x")
    assert who.load().server == "https://a:6443"
    assert who.authorization() == "Bearer from-a-file"


def runs(folder: Path) -> int:
    """Return how often the program of `exec_user` ran."""
    return len((folder / "times").read_bytes())


def exec_user(folder: Path, then: str = "", **status: str) -> dict[str, Any]:
    """Return a user with a program that runs a command or prints a status, and counts its runs."""
    version = "client.authentication.k8s.io/v1"
    said = json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})
    does = then or f"echo '{said}'"
    text = f"printf x >> {folder / 'times'}; {does}"
    return {"exec": {"apiVersion": version, "command": "sh", "args": ["-c", text], "interactiveMode": "Never"}}


def in_s(seconds: float) -> str:
    """Return a future time in the format of programs."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


@pytest.mark.parametrize(
    ("ends", "times"), [("", 1), ("2999-01-01T00:00:00Z", 1), ("2001-01-01T00:00:00Z", 3), ("30 s from now", 3)]
)
def test_a_token_of_a_program_is_asked_for_again_before_it_ends(tmp_path: Path, ends: str, times: int) -> None:
    """The program runs in time for requests on their way to arrive before the expiry."""
    ends = in_s(30) if ends.startswith("30") else ends
    status = {"token": "t"} | ({"expirationTimestamp": ends} if ends else {})
    who = Credentials(kubeconfig(tmp_path / "k", user=exec_user(tmp_path, **status)), "x")
    assert who.load().expires_at is None
    assert [who.authorization(), who.authorization()] == ["Bearer t"] * 2
    assert runs(tmp_path) == times


class Later(datetime):
    """A clock that is ahead of the others."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Later:
        """Return the time a minute from now."""
        return super().now(tz) + timedelta(minutes=1)


def test_a_token_holds_until_its_end_though_its_program_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The program does not run for each request, and the log has its error; an expired token is not used."""
    monkeypatch.setattr(credentials, "RenewalLimit", lambda _: RenewalLimit(lambda: 0.0))
    file = kubeconfig(tmp_path / "k", user=exec_user(tmp_path, token="old", expirationTimestamp=in_s(50)))
    who = Credentials(file, "x")
    who.load()
    kubeconfig(file, user=exec_user(tmp_path, then="echo no network >&2; exit 1"))
    assert [who.authorization() for _ in range(4)] == ["Bearer old"] * 4
    assert runs(tmp_path) == 2
    (said,) = caplog.messages
    assert "gives no credentials: exec: 'sh' ended with 1: no network; its last credentials are valid until" in said
    monkeypatch.setattr(credentials, "datetime", Later)
    with pytest.raises(UnavailableError, match="no network"):
        who.authorization()


def test_a_token_is_replaced_before_it_ends_once_its_program_does_better(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program runs again after the pause that follows its failure."""
    now_s = 0.0
    monkeypatch.setattr(credentials, "RenewalLimit", lambda _: RenewalLimit(lambda: now_s))
    file = kubeconfig(tmp_path / "k", user=exec_user(tmp_path, token="old", expirationTimestamp=in_s(50)))
    who = Credentials(file, "x")
    who.load()
    kubeconfig(file, user=exec_user(tmp_path, then="exit 1"))
    assert who.authorization() == "Bearer old"
    kubeconfig(file, user=exec_user(tmp_path, token="new"))
    assert who.authorization() == "Bearer old"
    now_s += MIN_S
    assert who.authorization() == "Bearer new"


def test_a_token_in_the_kubeconfig_goes_before_its_program(tmp_path: Path) -> None:
    """Kubernetes' own client has the same order."""
    user = exec_user(tmp_path, token="other") | {"token": "own"}
    who = Credentials(kubeconfig(tmp_path / "k", user=user), "x")
    who.load()
    assert who.authorization() == "Bearer own"
    assert not (tmp_path / "times").exists()


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Remove all proxies from the environment."""
    for name in [each for each in os.environ if each.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HTTPS_PROXY", PROXY)
    return monkeypatch


@pytest.mark.parametrize(
    ("server", "no_proxy", "spared"),
    [
        ("https://gpu.corp.example:6443", "", False),
        ("https://gpu.corp.example:6443", "other.example, corp.example", True),
        ("https://gpu.corp.example:6443", ".corp.example", True),
        ("https://gpu.corp.example:6443", "*.corp.example", True),
        ("https://gpu.corp.example:6443", "GPU.corp.example", True),
        ("https://gpu.corp.example:6443", "orp.example", False),
        ("https://gpu.corp.example:6443", "gpu.corp.example:6443", True),
        ("https://gpu.corp.example:6443", "corp.example:443", False),
        ("https://gpu.corp.example", "corp.example:443", True),
        ("https://gpu.corp.example:6443", "10.0.0.0/8,*", True),
        ("https://10.1.2.3:6443", "10.0.0.0/8", True),
        ("https://10.1.2.3:6443", "10.1.2.3", True),
        ("https://11.1.2.3:6443", "10.0.0.0/8", False),
        ("https://[fd00::1]:6443", "fd00::/8", True),
        ("https://127.0.0.1:6443", "", True),
        ("https://[::1]:6443", "", True),
        ("https://localhost:6443", "", True),
    ],
)
@pytest.mark.parametrize("variable", ["NO_PROXY", "no_proxy"])
def test_what_the_environment_spares_is_reached_without_its_proxy(
    server: str, no_proxy: str, spared: bool, variable: str, environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As with kubectl, NO_PROXY has names with subdomains, addresses, ranges and ports; this machine is exempt."""
    environment.setenv(variable, no_proxy)
    assert Credentials(kubeconfig(tmp_path / "k", server), "x").load().proxy == ("" if spared else PROXY)


def test_a_proxy_of_the_kubeconfig_goes_before_the_environment(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is used whatever NO_PROXY has."""
    environment.setenv("NO_PROXY", "*")
    own = "http://own.example:8080"
    file = kubeconfig(tmp_path / "k", "https://127.0.0.1:6443", proxy=own)
    assert Credentials(file, "x").load().proxy == own


def test_a_proxy_without_a_scheme_speaks_http(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Many users write it so, and other programs accept it."""
    environment.setenv("HTTPS_PROXY", "proxy.example:3128")
    assert Credentials(kubeconfig(tmp_path / "k"), "x").load().proxy == "http://proxy.example:3128"


@pytest.mark.parametrize(
    ("server", "proxy", "says"),
    [
        ("https://a", "socks5://ada:geheim@b:1080", "needs an address like http://"),
        ("https://a", "//ada:geheim@b:1080", "needs an address like http://"),
        ("https://a", "http://ada:geheim@b:port", "needs an address like http://"),
        ("https://a:port", "http://b", "server's address is invalid"),
    ],
)
def test_an_address_that_is_none_is_reported_without_its_password(
    server: str, proxy: str, says: str, environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Only HTTP proxies are supported, and an invalid address is reported as a rejection without its password."""
    environment.setenv("HTTPS_PROXY", proxy)
    with pytest.raises(RejectedError, match=f"the context 'x' .*: .*{says}") as caught:
        Credentials(kubeconfig(tmp_path / "k", server), "x").load()
    assert "geheim" not in str(caught.value)
