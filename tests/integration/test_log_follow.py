"""Following logs through the API: as they are written, from attempt to attempt, until the job ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import islice
from pathlib import Path
from threading import Thread

import httpx
import pytest

from seaway.adapters.log_files import LogFiles
from seaway.api import log_stream
from seaway.application.fleet.overview import MAX_LINES, Log, Overview
from seaway.application.ports.backend import Answers, Changes, Command
from seaway.application.ports.logs import Give, LogLine, NoContainerError
from seaway.client.sync import Client
from seaway.domain.deployment import Deployment
from seaway.domain.errors import RejectedError, UnknownError
from tests.integration.served import TIMEOUT_S, Served, serving
from tests.unit.api.rig import JOB

pytestmark = pytest.mark.slow


class Cluster:
    """Sends the lines of a log, as a test writes them, to one follower.

    Attributes
    ----------
    asked
        The positions in its requests.
    """

    cluster = "a"

    def __init__(self) -> None:
        self.asked: list[tuple[int, str]] = []
        self.missing = False
        self._lines: list[LogLine] = []
        self._give: Give | None = None
        self._following: Future[None] = Future()

    def follow_log(
        self, copy: str, replica: int, tail: int, after: str, give: Give, container: str = "", since_ns: int = 0
    ) -> Future[None]:
        """Send lines from a position on."""
        del copy, replica
        if container not in {"", "main"}:
            raise NoContainerError(container, ["main"])
        self.asked.append((tail, after))
        if self.missing:
            raise RejectedError("there is no pod")
        self._give, self._following = give, Future()
        if found := self._lines[int(after) :] if after else self._lines[-tail:]:
            give(found)
        return self._following

    def write(self, *texts: str) -> None:
        """Write lines."""
        found = [LogLine(text, str(len(self._lines) + number)) for number, text in enumerate(texts, 1)]
        self._lines += found
        if self._give and not self._following.done():
            self._give(found)

    def cut(self) -> None:
        """End the answer."""
        until(lambda: self._give is not None and not self._following.done(), "that a user follows")
        self._following.set_result(None)

    def changes(self, cursor: str, wait_s: float) -> Changes:
        """Return no changes."""
        raise NotImplementedError

    def send(self, commands: Sequence[Command]) -> Answers:
        """Ignore all commands."""
        raise NotImplementedError

    def manifests(self, deployment: Deployment) -> list[dict[str, object]]:
        """Return no manifests."""
        raise NotImplementedError

    def logs(
        self, copy: str, replica: int, tail: int, container: str = "", since_ns: int = 0, *, times: bool = False
    ) -> Iterator[str]:
        """Return no lines."""
        raise NotImplementedError


class Reader:
    """Follows the log of a job by a client, in a thread."""

    def __init__(self, served: Served, job: str, tail: int = 100) -> None:
        self.lines: list[str] = []
        self.error: Exception | None = None
        self._client = Client(served.url, served.rig.tokens["user"])
        self._thread = Thread(target=self._read, args=(job, tail), daemon=True)
        self._thread.start()

    def _read(self, job: str, tail: int) -> None:
        with self._client as client:
            try:
                for line in client.follow_log(job, tail=tail):
                    self.lines.append(line)
            except Exception as error:  # noqa: BLE001  # the test looks at it
                self.error = error

    def until(self, *lines: str) -> None:
        """Wait until these are the lines."""
        until(lambda: self.lines == [*lines], f"{lines}, but {self.lines}")

    def ended(self) -> bool:
        """Wait for its end."""
        self._thread.join(TIMEOUT_S)
        return not self._thread.is_alive()


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """Serve a rig with short waits."""
    for name in ("EVERY_S", "PAUSE_S", "MAX_PAUSE_S"):
        monkeypatch.setattr(log_stream, name, 0.02)
    with serving() as made:
        yield made


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """Have all logs come from one cluster, with an attempt number that the job's follows."""
    made = Cluster()
    monkeypatch.setattr(
        Overview,
        "log",
        lambda overview, job, replica, container: Log(
            made, "copy", replica, job.attempt or 1, container, overview.archive
        ),
    )
    return made


def submit(served: Served) -> str:
    """Submit a job and wait until it runs."""
    with served.client() as client:
        job_id = str(client.post("/api/v1/jobs", json=JOB).raise_for_status().json()["id"])
    served.rig.step(4)
    return job_id


def until(what: Callable[[], object], why: str) -> None:
    """Wait until a condition is met."""
    give_up_s = time.monotonic() + TIMEOUT_S
    while not what():
        if time.monotonic() > give_up_s:
            pytest.fail(f"never seen: {why}")
        time.sleep(0.005)


def test_lines_come_as_they_are_written_until_the_job_is_over(served: Served, cluster: Cluster) -> None:
    """It begins with the last existing lines, and continues after each answer ends."""
    job_id = submit(served)
    cluster.write("one", "two", "three")
    reader = Reader(served, job_id, tail=2)
    reader.until("two", "three")
    cluster.write("four", "")
    reader.until("two", "three", "four", "")
    cluster.cut()
    until(lambda: len(cluster.asked) > 1, "that it is asked again")
    cluster.write("five")
    reader.until("two", "three", "four", "", "five")
    assert cluster.asked == [(2, ""), (2, "5")]
    served.rig.plane.jobs.cancel(job_id, "test")
    cluster.cut()
    cluster.cut()  # the unread rest
    assert reader.ended()
    assert reader.error is None
    assert reader.lines == ["two", "three", "four", "", "five"]


