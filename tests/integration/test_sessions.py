"""Sessions with containers of running jobs, from the command line to API servers in memory."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import sys
import tarfile
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from threading import Event, Thread
from typing import Any

import httpx
import pytest

from seaway.api import sessions
from seaway.api.app import make_app
from seaway.api.http.server import make_server
from seaway.application.records import AuditEntry, Role
from seaway.bootstrap.policies import warm_up
from seaway.bootstrap.settings import ServerSettings
from seaway.cli.jobs.copy import Remote
from seaway.client.calls.jobs import exec_session
from seaway.client.config import Target
from seaway.client.sessions import Channel, Outcome, open_session
from seaway.domain.errors import ConflictError, ForbiddenError, RejectedError, UnavailableError, UnknownError
from seaway.domain.job_state import JobState
from seaway.domain.tenancy import Tenant
from seaway.web.session import open_session as page_session
from tests.fakes.kubernetes import ApiServer
from tests.fakes.kubernetes.containers import V4
from tests.fakes.kubernetes.kinds import PODS
from tests.integration.test_cluster_faults import PATIENT, World
from tests.integration.walks import commands_of

pytestmark = pytest.mark.slow

TIMEOUT_S = 60


@dataclass
class Place:
    """A server over one cluster with a running job of two replicas, and tokens by role."""

    world: World
    url: str
    job: str
    tokens: dict[str, str]

    @property
    def member(self) -> ApiServer:
        """The cluster."""
        return self.world.members["alpha"]

    def start(self, *arguments: str, token: str = "user") -> subprocess.Popen[bytes]:
        """Start a command."""
        environment = {**os.environ, "SEAWAY_SERVER": self.url, "SEAWAY_TOKEN": self.tokens[token]}
        command = [sys.executable, "-m", "seaway", *arguments]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, start_new_session=True)

    def run(self, *arguments: str, stdin: bytes = b"", token: str = "user") -> tuple[int, bytes, str]:
        """Run a command; return its exit code, output and errors."""
        process = self.start(*arguments, token=token)
        out, err = process.communicate(stdin, TIMEOUT_S)
        return process.returncode, out, err.decode()

    def exec(  # options of a session
        self,
        *command: str,
        job: str = "",
        token: str = "user",
        **options: Any,  # noqa: ANN401
    ) -> tuple[Outcome, bytes]:
        """Run a command by the client; return its outcome and output."""
        call = exec_session(job or self.job, command, **options)

        async def run() -> tuple[Outcome, bytes]:
            out = b""
            async with open_session(Target(self.url, self.tokens[token]), call) as session:
                while frame := await session.receive():
                    if frame[0] == Channel.STATUS:
                        return Outcome.of(frame), out
                    out += frame[1:]
            raise AssertionError("the session has no outcome")

        return asyncio.run(run())

    def metrics(self) -> str:
        """Return the metrics of the server."""
        headers = {"authorization": f"Bearer {self.tokens['monitor']}"}
        return httpx.get(f"{self.url}/metrics", headers=headers, timeout=TIMEOUT_S).text

    def audited(self, operation: str) -> list[AuditEntry]:
        """Return the audit entries of an operation."""
        return [each for each in self.world.store.audit(0, 1000)[::-1] if each.verb.endswith(f" {operation}")]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Serve a control plane with one cluster, in which a job runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("seaway.api.hub.HEARTBEAT_S", 0.5)
        yield from _places(tmp_path_factory)


def _places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    warm_up()
    world = World(tmp_path_factory.mktemp("world"), karmada=False, names=("alpha",), options=PATIENT)
    server = make_server(make_app(world.plane), ServerSettings())
    listener = socket.create_server(("127.0.0.1", 0))
    thread = Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        job = world.submit(replicas=2)
        world.wait(lambda: world.state(job) is JobState.RUNNING, "the job runs")
        tokens = {
            role.value: world.plane.access.create(role.value, role, "default", None, "test")[1]
            for role in (Role.VIEWER, Role.USER)
        }
        tokens["monitor"] = world.plane.access.create("monitor", Role.MONITOR, "", None, "test")[1]
        world.plane.operations.put_tenant(Tenant("other"), "test")
        tokens["other"] = world.plane.access.create("other", Role.USER, "other", None, "test")[1]
        yield Place(world, f"http://127.0.0.1:{listener.getsockname()[1]}", job, tokens)
    finally:
        server.should_exit = True
        thread.join(TIMEOUT_S)
        listener.close()
        world.close()


def until(holds: Callable[[], bool]) -> None:
    """Wait for a condition."""
    ends = time.monotonic() + TIMEOUT_S
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_a_command_runs_in_the_chosen_replica_and_its_exit_code_is_that_of_exec(place: Place) -> None:
    """Output and errors stay apart, and the audit log has who ran what, when it began and how it ended."""
    script = "echo out; echo err >&2; exit 7"
    code, out, err = place.run("exec", place.job, "--replica", "1", "--", "sh", "-c", script)
    assert (code, out, err) == (7, b"out\n", "err\n")
    begin, end = place.audited("exec_job")[-2:]
    assert (begin.verb, begin.status, begin.actor) == ("GET exec_job", 101, "user")
    assert begin.target == f"/api/v1/jobs/{place.job} --replica 1 -- sh -c '{script}'"
    assert end.verb == "END exec_job"
    assert end.target.startswith("exit code 7 after ")
    assert end.target.endswith(begin.target)


def test_a_client_that_leaves_at_the_outcome_does_not_replace_it(place: Place) -> None:
    """A page ends its session as soon as it has the outcome. The audit log has the exit code nevertheless."""
    call = exec_session(place.job, ("sh", "-c", "exit 9"))

    async def run() -> None:
        async with page_session(make_app(place.world.plane), call, place.tokens["user"], "") as session:
            while frame := await session.receive():
                if frame[0] == Channel.STATUS:
                    return

    asyncio.run(run())
    assert place.audited("exec_job")[-1].target.startswith("exit code 9 after ")


def test_input_and_output_of_any_size_pass_without_a_loss(place: Place) -> None:
    """Piped input arrives whole, and its end ends the command."""
    data = os.urandom(8 << 20)
    code, out, err = place.run("exec", place.job, "-i", "--", "cat", stdin=data)
    assert (code, err) == (0, "")
    assert out == data


def test_a_command_without_input_sees_its_end_at_once(place: Place) -> None:
    """Without --stdin, a command does not read the input of a script around it."""
    assert place.run("exec", place.job, "--", "cat", stdin=b"rest of a script")[:2] == (0, b"")


def test_old_servers_run_commands_and_refuse_only_the_end_of_input(place: Place) -> None:
    """Servers before Kubernetes 1.30 have no message for it, so the session ends with the reason."""
    containers = place.member.containers
    before, containers.protocols = containers.protocols, [V4]
    try:
        assert place.exec("echo", "hi") == (Outcome(0), b"hi\n")
        code, _, err = place.run("exec", place.job, "-i", "--", "cat", stdin=b"x")
        assert (code, err) == (4, "error: alpha cannot signal the end of input; Kubernetes 1.30 and newer can\n")
    finally:
        containers.protocols = before


def test_a_terminal_has_the_size_of_the_users_and_takes_every_key(place: Place) -> None:
    """Ctrl-C interrupts the command in the container, not the client, and a new size arrives."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 101, 0, 0))
    environment = {**os.environ, "SEAWAY_SERVER": place.url, "SEAWAY_TOKEN": place.tokens["user"]}
    command = [sys.executable, "-m", "seaway", "exec", place.job, "--", "sh"]
    process = subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, env=environment)
    os.close(follower)
    seen = b""

    def see(text: bytes) -> None:
        nonlocal seen
        while text not in seen:
            assert select.select([leader], [], [], TIMEOUT_S)[0], seen
            seen += os.read(leader, 4096)
        seen = seen.partition(text)[2]

    see(b" ")  # the prompt
    os.write(leader, b"stty size\n")
    see(b"33 101")
    os.write(leader, b"echo be''gun; sleep 1000\n")
    see(b"begun")
    os.write(leader, b"\x03")
    fcntl.ioctl(leader, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 60, 0, 0))
    process.send_signal(signal.SIGWINCH)
    os.write(leader, b"while [ \"$(stty size)\" != '20 60' ]; do sleep 0.05; done; echo resi''zed; exit 3\n")
    see(b"resized")
    assert process.wait(TIMEOUT_S) == 3
    os.close(leader)


