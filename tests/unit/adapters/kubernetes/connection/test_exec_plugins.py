"""Credential programs: their input, their output, and their end."""

from __future__ import annotations

import base64
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from seaway.adapters.kubernetes.connection.exec_plugins import ExecCredential, ExecPlugins
from seaway.domain.errors import RejectedError
from tests.unit.adapters.kubernetes.connection.processes import runs

V1 = "client.authentication.k8s.io/v1"
BETA = "client.authentication.k8s.io/v1beta1"


def program(folder: Path, text: str, version: str = V1, **more: Any) -> dict[str, Any]:  # noqa: ANN401  # of an exec
    """Write a program; return its entry in a kubeconfig."""
    file = folder / "plugin"
    file.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return {"apiVersion": version, "command": "./plugin", **more}


def say(version: str = V1, **status: str) -> str:
    """Return a shell command that prints the output of credential plugins."""
    return f"cat <<'EOF'\n{json.dumps({'apiVersion': version, 'kind': 'ExecCredential', 'status': status})}\nEOF"


@pytest.mark.parametrize("version", [V1, BETA])
def test_a_program_is_reported_who_requests_and_of_the_cluster_if_it_wants_to_know(
    tmp_path: Path, version: str
) -> None:
    """It runs in the kubeconfig's folder with its arguments and variables, without a terminal; files come as data."""
    (tmp_path / "ca.crt").write_bytes(b"some authority")
    text = f'echo "$KUBERNETES_EXEC_INFO" > info; echo "$@ $REGION" > rest; cat > stdin; {say(version, token="t")}'
    cluster = {
        "server": "https://a:6443",
        "certificate-authority": "ca.crt",
        "tls-server-name": "b",
        "extensions": [{"name": "other"}, {"name": "client.authentication.k8s.io/exec", "extension": {"arn": "x"}}],
    }
    wanted = program(tmp_path, text, version, args=["get", 1], env=[{"name": "REGION", "value": "eu"}])
    assert ExecPlugins().run(wanted, cluster, tmp_path) == ExecCredential("t", "", "", None)
    spec: dict[str, Any] = {"interactive": False}
    assert json.loads((tmp_path / "info").read_bytes()) == {
        "apiVersion": version,
        "kind": "ExecCredential",
        "spec": spec,
    }
    assert (tmp_path / "rest").read_text(encoding="utf-8") == "get 1 eu\n"
    assert (tmp_path / "stdin").read_bytes() == b""
    ExecPlugins().run(wanted | {"provideClusterInfo": True}, cluster, tmp_path)
    spec["cluster"] = {
        "server": "https://a:6443",
        "tls-server-name": "b",
        "certificate-authority-data": base64.b64encode(b"some authority").decode(),
        "config": {"arn": "x"},
    }
    assert json.loads((tmp_path / "info").read_bytes())["spec"] == spec


def test_what_a_program_says_is_taken_as_if_the_kubeconfig_said_it(tmp_path: Path) -> None:
    """A token, a certificate with its key, or both are used until their expiry; fractions of seconds are accepted."""
    both = say(
        token="t", clientCertificateData="C", clientKeyData="K", expirationTimestamp="2026-11-22T05:00:00.123456789Z"
    )
    given = ExecPlugins().run(program(tmp_path, both), {}, tmp_path)
    assert given == ExecCredential("t", "C", "K", datetime(2026, 11, 22, 5, 0, 0, 123456, UTC))
    assert given.user == {"token": "t", "client-certificate-data": "Qw==", "client-key-data": "Sw=="}


