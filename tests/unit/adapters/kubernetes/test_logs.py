"""Logs of pods: the end of long logs, and followed lines, each once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from seaway.adapters.kubernetes import cluster as cluster_module
from seaway.adapters.kubernetes import logs as logs_module
from seaway.adapters.kubernetes.backends import KubernetesBackends
from seaway.adapters.kubernetes.cluster import KubernetesCluster
from seaway.adapters.kubernetes.karmada import KarmadaBackends
from seaway.adapters.kubernetes.templates.registry import BUILT_IN
from seaway.adapters.kubernetes.templates.safety import Rules
from seaway.adapters.kubernetes.templates.user import read_template
from seaway.application.ports.logs import LogLine, NoContainerError
from seaway.domain.deployment import Deployment, WorkloadPhase
from seaway.domain.errors import UnavailableError
from seaway.testing.backends import BackendUnderTest, Watch, deploy
from tests.conformance import test_kubernetes_backends as cluster_options
from tests.conformance.test_kubernetes_backends import Under, furnish, wait
from tests.fakes.kubernetes import ApiServer, KarmadaWorld
from tests.fakes.kubernetes.kinds import PODS

MIB = 1 << 20
SEVERAL = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: ${name}
spec:
  completions: ${replicas}
  parallelism: ${replicas}
  completionMode: Indexed
  template:
    spec:
      restartPolicy: Never
      initContainers:
      - {name: fetch, image: 'fetch:1'}
      - {name: proxy, image: 'proxy:1', restartPolicy: Always}
      containers:
      - {name: main, image: 'main:1'}
      - {name: side, image: 'side:1'}
"""
OPTIONS = replace(
    cluster_options.OPTIONS, templates={**BUILT_IN, "several": read_template("several", SEVERAL, Rules())}
)