@pytest.mark.parametrize(
    ("token", "options", "error", "message"),
    [
        ("viewer", {}, ForbiddenError, "requires the role user"),
        ("other", {}, UnknownError, "not found"),
        ("user", {"replica": 2}, ConflictError, "the job has replicas 0 to 1, not 2"),
        ("user", {"container": "proxy"}, RejectedError, "container 'proxy' not found; available: main"),
    ],
    ids=["read-only role", "other tenant", "replica", "container"],
)
def test_refusals_come_before_the_session_and_are_audited(
    place: Place, token: str, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    """Only users of the job's tenant may enter a container, and a wrong choice is named."""
    before = len(place.audited("exec_job"))
    with pytest.raises(error, match=message):
        place.exec("id", token=token, **options)
    until(lambda: len(place.audited("exec_job")) > before)
    entry = place.audited("exec_job")[-1]
    assert entry.actor == token
    assert entry.status >= 400


def test_a_plain_request_gets_a_status_that_asks_for_a_web_socket(place: Place) -> None:
    """Clients that do not speak the protocol get a status with a meaning."""
    headers = {"authorization": f"Bearer {place.tokens['user']}"}
    answer = httpx.get(f"{place.url}/api/v1/jobs/{place.job}/exec", headers=headers)
    assert (answer.status_code, answer.headers["upgrade"]) == (426, "websocket")


def test_the_process_ends_with_its_client(place: Place) -> None:
    """Ctrl-C ends the client, and the connection to the container with it."""
    process = place.start("exec", place.job, "--", "sh", "-c", "echo $$; sleep 1000")
    assert process.stdout is not None
    number = int(process.stdout.readline())
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130
    until(lambda: not Path(f"/proc/{number}").exists())
    until(lambda: place.audited("exec_job")[-1].target.startswith("the client left"))


def test_a_session_ends_with_its_job(place: Place) -> None:
    """The client learns how its command ended, or what became of the job."""
    world = place.world
    job = world.submit()
    world.wait(lambda: world.state(job) is JobState.RUNNING, "it runs")
    process = place.start("exec", job, "--", "sh", "-c", "echo begun; sleep 1000")
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    world.plane.jobs.cancel(job, "ada")
    process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 137
    with pytest.raises(ConflictError, match="the job is cancelled; only a running job has containers"):
        place.exec("id", job=job)


def test_a_session_renews_the_lease_of_its_job(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job with a lease is not given back while someone works in it."""
    monkeypatch.setattr("seaway.application.jobs.MIN_RENEWAL_NS", 0)
    world = place.world
    job = world.submit(lease_s=3600)
    world.wait(lambda: world.state(job) is JobState.RUNNING, "it runs")

    def expires_ns() -> int:
        stored = world.store.job(job)
        assert stored is not None
        assert stored.expires_ns is not None
        return stored.expires_ns

    before_ns = expires_ns()
    assert place.exec("true", job=job)[0].exit_code == 0
    until(lambda: expires_ns() > before_ns)
    world.plane.jobs.cancel(job, "ada")


def test_a_token_has_a_limited_number_of_sessions(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """One user cannot take all connections to clusters; a session that ends makes room."""
    monkeypatch.setattr(sessions, "MAX_PER_CALLER", 2)
    with ExitStack() as stack:
        for _ in range(2):
            process = place.start("exec", place.job, "--", "sh", "-c", "echo begun; sleep 1000")
            stack.callback(process.communicate)
            stack.callback(process.kill)
            assert process.stdout is not None
            assert process.stdout.readline() == b"begun\n"
        with pytest.raises(UnavailableError, match="your token has 2 open sessions"):
            place.exec("id")
        assert 'seaway_sessions{kind="exec"} 2.0' in place.metrics()

    def again() -> bool:
        try:
            return place.exec("echo", "hi") == (Outcome(0), b"hi\n")
        except UnavailableError:
            return False

    until(again)
    until(lambda: 'seaway_sessions{kind="exec"} 0.0' in place.metrics())


def test_an_idle_session_ends_with_the_reason(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A forgotten session holds no connection for ever."""
    monkeypatch.setattr(sessions, "IDLE_S", 0.0)
    outcome, _ = place.exec("sleep", "1000")
    assert outcome == Outcome(None, "the session was idle for 0 minutes")


def test_attach_shows_the_output_of_the_main_process_and_sends_input(place: Place) -> None:
    """Input goes to the main process only if it is asked for."""
    place.member.containers.main = ["sh", "-c", "echo ready; cat"]
    assert place.run("attach", place.job, "-i", stdin=b"typed\n") == (0, b"ready\ntyped\n", "")
    assert place.run("attach", place.job, stdin=b"typed\n") == (0, b"ready\n", "")
    assert place.audited("attach_job")[-1].target.startswith("exit code 0 after ")


def serve_echo() -> socket.socket:
    """Answer each connection with what it sends, in capitals, until it sends a line."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer(client: socket.socket) -> None:
        with client, client.makefile("rwb") as file:
            file.write(file.readline().upper())

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            Thread(target=answer, args=(client,), daemon=True).start()

    Thread(target=accept, daemon=True).start()
    return listener


def test_a_forwarded_port_carries_each_connection_on_its_own(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections do not mix, large data arrives whole, and a closed port is reported.

    The audit log has one entry for all connections, and one with their number after the last one.
    """
    with serve_echo() as listener:
        port = listener.getsockname()[1]
        process = place.start("port-forward", place.job, f":{port}")
        assert process.stderr is not None
        line = process.stderr.readline().decode()
        assert line.startswith("forwarding 127.0.0.1:")
        local = int(line.split()[1].rpartition(":")[2])
        large = b"y" * (1 << 20)
        with (
            socket.create_connection(("127.0.0.1", local), TIMEOUT_S) as one,
            socket.create_connection(("127.0.0.1", local), TIMEOUT_S) as other,
            one.makefile("rb") as answer_one,
            other.makefile("rb") as answer_other,
        ):
            one.sendall(b"x")
            other.sendall(large + b"\n")
            one.sendall(b"z\n")
            assert answer_one.read() == b"XZ\n"
            assert answer_other.read() == large.upper() + b"\n"
        assert [each.verb for each in place.audited("forward_port")] == ["GET forward_port"]
        monkeypatch.setattr("seaway.api.sessions.LINGER_S", 0.0)
        listener.shutdown(socket.SHUT_RDWR)  # ends the call of another thread
    with socket.create_connection(("127.0.0.1", local), TIMEOUT_S) as refused:
        assert refused.recv(1) == b""
    assert f"error forwarding port {port} to pod: Connection refused" in process.stderr.readline().decode()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0
    until(lambda: "END forward_port" in {each.verb for each in place.audited("forward_port")})
    ends = [each for each in place.audited("forward_port") if each.verb.startswith("END ")]
    assert sum(int(each.target.split()[0]) for each in ends) == 3
    assert ends[-1].target.endswith(f" --port {port}")


def test_files_and_folders_are_copied_in_both_directions(place: Place, tmp_path: Path) -> None:
    """As in cp: into a folder that exists, else under the new name; content, modes and links stay."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    (outside / "data" / "deep").mkdir(parents=True)
    inside.mkdir()
    content = os.urandom(3 << 20)
    (outside / "data" / "deep" / "model.pt").write_bytes(content)
    script = outside / "data" / "run.sh"
    script.write_text("#!/bin/sh\n", encoding="utf-8")
    script.chmod(0o755)
    (outside / "data" / "link").symlink_to("run.sh")
    place.member.containers.folder = inside
    assert place.run("cp", str(outside / "data"), f"{place.job}:.")[0] == 0
    assert place.run("cp", str(outside / "data"), f"{place.job}:copy")[0] == 0
    for name in ("data", "copy"):
        assert (inside / name / "deep" / "model.pt").read_bytes() == content
        assert (inside / name / "run.sh").stat().st_mode & 0o111
    code, _, err = place.run("cp", f"{place.job}:copy", str(outside))
    assert (code, err) == (0, f"copied 3 files to {outside}/copy\n")
    assert (outside / "copy" / "deep" / "model.pt").read_bytes() == content
    assert (outside / "copy" / "link").readlink() == Path("run.sh")
    code, _, err = place.run("cp", f"{place.job}:missing", str(outside))
    assert code == 2
    assert "missing: Cannot stat: No such file or directory" in err
    place.member.containers.folder = None


def test_a_container_cannot_write_outside_of_the_destination(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container may send any archive, and its paths and links stay within what was requested."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    fake = inside / "tar"
    monkeypatch.setenv("PATH", f"{inside}:{os.environ['PATH']}")
    place.member.containers.folder = inside
    for name, linkname in (("../evil", ""), ("other/evil", ""), ("data/link", "../../evil")):
        with tarfile.open(inside / "sent", "w") as archive:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = (tarfile.SYMTYPE, linkname) if linkname else (tarfile.REGTYPE, "")
            archive.addfile(member)
        fake.write_text(f"#!/bin/sh\nexec cat {inside}/sent\n", encoding="utf-8")
        fake.chmod(0o755)
        remote = Remote(Target(place.url, place.tokens["user"]), place.job, 0, "")
        with pytest.raises(RejectedError, match="the container sent"):
            asyncio.run(remote.download(PurePosixPath("data"), outside))
    assert not list(tmp_path.rglob("evil"))
    place.member.containers.folder = None


SERVER = """\
import os, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

options = dict(each.split("=") for each in sys.argv if "=" in each) | dict(zip(sys.argv, sys.argv[1:]))

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        token = os.environ.get("JUPYTER_TOKEN") or os.environ["VLLM_API_KEY"]
        known = self.path == f"/lab?token={token}" or self.headers["Authorization"] == f"Bearer {token}"
        self.send_response(200 if known else 403)
        self.end_headers()
        self.wfile.write(" ".join(sys.argv[1:]).encode())

HTTPServer(("127.0.0.1", int(options["--port"])), Handler).serve_forever()
"""
"""Web server that requires the token of its environment."""

PATCHED = """\
from dataclasses import replace
from seaway.cli.jobs import notebook
from seaway.cli.main import main
notebook.NOTEBOOK = replace(notebook.NOTEBOOK, port={0})
notebook.SERVE = replace(notebook.SERVE, port={1})
notebook.SERVE.fields["run"]["ports"] = [{1}]
main()
"""
"""The command line with free ports, because containers of the tests share the ports of this machine."""


@dataclass
class Shell:
    """A terminal beside a cluster that runs the main processes of new pods, in a folder with their programs."""

    place: Place
    folder: Path
    environment: dict[str, str]
    started: dict[str, subprocess.Popen[bytes]]

    def start(self, command: str) -> subprocess.Popen[str]:
        """Start a shell command."""
        pipe = subprocess.PIPE
        return subprocess.Popen(
            ["bash", "-c", f"exec {command}"], stdout=pipe, stderr=pipe, env=self.environment, text=True
        )

    def run(self, command: str) -> str:
        """Run a shell command, and return its output and errors."""
        process = self.start(command)
        out, err = process.communicate(timeout=3 * TIMEOUT_S)
        assert process.returncode == 0, f"{command}: {out}{err}"
        return out + err

    def run_pods(self, over: Event) -> None:
        """Start the main process of each new pod, and stop those of former ones."""
        while not over.wait(0.05):
            pods = {each["metadata"]["uid"]: each for each in self.place.member.list(PODS, "seaway-default")}
            for uid, pod in pods.items():
                command = pod["spec"]["containers"][0].get("command") or []
                if command[:2] == ["sh", "-c"] and uid not in self.started:
                    self.started[uid] = subprocess.Popen(command, env=self.environment, start_new_session=True)
            for uid in self.started.keys() - pods.keys():
                self.started[uid].kill()


@pytest.fixture
def shell(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    """Return a terminal of a user."""
    ports = []
    for _ in range(2):
        with socket.create_server(("127.0.0.1", 0)) as free:
            ports.append(free.getsockname()[1])
    programs = {"jupyter-lab": SERVER, "vllm": SERVER, "seaway": PATCHED.format(*ports)}
    for name, program in programs.items():
        (tmp_path / name).write_text(f"#!{sys.executable}\n{program}", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    environment = {**os.environ, "SEAWAY_SERVER": place.url, "SEAWAY_TOKEN": place.tokens["user"]}
    made, over = Shell(place, tmp_path, environment, {}), Event()
    kubelet = Thread(target=made.run_pods, args=(over,))
    kubelet.start()
    yield made
    over.set()
    kubelet.join()
    for each in made.started.values():
        each.kill()
        each.wait()


def answer_of(url: str, key: str = "") -> tuple[int, str]:
    """Request a page, and return the status and the text."""
    answer = httpx.get(url, headers={"authorization": f"Bearer {key}"} if key else {}, timeout=TIMEOUT_S)
    return answer.status_code, answer.text


def test_a_notebook_opens_at_a_forwarded_port_with_a_token_that_only_its_users_see(shell: Shell) -> None:
    """Without a service it accepts only forwarded connections. Ctrl-C leaves it running, under its lease."""
    process = shell.start("seaway notebook --gpus 1 --gpu-memory 8GB --name desk --lease 2h")
    assert process.stdout is not None
    url = next(line for line in process.stdout if line.startswith("http")).strip()
    token = url.rpartition("=")[2]
    assert len(token) == 48
    status, options = answer_of(url)
    assert (status, options.partition(" ")[2]) == (200, "--no-browser --allow-root --ip=127.0.0.1")
    assert answer_of(url.partition("?")[0])[0] == 403
    process.send_signal(signal.SIGINT)
    err = process.communicate(timeout=3 * TIMEOUT_S)[1]
    assert process.returncode == 0
    assert "the notebook continues until its lease ends" in err
    said = shell.run("seaway notebook --open desk --detach")
    assert f"/lab?token={token}\n" in said
    assert "forward its port first: seaway port-forward" in said
    job = json.loads(shell.run("seaway show desk -o json"))
    assert job["spec"]["lease"] == "2h"
    known = [shell.run("seaway show desk -o json"), shell.run("seaway logs desk"), shell.run("seaway manifest desk")]
    assert token not in "".join([*known, *(each.target for each in shell.place.audited("exec_job"))])
    before = shell.environment["SEAWAY_TOKEN"]
    shell.environment["SEAWAY_TOKEN"] = shell.place.tokens["viewer"]
    refused = shell.start("seaway notebook --open desk --detach")
    out, err = refused.communicate(timeout=3 * TIMEOUT_S)
    assert (refused.returncode, out) == (3, "")
    assert "requires the role user" in err
    shell.environment["SEAWAY_TOKEN"] = before
    shell.run("seaway cancel desk")


def test_every_command_of_the_page_on_notebooks_works(shell: Shell) -> None:
    """The commands of the page work in order. A served model answers at its address, and only with its key."""
    answers = {each: shell.run(each) for each in commands_of("notebooks")}
    assert {"/lab?token=" in said for each, said in answers.items() if "seaway notebook" in each} == {True}
    assert {"OPENAI_API_KEY=" in said for each, said in answers.items() if "seaway serve" in each} == {True}
    process = shell.start("seaway serve Qwen/Qwen3-8B --name chat --gpus 2 --gpu-memory 8GB -- --max-model-len 8192")
    assert process.stdout is not None
    lines = (line.strip().partition("=") for line in process.stdout)
    found = {name: value for name, _, value in islice((each for each in lines if each[0].startswith("OPENAI_")), 2)}
    status, options = answer_of(f"{found['OPENAI_BASE_URL']}/models", found["OPENAI_API_KEY"])
    assert (status, options.partition(" --host")[0]) == (
        200,
        "serve Qwen/Qwen3-8B --max-model-len 8192 --tensor-parallel-size=2",
    )
    assert answer_of(f"{found['OPENAI_BASE_URL']}/models", "wrong")[0] == 403
    process.send_signal(signal.SIGINT)
    assert "open it again: seaway serve --open" in process.communicate(timeout=3 * TIMEOUT_S)[1]
    shell.run("seaway cancel chat")