@pytest.mark.parametrize(
    ("text", "more", "says"),
    [
        ("echo log in first >&2; exit 3", {}, "ended with 3: log in first"),
        ("exit 1", {}, "ended with 1$"),
        ("kill -9 $$", {}, "was ended: Killed"),
        ("echo hello", {}, "is not JSON"),
        ("echo '[]'", {}, "is not an ExecCredential"),
        (say(BETA, token="t"), {}, "speaks 'client.authentication.k8s.io/v1beta1'"),
        (say(), {}, "neither token nor certificate"),
        (say(clientCertificateData="C"), {}, "a certificate without its key"),
        (say(token="t", expirationTimestamp="soon"), {}, "until 'soon', which is not a time"),
        (
            "",
            {"command": "none-such", "installHint": "install\n  it"},
            "'none-such' cannot be run: No such .*; install it",
        ),
        ("", {"command": ""}, "names no command"),
        ("", {"apiVersion": "client.authentication.k8s.io/v1alpha1"}, "its apiVersion is .*v1alpha1"),
        ("", {"interactiveMode": "Always"}, "needs a terminal"),
        ("", {"args": "get"}, "args are not a list"),
        ("", {"env": ["REGION"]}, "env is not a list"),
    ],
)
def test_what_will_not_do_is_reported(text: str, more: dict[str, Any], says: str, tmp_path: Path) -> None:
    """The error has the program's own message, or the install hint of the kubeconfig."""
    with pytest.raises(RejectedError, match=says):
        ExecPlugins().run(program(tmp_path, text) | more, {}, tmp_path)


def begun(file: Path) -> int:
    """Wait for a process that writes its number."""
    until_s = time.monotonic() + 20
    while not (file.exists() and file.read_bytes().endswith(b"\n")):
        assert time.monotonic() < until_s, "it runs"
        time.sleep(0.02)
    return int(file.read_bytes())


def is_over(pid: int) -> bool:
    """Report whether a process ends within some seconds."""
    until_s = time.monotonic() + 10
    while runs(pid) and time.monotonic() < until_s:
        time.sleep(0.02)
    return not runs(pid)


def test_what_is_ended_leaves_nothing_behind(tmp_path: Path) -> None:
    """Child processes end with the program, and waiting callers get an error immediately."""
    programs, said = ExecPlugins(), []

    def run() -> None:
        with pytest.raises(RejectedError, match="was ended") as caught:
            programs.run(program(tmp_path, "sleep 60 & echo $! > began; wait"), {}, tmp_path)
        said.append(str(caught.value))

    waiting = threading.Thread(target=run)
    waiting.start()
    child = begun(tmp_path / "began")
    programs.end()
    waiting.join(10)
    assert len(said) == 1
    assert is_over(child)


@pytest.mark.parametrize("where", ["", ">&2"])
def test_a_program_that_prints_without_end_is_ended(where: str, tmp_path: Path) -> None:
    """Its output is limited; its child processes end with it."""
    text = f"sleep 60 & echo $! > began; while :; do echo more and more and more {where}; done"
    with pytest.raises(RejectedError, match=r"'\./plugin' prints more than 1 MiB"):
        ExecPlugins().run(program(tmp_path, text), {}, tmp_path)
    assert is_over(begun(tmp_path / "began"))


def test_a_program_may_print_much_to_both_ends(tmp_path: Path) -> None:
    """A program with long warnings is read like any other: neither of its pipes blocks it."""
    text = f"head -c 900000 /dev/zero >&2; head -c 900000 /dev/zero | tr '\\0' ' '; {say(token='t')}"
    assert ExecPlugins().run(program(tmp_path, text), {}, tmp_path).token == "t"


def test_who_left_a_programs_group_is_not_listened_to_when_that_is_ended(tmp_path: Path) -> None:
    """No caller waits for a process outside its group, which cannot be ended with it."""
    leaves = "import os, time; os.setsid(); print(os.getpid(), file=open('began', 'w'), flush=True); time.sleep(60)"
    programs = ExecPlugins()
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(programs.run, program(tmp_path, f'"{sys.executable}" -c "{leaves}" & wait'), {}, tmp_path)
        child = begun(tmp_path / "began")
        programs.end()
        try:
            with pytest.raises(RejectedError, match="was ended"):
                waiting.result(10)
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_program_that_hangs_does_not_outlive_seaway(tmp_path: Path) -> None:
    """It ends with this process, even if a caller still waits for it."""
    wanted = program(tmp_path, "sleep 60 & echo $! > began; wait")
    code = f"""if True:
        import threading, time
        from pathlib import Path
        from seaway.adapters.kubernetes.connection.exec_plugins import ExecPlugins
        programs, folder = ExecPlugins(), Path({str(tmp_path)!r})
        threading.Thread(target=programs.run, args=({wanted!r}, {{}}, folder), daemon=True).start()
        while not (folder / "began").exists():
            time.sleep(0.02)
    """
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    assert is_over(begun(tmp_path / "began"))