def test_who_returns_has_what_he_missed(served: Served, cluster: Cluster) -> None:
    """A returning client continues after the line with its last id, which browsers send too."""
    job_id = submit(served)
    cluster.write("one", "two", "three")
    headers = {"Last-Event-ID": "1~1"}
    with (
        served.client() as client,
        client.stream("GET", f"/api/v1/jobs/{job_id}/logs/follow", headers=headers) as stream,
    ):
        assert stream.headers["content-type"].startswith("text/event-stream")
        found = list(islice(filter(None, stream.iter_lines()), 5))  # and no sixth, which comes without new lines
    assert found == ["retry: 2000", "id: 1~2", 'data: {"text":"two"}', "id: 1~3", 'data: {"text":"three"}']
    with served.client() as client:
        answer = client.get(f"/api/v1/jobs/{job_id}/logs/follow", headers={"Last-Event-ID": "x y"})
        assert answer.status_code == 422


def test_another_attempt_is_read_from_its_start(
    served: Served, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log of an attempt in a silent cluster has no end: the job's events announce the next attempt."""
    job_id = submit(served)
    cluster.write("one", "two")
    reader = Reader(served, job_id, tail=1)
    reader.until("two")
    monkeypatch.setattr(Overview, "log", lambda *asked: Log(cluster, "copy", asked[2], 2))
    served.rig.plane.jobs.suspend(job_id, "test")
    served.rig.plane.jobs.resume(job_id, "test")
    served.rig.step(6)
    reader.until("two", "one", "two")
    assert cluster.asked[-1] == (MAX_LINES, "")


def test_more_than_is_held_is_asked_for_again(
    served: Served, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow reader uses a bounded amount of memory, and no line is lost."""
    monkeypatch.setattr(log_stream, "MAX_BYTES", 10)
    job_id = submit(served)
    texts = [f"{number} xxxxxxxxxx" for number in range(500)]
    reader = Reader(served, job_id)
    until(lambda: cluster.asked, "that a user follows")
    for text in texts:
        cluster.write(text)
    reader.until(*texts)


def test_a_job_without_a_log_says_why(served: Served, cluster: Cluster) -> None:
    """A job without a log reports the reason: until the job ends, a log may come, then the cluster's own text."""
    cluster.missing = True
    job_id = submit(served)
    reader = Reader(served, job_id)
    until(lambda: len(cluster.asked) > 2, "that it is asked again")
    served.rig.plane.jobs.cancel(job_id, "test")
    assert reader.ended()
    assert "there is no pod" in str(reader.error)


def test_of_a_job_whose_pods_are_gone_the_stored_log_is_sent(served: Served, cluster: Cluster, tmp_path: Path) -> None:
    """Its last lines, once."""
    served.rig.plane.overview.archive = archive = LogFiles(tmp_path, 1)
    archive.put(
        "default", "copy", 0, "", [f"2026-11-21T10:00:0{at}Z {each}" for at, each in enumerate(("one", "two", "three"))]
    )
    job_id = submit(served)
    cluster.missing = True
    served.rig.plane.jobs.cancel(job_id, "test")
    reader = Reader(served, job_id, tail=2)
    assert reader.ended()
    assert (reader.lines, reader.error) == (["two", "three"], None)


@pytest.mark.parametrize("follows", [True, False], ids=["pushed", "polled"])
def test_a_container_that_is_not_there_ends_it_at_once(
    served: Served, request: pytest.FixtureRequest, follows: bool
) -> None:
    """A missing container will not appear while the job runs, so the answer names the existing ones."""
    if follows:
        request.getfixturevalue("cluster")
    job_id = submit(served)
    with Client(served.url, served.rig.tokens["user"]) as client:
        with pytest.raises(UnknownError, match="container 'side' not found; available: main"):
            list(client.follow_log(job_id, container="side"))
        assert client.job(job_id).state == "running"


def test_what_cannot_be_followed_is_asked_for_again_and_again(served: Served) -> None:
    """Simulated clusters return lines on request only: each line comes once, and the stream ends with the job."""
    job_id = submit(served)
    reader = Reader(served, job_id)
    until(lambda: reader.lines, "the first lines")
    for _ in range(5):
        served.rig.step()
    served.rig.plane.jobs.cancel(job_id, "test")
    assert reader.ended()
    assert reader.error is None
    assert len(reader.lines) == len(set(reader.lines))
    assert "replica 0" in reader.lines[0]


def test_replicas_and_jobs_that_are_not_there_are_refused(served: Served) -> None:
    """Missing jobs and replicas are rejected before a stream begins."""
    job_id = submit(served)
    with served.client() as client:
        assert client.get(f"/api/v1/jobs/{job_id}/logs/follow?replica=7").status_code == 409
        assert client.get("/api/v1/jobs/none/logs/follow").status_code == 404


def test_a_server_that_ends_ends_what_is_followed(served: Served, cluster: Cluster) -> None:
    """A followed log does not delay the server's end; it no longer follows the cluster."""
    job_id = submit(served)
    with served.client() as client, client.stream("GET", f"/api/v1/jobs/{job_id}/logs/follow") as stream:
        until(lambda: cluster.asked, "that it is followed")
        served.server.should_exit = True
        with suppress(httpx.TransportError):
            for _ in stream.iter_lines():
                pass
    until(cluster._following.cancelled, "that no one listens")  # noqa: SLF001  # the fake's own
