"""Two processes on one database and one Lease: one leads, and the other takes over when it goes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from seaway.adapters.kubernetes.leadership import LEADER_LABEL
from tests.conformance.test_kubernetes_backends import gpu_node
from tests.fakes.kubernetes import ApiServer
from tests.fakes.kubernetes.exchange import Answer, Request
from tests.fakes.kubernetes.kinds import JOBS, LEASES, PODS
from tests.fakes.kubernetes.kubeconfig import Entry, write_kubeconfig
from tests.missing import skip_or_fail
from tests.servers.databases import SERVERS, Server, free_port
from tests.servers.missing import MissingError

pytestmark = pytest.mark.slow

TIMEOUT_S = 90
LEASE_S, RENEW_S, RETRY_S = 8, 6, 0.4
MAX_WAIT_S = RETRY_S * 2.2
"""Longest pause of a standby between two tries."""

SLACK_S = 3
"""Time for all else until the Lease has another name."""

START_S = 30
"""Time from leading to answering, on two busy cores."""

WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


@dataclass
class Reported:
    """The requests to an API server: time, token, and text."""

    rows: list[tuple[float, str, str, str]] = field(default_factory=list)

    async def __call__(self, request: Request) -> Answer | None:
        """Record a request, and leave it to the server."""
        if request.method in WRITES:
            token = request.headers.get(b"authorization", b"").decode().removeprefix("Bearer ")
            self.rows.append((time.monotonic(), token, request.method, request.path))
        return None

    def writes(self, token: str, after_s: float = 0.0) -> list[str]:
        """Return a user's changes since a time."""
        return [f"{method} {path}" for at_s, who, method, path in self.rows if who == token and at_s > after_s]


@dataclass
class Replica:
    """One `seaway up`."""

    process: subprocess.Popen[str]
    token: str
    """Its token at the API server."""

    data: Path
    url: str

    def get(self, path: str, **more: Any) -> httpx.Response:  # noqa: ANN401  # httpx's
        """Send a GET request."""
        return httpx.get(self.url + path, timeout=5, **more)

    def status(self, path: str) -> int:
        """Return the status code; 0 without an answer."""
        try:
            return self.get(path).status_code
        except httpx.HTTPError:
            return 0

    def end(self, how: signal.Signals) -> str:
        """Send a signal and wait for the end; return the output."""
        self.process.send_signal(how)
        return self.process.communicate(timeout=TIMEOUT_S)[0]


