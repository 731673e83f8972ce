"""Real agents: processes that probe from network namespaces and report to the real API over HTTP."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest

from seaway.adapters.privileges import Status, find_account, held_capabilities, read_status
from tests.integration.served import Served, serving
from tests.missing import skip_or_fail

pytestmark = pytest.mark.slow

TIMEOUT_S = 60
SHUTDOWN_S = 6
NETNS = tuple(f"ag{os.getpid() % 10_000}-{end}" for end in "ab")
PORT = 8627


def ip(*arguments: str) -> str:
    """Run `ip`."""
    return subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module", autouse=True)
def _two_namespaces() -> Iterator[None]:
    """Create two network namespaces with a link between them: fd00:51d:1::1 and fd00:51d:1::2."""
    if os.geteuid():
        skip_or_fail(RuntimeError("network namespaces take root"))
    try:
        for namespace in NETNS:
            ip("netns", "add", namespace)
        ip("link", "add", "wan", "netns", NETNS[0], "type", "veth", "peer", "name", "wan", "netns", NETNS[1])
        for number, namespace in enumerate(NETNS, 1):
            ip("-n", namespace, "link", "set", "lo", "up")
            ip("-n", namespace, "link", "set", "wan", "up")
            ip("-n", namespace, "addr", "add", f"fd00:51d:1::{number}/64", "dev", "wan", "nodad")
        yield
    except (OSError, subprocess.CalledProcessError) as error:
        skip_or_fail(error)
    finally:
        for namespace in NETNS:
            subprocess.run(["ip", "netns", "delete", namespace], check=False, capture_output=True)


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """Serve a control plane with a network of three gateways, the third of which does not exist."""
    with serving() as made:
        made.rig.clock.jump(time.time_ns() - made.rig.clock.now_ns())
        asked(made, "PUT", "/network", network())
        yield made


def network(**probe: object) -> dict[str, Any]:
    """Write a network."""
    gateways: list[dict[str, Any]] = [
        {"name": f"gw-{number}", "cluster": f"c-{number}", "address": f"fd00:51d:1::{number}", "probe": probe}
        for number in (1, 2, 3)
    ]
    return {"probe": {"interval": "500ms", "count": 3, "timeout": "100ms"}, "mesh": False, "gateways": gateways}


def asked(served: Served, verb: str, path: str, body: object = None) -> Any:  # noqa: ANN401  # any JSON
    """Send a request to the API as an admin."""
    headers = {"Authorization": f"Bearer {served.rig.tokens['admin']}"}
    answer = httpx.request(verb, f"{served.url}/api/v1{path}", json=body, headers=headers, timeout=30)
    assert answer.is_success, answer.text
    return answer.json() if answer.content else None


def reported(served: Served, gateway: str = "gw-1") -> dict[str, Any]:
    """Return the record of a gateway's agent."""
    found: dict[str, Any] = next(
        each for each in asked(served, "GET", "/network/agents")["agents"] if each["gateway"] == gateway
    )
    return found


def token_file(served: Served, folder: Path, gateway: str) -> Path:
    """Create a token for a gateway's agent, in a file that only root can read."""
    body = {"name": gateway, "role": "agent", "gateway": gateway, "tenant": ""}
    path = folder / f"{gateway}.token"
    for each in asked(served, "GET", "/tokens")["tokens"]:
        if each["name"] == gateway and not each["revoked_at"]:
            asked(served, "DELETE", f"/tokens/{each['id']}")
    path.touch(mode=0o600)
    path.write_text(asked(served, "POST", "/tokens", body)["secret"] + "\n", encoding="ascii")
    return path


def until(done: Callable[[], object]) -> None:
    """Wait until a condition is met."""
    ends_s = time.monotonic() + TIMEOUT_S
    while not done():
        assert time.monotonic() < ends_s, "waited too long"
        time.sleep(0.02)