@pytest.fixture(params=[False, True], ids=["directly", "through-karmada"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Under]:
    """Join a cluster with nodes."""
    if request.param:
        world = KarmadaWorld(["alpha"]).open()
        furnish(world.members["alpha"])
        members = KarmadaBackends(world.kubeconfig(tmp_path / "karmada"), OPTIONS, seed=1)
        yield Under(world.members["alpha"], members.clusters()[0], members.close, world.control)
        members.close()
        world.close()
        return
    with ApiServer("alpha") as server:
        furnish(server)
        server.kubeconfig(tmp_path / "alpha")
        backends = KubernetesBackends(tmp_path, OPTIONS, seed=1)
        yield Under(server, backends.clusters()[0], backends.close, server)
        backends.close()


@pytest.fixture
def server(made: Under) -> ApiServer:
    """Return its server."""
    return made.member


@pytest.fixture
def under(made: Under) -> BackendUnderTest:
    """Return it after its first list."""
    return made.made()


def running(under: BackendUnderTest, template: str = "job") -> tuple[KubernetesCluster, Deployment]:
    """Deploy a job, and wait until it runs."""
    watch, deployment = Watch(under), deploy(under)
    deployment = replace(deployment, spec=replace(deployment.spec, template=template))
    list(under.backend.send([deployment]))
    watch.until_phase(deployment, WorkloadPhase.RUNNING)
    assert isinstance(under.backend, KubernetesCluster)
    return under.backend, deployment


def write(server: ApiServer, text: str, at_ns: int | None = None, container: str = "") -> None:
    """Write lines of Seaway's only pod."""
    (pod,) = server.list(PODS, "seaway-default")
    server.write_log("seaway-default", pod["metadata"]["name"], text, container, at_ns)


def test_of_a_long_log_the_end_is_stored(
    under: BackendUnderTest, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long log is cut to a number of bytes, which begin with a whole line."""
    monkeypatch.setattr(logs_module, "MAX_BYTES", MIB)
    cluster, deployment = running(under)
    write(server, "\n".join(f"{number} {'x' * 1000}" for number in range(4000)))
    lines = list(cluster.logs(deployment.name, 0, 10_000))
    assert lines[-1].startswith("3999 ")
    assert MIB - 2000 < sum(len(line) + 1 for line in lines) <= MIB
    assert {len(line.partition(" ")[2]) for line in lines} == {1000}


def test_a_log_without_end_is_given_up(
    under: BackendUnderTest, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request limits the total size, so that one endless line ends."""
    monkeypatch.setattr(logs_module, "LARGEST_BYTES", MIB)
    cluster, deployment = running(under)
    write(server, "x" * 3 * MIB)
    (line,) = cluster.logs(deployment.name, 0, 1)
    assert len(line) == MIB


class Follower:
    """Follows a log, and continues at its position after an end."""

    def __init__(self, cluster: KubernetesCluster, deployment: Deployment) -> None:
        self.lines: list[str] = []
        self.place = ""
        self._cluster = cluster
        self._deployment = deployment

    def begin(self, tail: int = 100, container: str = "") -> Future[None]:
        """Follow it."""
        return self._cluster.follow_log(self._deployment.name, 0, tail, self.place, self.give, container)

    def give(self, lines: Sequence[LogLine]) -> None:
        """Record lines."""
        self.lines += [line.text for line in lines]
        self.place = lines[-1].place


def test_lines_come_as_they_are_written_until_the_pod_ends(under: BackendUnderTest, server: ApiServer) -> None:
    """Existing lines are cut to the last ones; an empty line counts, too."""
    cluster, deployment = running(under)
    write(server, "one\ntwo\nthree")
    follower = Follower(cluster, deployment)
    following = follower.begin(tail=2)
    wait(lambda: follower.lines == ["two", "three"], "the present lines")
    write(server, "\nfour")
    wait(lambda: follower.lines == ["two", "three", "", "four"], "what comes")
    assert under.finish is not None
    under.finish(deployment.job_id, deployment.attempt)
    following.result(10)


def test_a_follower_that_was_cut_off_has_every_line_once(under: BackendUnderTest, server: ApiServer) -> None:
    """Servers restart at a whole second: known lines of it, also with equal times, are not repeated."""
    cluster, deployment = running(under)
    follower = Follower(cluster, deployment)
    expected: list[str] = []
    for number, at_ns in enumerate([10**18, 10**18 + 1, 10**18 + 1, 10**18 + 10**9 - 1, 10**18 + 10**9]):
        following = follower.begin()
        for text in (f"{number}", f"{number} more"):
            write(server, text, at_ns)
            expected.append(text)
        wait(lambda: follower.lines == expected, f"{expected}, not {follower.lines}")
        server.cut_logs()
        following.result(10)
    assert follower.begin().cancel()


def test_a_log_is_read_and_followed_from_a_time_on(under: BackendUnderTest, server: ApiServer) -> None:
    """Earlier lines are left out, and lines can have their times."""
    cluster, deployment = running(under)
    for second in range(3):
        write(server, f"{second}", 10**18 + second * 10**9)
    since_ns = 10**18 + 10**9
    assert list(cluster.logs(deployment.name, 0, 10, since_ns=since_ns)) == ["1", "2"]
    timed = list(cluster.logs(deployment.name, 0, 10, since_ns=since_ns, times=True))
    assert [each.partition(" ") for each in timed] == [
        ("2001-09-09T01:46:41.000000000Z", " ", "1"),
        ("2001-09-09T01:46:42.000000000Z", " ", "2"),
    ]
    follower = Follower(cluster, deployment)
    following = cluster.follow_log(deployment.name, 0, 100, "", follower.give, "", since_ns)
    wait(lambda: follower.lines == ["1", "2"], "the later lines")
    following.cancel()


def test_each_container_is_read_for_itself(under: BackendUnderTest, server: ApiServer) -> None:
    """Sidecars and init containers can be read; the default is the first main container."""
    cluster, deployment = running(under, "several")
    for name in ("main", "side", "proxy", "fetch"):
        write(server, f"by {name}", container=name)
        assert list(cluster.logs(deployment.name, 0, 10, name)) == [f"by {name}"]
        follower = Follower(cluster, deployment)
        following = follower.begin(container=name)
        wait(lambda: bool(follower.lines), f"the line of {name}")  # noqa: B023  # it is called before the next
        following.cancel()
        assert follower.lines == [f"by {name}"]
    assert list(cluster.logs(deployment.name, 0, 10)) == ["by main"]
    with pytest.raises(NoContainerError, match="container 'gone' not found; available: main, side, proxy, fetch"):
        cluster.logs(deployment.name, 0, 10, "gone")


def test_a_pod_that_was_made_again_is_read_from_its_start(under: BackendUnderTest, server: ApiServer) -> None:
    """A position in the log of another pod does not apply: clocks of nodes differ."""
    cluster, deployment = running(under)
    write(server, "one", 10**18)
    follower = Follower(cluster, deployment)
    follower.place = f"another-pod.{2 * 10**18}.1"
    following = follower.begin()
    wait(lambda: follower.lines == ["one"], "the first line")
    following.cancel()


def test_so_many_follow_at_once_and_no_more(
    under: BackendUnderTest, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A follower uses a connection that watches and calls need; it releases it at its end."""
    monkeypatch.setattr(cluster_module, "MAX_FOLLOWED", 1)
    cluster, deployment = running(under)
    write(server, "one")
    first = Follower(cluster, deployment)
    following = first.begin()
    wait(lambda: first.lines == ["one"], "the first")
    with pytest.raises(UnavailableError, match="followed already"):
        first.begin()
    following.cancel()
    second = Follower(cluster, deployment)

    def begins() -> bool:
        with suppress(UnavailableError):
            second.begin()
        return bool(second.lines)

    wait(begins, "the second")


@pytest.mark.parametrize(
    ("stamp", "ns"),
    [
        (b"2001-09-09T01:46:40Z", 10**18),
        (b"2001-09-09T01:46:40.5Z", 10**18 + 5 * 10**8),
        (b"2001-09-09T01:46:40.000000001Z", 10**18 + 1),
        (b"2001-09-09T03:46:40.000000001+02:00", 10**18 + 1),
        (b"no", None),
        (b"\xff", None),
    ],
)
def test_times_are_read_to_the_nanosecond(stamp: bytes, ns: int | None) -> None:
    """Runtimes write fractions of any length, and their own time zone."""
    assert logs_module.time_of(stamp) == ns


def test_a_line_without_end_comes_in_pieces() -> None:
    """No piece is lost, and the buffer is limited."""

    async def read() -> list[bytes]:
        async def pieces() -> AsyncIterator[bytes]:
            for _ in range(10):
                yield b"x" * 100_000
            yield b"\nend"

        return [line async for lines in logs_module.cut(pieces()) for line in lines]

    lines = asyncio.run(read())
    assert b"".join(lines) == b"x" * 1_000_000 + b"end"
    assert max(map(len, lines)) < logs_module.LONGEST_LINE + 100_000