class Pair:
    """Two processes on one database, with one cluster that also has the Lease."""

    def __init__(self, folder: Path, url: str, cluster: ApiServer, reported: Reported, stack: ExitStack) -> None:
        self.folder = folder
        self.cluster = cluster
        self.reported = reported
        self._url = url
        self._stack = stack
        self.client = httpx.Client()

    def start(self, name: str) -> Replica:
        """Start a process that waits for the Lease or has it, in a pod that may have the label of an earlier leader."""
        meta = {"name": name, "namespace": "seaway", "labels": {LEADER_LABEL: "true"}}
        spec = {"schedulerName": "nobody", "containers": [{"name": "seaway", "image": "seaway:1"}]}
        self.cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
        token = self.cluster.new_token()
        clusters = self.folder / name / "clusters"
        clusters.mkdir(parents=True)
        write_kubeconfig(clusters / "alpha", [Entry("alpha", self.cluster.url, token)])
        port = free_port()
        settings = f"""
            [server]
            port = {port}
            [database]
            url = "{self._url}"
            backup_interval_h = 0
            [clusters]
            kubeconfig_dir = "{clusters}"
            [leader]
            lease = "seaway"
            pod = "{name}"
            kubeconfig = "{clusters / "alpha"}"
            lease_duration_s = {LEASE_S}
            renew_deadline_s = {RENEW_S}
            retry_period_s = {RETRY_S}
            """
        (self.folder / name / "seaway.toml").write_text(settings, encoding="utf-8")
        command = [sys.executable, "-m", "seaway", "up", "--config", str(self.folder / name / "seaway.toml")]
        data = self.folder / name / "data"
        environment = {each: value for each, value in os.environ.items() if not each.startswith("SEAWAY_S")}
        process = subprocess.Popen(
            [*command, "--data", str(data)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment,
        )  # fmt: skip
        self._stack.callback(_kill, process)
        return Replica(process, token, data, f"http://127.0.0.1:{port}")

    def sign_in(self, replica: Replica) -> None:
        """Sign in to a replica as the first admin."""
        wait(lambda: replica.status("/readyz") == 200, "it leads", replica)
        if "authorization" not in self.client.headers:
            secret = (replica.data / "admin-token").read_text(encoding="utf-8").strip()
            self.client.headers["authorization"] = f"Bearer {secret}"
        self.client.base_url = httpx.URL(replica.url)

    def submit(self, number: int) -> str:
        """Submit a job."""
        run = {"image": "busybox:1", "command": ["sleep", "inf"]}
        body = {"name": f"job-{number}", "resources": {"gpus": 1, "gpu_memory": "8GB"}, "run": run}
        headers = {"idempotency-key": f"key-{number}"}
        answer = self.client.post("/api/v1/jobs", json=body, headers=headers, timeout=30)
        assert answer.status_code in {200, 201}, answer.text
        return str(answer.json()["id"])

    def job(self, job: str) -> dict[str, Any]:
        """Return a job."""
        found: dict[str, Any] = self.client.get(f"/api/v1/jobs/{job}", timeout=30).json()
        return found

    def all_run(self, jobs: list[str]) -> bool:
        """Report whether jobs run."""
        return all(self.job(each)["state"] == "running" for each in jobs)

    def is_gone(self, job: str) -> bool:
        """Report whether the cluster has no objects of a job."""
        return all(
            each["metadata"]["labels"].get("seaway.io/job") != job
            for kind in (PODS, JOBS)
            for each in self.cluster.list(kind, "seaway-default")
        )

    def events(self, jobs: list[str]) -> list[str]:
        """Return the stored events of jobs."""
        return [self.client.get(f"/api/v1/jobs/{each}/events", timeout=30).text for each in jobs]

    def marked(self, name: str) -> bool:
        """Report whether the pod of a process has the leader's label."""
        return LEADER_LABEL in (self.cluster.get(PODS, "seaway", name) or {})["metadata"]["labels"]

    def leader(self) -> str:
        """Return the holder of the Lease."""
        lease = self.cluster.get(LEASES, "seaway", "seaway") or {"spec": {}}
        return str(lease["spec"].get("holderIdentity") or "")

    def prove(self, jobs: list[str]) -> None:
        """Check that each job runs once, and nothing else does."""
        wait(lambda: self.all_run(jobs), "all jobs run")
        pods = [each for each in self.cluster.list(PODS, "seaway-default") if each["status"].get("phase") == "Running"]
        assert Counter(each["metadata"]["labels"]["seaway.io/job"] for each in pods) == Counter(jobs)
        workloads = Counter(
            each["metadata"]["labels"]["seaway.io/job"] for each in self.cluster.list(JOBS, "seaway-default")
        )
        assert workloads == Counter(jobs)


def wait(what: Callable[[], bool], why: str, replica: Replica | None = None) -> None:
    """Wait until a condition is met."""
    until_s = time.monotonic() + TIMEOUT_S
    while not what():
        if replica and replica.process.poll() is not None:
            pytest.fail(replica.process.communicate()[0])
        assert time.monotonic() < until_s, f"never seen: {why}"
        time.sleep(0.02)


@pytest.fixture(params=sorted(SERVERS))
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pair]:
    """Create a database, a cluster, and folders for two processes."""
    with ExitStack() as stack:
        database = stack.enter_context(_database(request.param))
        cluster = stack.enter_context(ApiServer("alpha"))
        for number in range(2):
            cluster.put(gpu_node(f"node-{number}", 4))
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "seaway"}})
        reported = Reported()
        cluster.app.before.append(reported)
        pair = Pair(tmp_path, database.new_database(), cluster, reported, stack)
        stack.callback(pair.client.close)
        yield pair


@contextmanager
def _database(kind: str) -> Iterator[Server]:
    try:
        server = SERVERS[kind]()
    except MissingError as missing:
        skip_or_fail(missing)
    try:
        yield server
    finally:
        server.remove()