class Agent:
    """An agent's process."""

    def __init__(self, folder: Path, gateway: str, namespace: str, *arguments: str) -> None:
        self.log = folder / f"{gateway}.log"
        command = [sys.executable, "-m", "seaway", "agent", "--gateway", gateway, "--netns", namespace, *arguments]
        with self.log.open("w") as log, (folder / f"{gateway}.out").open("w") as out:
            environment = {**os.environ, "SEAWAY_AGENT_REFRESH_S": "0.5"}
            environment.pop("SEAWAY_TOKEN", None)
            self.process = subprocess.Popen(command, stdout=out, stderr=log, env=environment)
        self.out = folder / f"{gateway}.out"

    def __enter__(self) -> Agent:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    @property
    def said(self) -> str:
        """Return its log."""
        return self.log.read_text(encoding="utf-8")

    def threads(self) -> list[Status]:
        """The kernel's status of each of its threads."""
        return [read_status(each) for each in Path(f"/proc/{self.process.pid}/task").iterdir()]

    def end(self) -> float:
        """Terminate it; return the duration, seconds."""
        began_s = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(SHUTDOWN_S) == 0, self.said
        return time.monotonic() - began_s


def test_agent_reports_without_privileges_and_stops_cleanly(served: Served, tmp_path: Path) -> None:
    """An agent probes as an unprivileged user, reports correct values, and leaves nothing behind."""
    asked(served, "PUT", "/network", network())
    token = token_file(served, tmp_path, "gw-1")
    with Agent(tmp_path, "gw-1", NETNS[0], "--server", served.url, "--token-file", str(token)) as agent:
        until(lambda: reported(served)["rounds"] >= 2)
        no_one = find_account("nobody")
        threads = agent.threads()
        assert len(threads) >= 3
        for each in threads:
            assert {*each.uids} == {no_one.uid}
            assert {*each.gids} == {no_one.gid}
            assert each.groups == ()
            assert held_capabilities(each) == []
            assert each.capabilities["CapBnd"] == 0
            assert each.no_new_privs
        assert reported(served)["state"] == "reporting"
        assert "no answer from gw-3" in agent.said
        assert agent.end() < SHUTDOWN_S
        assert "ended" in agent.said
    assert subprocess.run(["ip", "netns", "pids", NETNS[0]], check=True, capture_output=True).stdout == b""
    sockets = subprocess.run(
        ["ip", "netns", "exec", NETNS[0], "cat", "/proc/net/raw6"], check=True, capture_output=True
    )
    assert len(sockets.stdout.splitlines()) == 1  # the header


def test_results_of_a_server_outage_arrive_afterwards(tmp_path: Path) -> None:
    """All results arrive in order and once."""
    file, token = tmp_path / "network.yaml", tmp_path / "token"
    file.write_text(json.dumps(network()), encoding="utf-8")
    token.write_text("sw_1_secret", encoding="ascii")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = ("--server", f"http://127.0.0.1:{port}", "--token-file", str(token))
    with Agent(tmp_path, "gw-2", NETNS[1], *server, "-f", str(file), "-o", "json") as agent:
        until(lambda: len(lines(agent)) >= 6)
        with collecting(port) as reports:
            until(lambda: reports)
            before = len(lines(agent))
            until(lambda: len(lines(agent)) > before)
            agent.end()
    rounds = [each for report in reports for each in report["rounds"]]
    assert [*rounds] == [line | {"jitter_ns": line["jitter_ns"] or 0} for line in lines(agent)]
    assert [report["number"] for report in reports] == list(range(1, len(reports) + 1))
    assert len(rounds) >= 6
    assert len(reports) <= 4  # the one in progress, all queued ones, and those after
    assert "cannot be reached" in agent.said
    assert "works again" in agent.said


