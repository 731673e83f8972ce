"""Behaviour for users while a dependency of Seaway is down, and afterwards."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.integration.running import TIMEOUT_S, Running, running
from tests.missing import skip_or_fail
from tests.servers.databases import SERVERS
from tests.servers.missing import MissingError

pytestmark = pytest.mark.slow

AWAY_S = 6
DATABASE_AWAY_S = 30
ROOM_BYTES = 1_000_000
"""Size of a small disk."""


def await_answer(server: Running, wanted: Callable[[httpx.Response], bool]) -> httpx.Response:
    """Submit until an answer is as wanted."""
    until = time.monotonic() + TIMEOUT_S
    while True:
        body = {"name": "job", "resources": {"gpus": 1, "gpu_memory": "8GB"}, "expected_duration": "1s"}
        answer = server.client.post("/api/v1/jobs", json=body)
        if wanted(answer):
            return answer
        assert time.monotonic() < until, answer.text
        time.sleep(0.05)


@pytest.fixture(scope="module")
def outages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[None]]]:
    """Run outages of all kinds of databases in parallel, each on a server of its own."""
    with ThreadPoolExecutor(len(SERVERS)) as pool:
        yield {kind: pool.submit(outlast, kind, tmp_path_factory.mktemp(kind)) for kind in SERVERS}


@pytest.mark.parametrize("kind", sorted(SERVERS))
def test_a_database_that_is_away_is_reported_and_waited_for(kind: str, outages: dict[str, Future[None]]) -> None:
    """While the database is down requests get 503 with Retry-After; running jobs continue, accepted ones end."""
    outages[kind].result()


def outlast(kind: str, folder: Path) -> None:
    """Stop a database under a server, and start it again."""
    try:
        database = SERVERS[kind]()
    except MissingError as missing:
        skip_or_fail(missing)
    try:
        with running(folder, "--database", database.new_database()) as server:
            before = server.submit(expected_duration="1s")
            long = server.submit()
            server.await_state(long, "running")
            database.stop()
            gone = await_answer(server, lambda answer: answer.status_code != 201)
            assert gone.status_code == 503
            assert int(gone.headers["retry-after"]) > 0
            assert gone.headers["content-type"].startswith("application/problem+json")
            assert server.client.get(f"/api/v1/jobs/{long}").status_code == 503
            assert server.client.get("/healthz").status_code == 200
            back_s = time.monotonic() + DATABASE_AWAY_S
            while time.monotonic() < back_s:
                assert server.client.get("/api/v1/jobs").status_code == 503
                time.sleep(1)
            assert server.process.poll() is None
            database.start()
            after = await_answer(server, lambda answer: answer.status_code == 201).json()["id"]
            for job in (before, after):
                server.await_state(job, "completed")
            assert server.client.get(f"/api/v1/jobs/{long}").json()["state"] == "running"
            server.end()
    finally:
        database.remove()


def test_a_full_disk_is_reported_and_work_goes_on_when_there_is_room(tmp_path: Path) -> None:
    """On a full disk submits get 503, nothing is stored partially, and with room again all accepted jobs end."""
    with running(tmp_path) as server:
        first = server.submit(expected_duration="1s")
        server.await_state(first, "completed")
        used = max(path.stat().st_size for path in tmp_path.glob("seaway.db*"))
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (used + ROOM_BYTES, resource.RLIM_INFINITY))
        accepted: list[str] = []
        until = time.monotonic() + TIMEOUT_S
        while (answer := server.client.post("/api/v1/jobs", json=_large(len(accepted)))).status_code == 201:
            accepted.append(answer.json()["id"])
            assert time.monotonic() < until
        assert answer.status_code == 503, answer.text
        assert int(answer.headers["retry-after"]) > 0
        assert server.process.poll() is None
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        await_answer(server, lambda again: again.status_code == 201)
        for job in accepted:
            server.await_state(job, "completed")
        server.end()
    check = [sys.executable, "-m", "seaway", "db", "check", "--data", str(tmp_path)]
    assert subprocess.run(check, check=False, capture_output=True, timeout=TIMEOUT_S).returncode == 0


def test_a_server_that_stood_still_goes_on(tmp_path: Path) -> None:
    """A process that was stopped for a while, as when a machine sleeps, moves no job for that."""
    with running(tmp_path) as server:
        job = server.submit()
        server.await_state(job, "running")
        server.process.send_signal(signal.SIGSTOP)
        time.sleep(AWAY_S)
        server.process.send_signal(signal.SIGCONT)
        after = server.submit(expected_duration="1s")
        server.await_state(after, "completed")
        assert server.client.get(f"/api/v1/jobs/{job}").json()["attempt"] == 1
        server.end()


def _large(number: int) -> dict[str, object]:
    """Return a job that uses some room in the database."""
    environment = {f"variable-{each}".upper().replace("-", "_"): f"{number}" * 50 for each in range(50)}
    return {
        "name": "large",
        "expected_duration": "0s",
        "resources": {"cpu": 1},
        "run": {"image": "registry.example/job:1", "env": environment},
    }