def test_when_the_leader_is_killed_the_other_goes_on(pair: Pair) -> None:
    """The standby logs that it waits; within the Lease's time it leads, and no job is lost or runs twice."""
    first = pair.start("first")
    pair.sign_in(first)
    second = pair.start("second")
    wait(lambda: second.status("/healthz") == 200, "the standby runs", second)
    wait(lambda: "a standby" in second.get("/readyz").text, "the standby says that it waits", second)
    assert pair.leader() not in second.get("/readyz").text, "strangers do not read who leads"
    assert second.get("/readyz").status_code == 503
    wait(lambda: second.status("/standbyz") == 200, "it can take over", second)
    assert pair.marked("second") is False, "what was left on the pod is gone"
    assert pair.marked("first") is True
    assert second.get("/api/v1/jobs").status_code == 503
    jobs = [pair.submit(number) for number in range(12)]
    assert pair.reported.writes(second.token) == ["PATCH /api/v1/namespaces/seaway/pods/second"]

    before = pair.leader()
    killed_s = time.monotonic()
    first.end(signal.SIGKILL)
    wait(lambda: pair.leader() != before, "the other leads", second)
    took_s = time.monotonic() - killed_s
    assert took_s < LEASE_S + MAX_WAIT_S + SLACK_S
    pair.sign_in(second)
    assert second.get("/standbyz").status_code == 200
    wait(lambda: pair.marked("second"), "who leads now is marked", second)
    assert time.monotonic() - killed_s < LEASE_S + MAX_WAIT_S + START_S
    jobs.append(pair.submit(12))
    assert pair.submit(3) == jobs[3], "what was acknowledged by the first is known to the second"
    pair.prove(jobs)

    third = pair.start("third")
    wait(lambda: "a standby" in third.get("/readyz").text if third.status("/healthz") else False, "it waits", third)
    ended_s = time.monotonic()
    said = second.end(signal.SIGTERM)
    assert " s until it became the leader)" in said
    assert second.process.returncode == 0, said
    wait(lambda: bool(pair.leader()), "the Lease that was given back is taken", third)
    assert time.monotonic() - ended_s < LEASE_S + START_S
    pair.sign_in(third)
    pair.prove(jobs)


@pytest.mark.parametrize("pair", ["postgresql"], indirect=True)
def test_a_leader_that_stood_still_writes_nothing_any_more(pair: Pair) -> None:
    """A process stopped for longer than its Lease resumes superseded: it stores and sends nothing, and ends."""
    first = pair.start("first")
    pair.sign_in(first)
    second = pair.start("second")
    jobs = [pair.submit(number) for number in range(4)]
    wait(lambda: pair.all_run(jobs), "all jobs run")
    first.process.send_signal(signal.SIGSTOP)
    pair.sign_in(second)
    gone = jobs.pop()
    assert pair.client.post(f"/api/v1/jobs/{gone}/cancel", timeout=30).status_code < 300
    wait(lambda: pair.is_gone(gone), "what was cancelled is gone")
    jobs.append(pair.submit(9))
    pair.prove(jobs)
    stored = pair.events([*jobs, gone])

    woken_s = time.monotonic()
    first.process.send_signal(signal.SIGCONT)
    said = first.process.communicate(timeout=TIMEOUT_S)[0]
    assert first.process.returncode == 4, said
    assert "Traceback" not in said, said
    assert said.splitlines()[-1].startswith("error: ")
    assert pair.reported.writes(first.token, woken_s) == []
    assert pair.events([*jobs, gone]) == stored
    pair.prove(jobs)


@pytest.mark.parametrize("pair", ["postgresql"], indirect=True)
def test_a_leader_that_cannot_renew_ends_before_anybody_else_may_lead(pair: Pair) -> None:
    """Cut off from the Lease it ends by itself with a message; a standby ends gracefully on a signal."""
    first = pair.start("first")
    pair.sign_in(first)
    second = pair.start("second")
    wait(lambda: "a standby" in second.get("/readyz").text if second.status("/healthz") else False, "it waits", second)
    said = second.end(signal.SIGTERM)
    assert second.process.returncode == 0, said
    assert "Traceback" not in said

    before = json.dumps((pair.cluster.get(LEASES, "seaway", "seaway") or {})["spec"])
    cut_s = time.monotonic()
    fault = pair.cluster.faults.error(403, "*/leases/*")
    said = first.process.communicate(timeout=TIMEOUT_S)[0]
    assert first.process.returncode == 4, said
    assert "the lease was not renewed" in said
    assert time.monotonic() - cut_s < LEASE_S + START_S
    assert (pair.cluster.get(LEASES, "seaway", "seaway") or {})["spec"]["holderIdentity"] in before
    pair.cluster.faults.end(fault)


def _kill(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.communicate()