@contextmanager
def collecting(port: int) -> Iterator[list[dict[str, Any]]]:
    """Run a server that accepts every report and configures no targets."""
    reports: list[dict[str, Any]] = []

    class Taking(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the name in http.server
            self._answer(503)

        def do_POST(self) -> None:  # the name in http.server
            assert self.path == "/api/v1/network/reports"
            reports.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self._answer(204)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

        def _answer(self, status: int) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

    server = ThreadingHTTPServer(("127.0.0.1", port), Taking)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield reports
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_agents_reflect_udp_probes_instead_of_echo(served: Served, tmp_path: Path) -> None:
    """Agents start to reflect datagrams as soon as the network configures UDP probes."""
    asked(served, "PUT", "/network", network(method="udp", port=PORT))
    first_token, other_token = (
        ("--server", served.url, "--token-file", str(token_file(served, tmp_path, gateway)))
        for gateway in ("gw-1", "gw-2")
    )
    with (
        Agent(tmp_path, "gw-1", NETNS[0], *first_token) as first,
        Agent(tmp_path, "gw-2", NETNS[1], *other_token, "-o", "json") as other,
    ):
        until(lambda: any(each["target"] == "gw-1" and each["received"] == 3 for each in lines(other)))
        assert f"sent back from fd00:51d:1::1 port {PORT}" in first.said
        asked(served, "PUT", "/network", network())
        until(lambda: "network version" in first.said.partition("sent back")[2])
        until(lambda: f":{PORT:04X}" not in ip("netns", "exec", NETNS[0], "cat", "/proc/net/udp6"))


def test_agent_stops_when_its_address_changes(served: Served, tmp_path: Path) -> None:
    """An agent with an address from the control plane stops; one with a fixed address continues."""
    reach = ["--server", served.url]
    first, second = (token_file(served, tmp_path, gateway) for gateway in ("gw-1", "gw-2"))
    reported = ("--address", "fd00:51d:1::2")
    with (
        Agent(tmp_path, "gw-1", NETNS[0], *reach, "--token-file", str(first)) as requesting,
        Agent(tmp_path, "gw-2", NETNS[1], *reach, "--token-file", str(second), *reported) as knowing,
    ):
        until(lambda: "targets to probe" in requesting.said and "targets to probe" in knowing.said)
        changed = network()
        changed["gateways"][0]["address"], changed["gateways"][1]["address"] = "fd00:51d:1::8", "fd00:51d:1::9"
        try:
            asked(served, "PUT", "/network", changed)
            assert requesting.process.wait(TIMEOUT_S) == 2, requesting.said
            assert "the gateway's address is now fd00:51d:1::8, and probes come from fd00:51d:1::1" in requesting.said
            until(lambda: "the network has fd00:51d:1::9 for this gateway" in knowing.said)
            time.sleep(1.5)  # the time of three requests
            assert knowing.said.count("the network has") == 1
            knowing.end()
        finally:
            asked(served, "PUT", "/network", network())


def test_two_capabilities_suffice_to_probe_from_a_namespace(tmp_path: Path) -> None:
    """Without root, with the capabilities for sockets and namespaces, the agent probes, and has then dropped them."""
    file = tmp_path / "network.yaml"
    file.write_text(json.dumps(network()), encoding="utf-8")
    both = "+net_raw,+sys_admin"
    who = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        f"--inh-caps={both}",
        f"--ambient-caps={both}",
    ]
    command = [sys.executable, "-m", "seaway", "agent", "--gateway", "gw-1", "--netns", NETNS[0], "-f", "/dev/stdin"]
    with (
        file.open("rb") as given,
        subprocess.Popen([*who, *command, "-o", "json"], stdin=given, stdout=subprocess.PIPE, cwd="/") as agent,
    ):
        try:
            assert agent.stdout
            assert json.loads(agent.stdout.readline())["target"] == "gw-2"
            held = [held_capabilities(read_status(each)) for each in Path(f"/proc/{agent.pid}/task").iterdir()]
            assert len(held) > 2
            assert not any(held)
        finally:
            agent.kill()


def test_agent_stops_quietly_after_two_signals_without_an_address(tmp_path: Path) -> None:
    """It prints no traceback while it waits for its address."""
    token = tmp_path / "token"
    token.write_text("sw_1_secret", encoding="ascii")
    with Agent(tmp_path, "gw-1", NETNS[0], "--server", "http://127.0.0.1:1", "--token-file", str(token)) as agent:
        until(lambda: "asking for the own address" in agent.said)
        agent.process.send_signal(signal.SIGTERM)
        while agent.process.poll() is None:
            agent.process.send_signal(signal.SIGTERM)
            time.sleep(0.002)
        assert agent.process.returncode == 0
        assert len(agent.said.splitlines()) == 1


def test_once_runs_a_single_round(tmp_path: Path) -> None:
    """A round without a server prints a row for each target, and its exit code reports a missing reply."""
    file = tmp_path / "network.yaml"
    file.write_text(json.dumps(network()), encoding="utf-8")
    with Agent(tmp_path, "gw-1", NETNS[0], "-f", str(file), "--once", "-o", "json") as agent:
        assert agent.process.wait(TIMEOUT_S) == 1
        assert [(each["target"], each["received"] > 0) for each in lines(agent)] == [("gw-2", True), ("gw-3", False)]
        assert all(0 < each["latency_ns"] < 100_000_000 for each in lines(agent) if each["received"])


def lines(agent: Agent) -> list[dict[str, Any]]:
    """Return the JSON lines that an agent printed."""
    return [
        json.loads(line) for line in agent.out.read_text(encoding="utf-8").splitlines(keepends=True) if line[-1] == "\n"
    ]
