"""`seaway up` as a process: start, restart, shutdown, one per data folder."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from seaway.adapters.sqlalchemy.store import open_store
from seaway.bootstrap.cluster_join import join, leave
from tests.fakes.kubernetes import ApiServer
from tests.integration.running import TIMEOUT_S, Running, running

pytestmark = pytest.mark.slow

FIRST_REQUESTS = """
import asyncio
from numba.core.dispatcher import Dispatcher
from seaway.bootstrap.policies import warm_up
warm_up()
from tests.unit.api.rig import JOB, make_rig

loaded = []
compile_before = Dispatcher.compile
Dispatcher.compile = lambda self, signature: (loaded.append(self), compile_before(self, signature))[1]

async def requests(rig):
    async with rig.client() as client:
        for number in range(3):
            job = {**JOB, "name": f"j{number}", "replicas": number + 1}
            assert (await client.post("/api/v1/jobs", json=job)).status_code == 201
            assert (await client.post("/api/v1/jobs?dry_run=true", json=job)).status_code == 200
        rig.step(3)
        assert (await client.get("/api/v1/jobs/j1/explain")).status_code == 200

asyncio.run(requests(make_rig()))
print(len(loaded))
"""
"""Program that prints how many kernels are compiled or loaded after `warm_up`."""


def test_what_was_running_runs_on_after_a_restart(tmp_path: Path) -> None:
    """SIGTERM ends the server gracefully; after a restart it knows its jobs, and its clusters continued."""
    with running(tmp_path) as server:
        job = server.submit()
        server.await_state(job, "running")
        said = server.end()
        assert server.process.returncode == 0
        assert "Traceback" not in said
        assert not (tmp_path / "server.json").exists()
    with running(tmp_path) as server:
        server.await_state(job, "running")
        events = server.client.get(f"/api/v1/jobs/{job}/events").json()["events"]
        assert [each["state"] for each in events] == ["pending", "queued", "scheduled", "deploying", "running"]
        server.end()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_stream_does_not_hold_up_the_end(tmp_path: Path, how: signal.Signals) -> None:
    """Clients that follow events are disconnected when the server ends."""
    with running(tmp_path) as server, server.client.stream("GET", "/api/v1/events") as stream:
        lines = stream.iter_lines()
        job = server.submit()
        assert any(job in line for line in lines)
        begin = time.monotonic()
        server.process.send_signal(how)
        assert server.process.wait(TIMEOUT_S) == 0
        assert time.monotonic() - begin < 10
        stream.close()


def await_text(server: Running, text: str) -> None:
    """Wait until a server has printed a text."""
    until = time.monotonic() + TIMEOUT_S
    while text not in server.said():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_ctrl_c_twice_ends_the_server_with_two_lines(tmp_path: Path) -> None:
    """The second Ctrl-C ends open requests; it causes neither a traceback nor another line or exit code."""
    with running(tmp_path) as server:
        await_text(server, "Stop with Ctrl-C.")
        server.process.send_signal(signal.SIGINT)
        await_text(server, "stopping ...")
        said = server.end(signal.SIGINT)
        assert server.process.returncode == 0
        assert said.splitlines()[-2:] == ["stopping ...", "stopped"]
        assert "Traceback" not in said


def test_the_third_ctrl_c_ends_a_server_that_hangs() -> None:
    """A stop that hangs needs no SIGKILL: the third signal ends the process with a line, and its usual exit code."""
    program = (
        "import os, signal, threading\n"
        "from seaway.cli.serving.stopping import StopSignals\n"
        "with StopSignals() as stop:\n"
        "    stop.begin()\n"
        "    for _ in range(3): os.kill(os.getpid(), signal.SIGINT)\n"
        "    threading.Event().wait()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr.splitlines()) == (
        130,
        ["stopping ...", "stopped at once; what was stored stays"],
    )


@pytest.mark.parametrize(
    ("module", "code", "says"),
    [
        ("seaway.api.app", 130, ["stopped before the start"]),
        ("seaway.adapters.simulated.backends", 0, ["stopping ...", "stopped"]),
        ("seaway.web.mount", 0, ["stopping ...", "stopped"]),
    ],
)
def test_ctrl_c_during_the_start_ends_it_without_a_traceback(
    tmp_path: Path, module: str, code: int, says: list[str]
) -> None:
    """Ctrl-C while modules load ends the process; once components run, they stop first, and the exit code is 0."""
    program = (
        "import os, signal, sys\n"
        "class Interrupts:\n"
        "    def find_spec(name, *_):\n"
        f"        if name == {module!r}: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupts)\n"
        "from seaway.__main__ import main; main()"
    )
    command = [sys.executable, "-c", program, "up", "--port", "0", "--data", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert (done.returncode, done.stderr.splitlines()) == (code, says)
    assert done.stdout.startswith("Starting: loads its modules ...\n")
    assert "listens" not in done.stdout


def names(server: Running) -> list[str]:
    """Return the names of the clusters of a server."""
    return [each["name"] for each in server.client.get("/api/v1/fleet/clusters").json()["clusters"]]


def await_names(server: Running, *wanted: str) -> None:
    """Wait until a server has these clusters."""
    until = time.monotonic() + TIMEOUT_S
    while (now := names(server)) != [*wanted]:
        assert time.monotonic() < until, now
        time.sleep(0.05)


def test_a_first_cluster_is_driven_from_the_next_start_and_nothing_simulated_after_it(tmp_path: Path) -> None:
    """Simulated clusters end at the restart after a real one is added; without the last real one the fleet is empty."""
    data = tmp_path / "data"
    with ApiServer("alpha") as api:
        kubeconfig = api.kubeconfig(tmp_path / "config")
        with running(data) as server:
            assert join(kubeconfig, "", "", data).driven == "simulated"
            time.sleep(1.5)
            assert "alpha" not in names(server)
            server.end()
        with running(data) as server:
            await_names(server, "alpha")
            assert join(kubeconfig, "", "", data, replace=True).driven == "joined"
            leave("alpha", data)
            await_names(server)
            assert "No cluster is joined" not in server.end()
        with running(data) as server:
            assert names(server) == []
            assert "No cluster is joined: seaway cluster join" in server.end()


def test_one_data_folder_has_one_server(tmp_path: Path) -> None:
    """A second server on the same data folder prints an error and ends."""
    with running(tmp_path) as server:
        command = [sys.executable, "-m", "seaway", "up", "--data", str(tmp_path), "--port", "0"]
        second = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        assert second.returncode == 2
        assert "another seaway runs on this data folder" in second.stderr
        server.end()


def test_a_port_that_is_taken_is_reported(tmp_path: Path) -> None:
    """A port in use is one line, with the remedy."""
    with running(tmp_path / "one") as server:
        port = str(server.client.base_url.port)
        command = [sys.executable, "-m", "seaway", "up", "--data", str(tmp_path / "two"), "--port", port]
        second = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        assert second.returncode == 2
        assert "choose another --port" in second.stderr
        assert len(second.stderr.splitlines()) == 1
        server.end()


def test_backups_are_written_while_jobs_run_and_can_be_restored(tmp_path: Path) -> None:
    """A backup of a running server has its data after it is restored elsewhere."""
    backup, data = tmp_path / "seaway.backup", tmp_path / "data"
    with running(data) as server:
        job = server.submit(expected_duration="1s")
        server.await_state(job, "completed")
        _seaway("db", "backup", str(backup), "--data", str(data))
        server.end()
    other = tmp_path / "other"
    _seaway("db", "restore", str(backup), "--data", str(other))
    assert "intact" in _seaway("db", "check", "--data", str(other))
    (other / "admin-token").write_bytes((data / "admin-token").read_bytes())
    with running(other) as server:
        assert server.client.get(f"/api/v1/jobs/{job}").json()["state"] == "completed"
        server.end()


def _seaway(*arguments: str) -> str:
    command = [sys.executable, "-m", "seaway", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_anyone_is_replaced_ends_by_itself(tmp_path: Path) -> None:
    """A server whose database another took over prints one line and ends, with an exit code other than 0."""
    with running(tmp_path) as server:
        store = open_store(f"sqlite:///{tmp_path / 'seaway.db'}")
        store.lead("another")
        store.close()
        answer = server.client.post("/api/v1/cordons", json={"cluster": "cluster-1"})
        assert answer.status_code == 503
        assert server.process.wait(TIMEOUT_S) == 4
        said = server.said()
        assert "Traceback" not in said
        assert said.splitlines()[-1] == "error: another process writes to the database now; this one has to stop"
        server.client.close()


def test_a_certificate_that_is_not_there_is_reported_before_anything_begins(tmp_path: Path) -> None:
    """Files for TLS are checked first; an error is one line, and no data folder is created."""
    data, wrong = tmp_path / "data", tmp_path / "wrong.pem"
    wrong.write_text("no certificate", encoding="ascii")
    command = [sys.executable, "-m", "seaway", "up", "--data", str(data), "--port", "0", "--tls-key", str(wrong)]
    for certificate, says in ((tmp_path / "none.pem", "cannot read"), (wrong, "not a certificate and its key")):
        arguments = [*command, "--tls-certificate", str(certificate)]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1
        assert says in done.stderr
        assert not data.exists()


def test_start_without_compiled_engine_answers_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the engine is compiled, requests get 503 immediately and not an answer after a minute; SIGTERM ends it.

    Browsers get a page that loads itself again.
    """
    monkeypatch.setenv("SEAWAY_CACHE", str(tmp_path / "cache"))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "seaway", "up", "--port", str(port), "--data", str(tmp_path / "data")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            assert process.stdout is not None
            assert any(b"Compiling the engine" in line for line in iter(process.stdout.readline, b""))
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=TIMEOUT_S) as client:
                for path in ("/readyz", "/standbyz", "/api/v1/jobs"):
                    began = time.monotonic()
                    answer = client.get(path)
                    assert time.monotonic() - began < 5
                    assert answer.status_code == 503
                    assert int(answer.headers["retry-after"]) > 0
                    assert "engine is being compiled" in answer.text
                page = client.get("/jobs", headers={"accept": "text/html,*/*;q=0.8"})
                assert page.status_code == 503
                assert "Seaway is starting" in page.text
                assert "engine is being compiled" in page.text
                assert client.get("/healthz").status_code == 200
            process.send_signal(signal.SIGTERM)
            assert process.wait(10) == 0
        finally:
            process.kill()


def test_first_requests_compile_nothing() -> None:
    """A server has loaded all kernels for submits, dry runs and explanations before it is ready."""
    said = subprocess.run([sys.executable, "-c", FIRST_REQUESTS], capture_output=True, check=True, text=True)
    assert said.stdout == "0\n"
