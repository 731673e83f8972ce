"""Objects of one kind are followed: listed once, then watched, through every error of a server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from seaway.adapters.kubernetes.collect import reflector as reflecting
from seaway.adapters.kubernetes.collect.health import Health
from seaway.adapters.kubernetes.collect.reflector import Source, reflect
from seaway.adapters.kubernetes.connection.api import Api
from seaway.adapters.kubernetes.connection.backoff import Backoff
from seaway.adapters.kubernetes.connection.credentials import Credentials
from seaway.adapters.kubernetes.connection.event_loop import EventLoopThread
from seaway.adapters.kubernetes.objects.core import Item, PodObject
from seaway.adapters.kubernetes.objects.decode import Broken
from tests.fakes.kubernetes import ApiServer
from tests.fakes.kubernetes.kinds import CONFIG_MAPS, PODS

THINGS = Source("/api/v1/configmaps", Item, "kind=thing")
QUEUES = Source("/apis/kueue.x-k8s.io/v1beta2/workloads", Item, optional=True)
WAIT_S = 30.0


class Listening(Api):
    """Records requests: ``list`` or the version that a watch continues from."""

    def __init__(self, name: str, credentials: Credentials, request_timeout_s: float) -> None:
        super().__init__(name, credentials, request_timeout_s=request_timeout_s)
        self.asked: list[str] = []

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> bytes:
        """Record a page and its parameters."""
        self.asked.append("next page" if "continue" in (params or {}) else "list")
        return await super().get(path, params)

    @asynccontextmanager
    async def pieces(
        self, path: str, params: Mapping[str, str], idle_timeout_s: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Record a list in one answer."""
        self.asked.append("all")
        async with super().pieces(path, params, idle_timeout_s) as pieces:
            yield pieces

    @asynccontextmanager
    async def stream(
        self, path: str, params: Mapping[str, str], idle_timeout_s: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Record a watch and its version."""
        self.asked.append(params["resourceVersion"])
        async with super().stream(path, params, idle_timeout_s) as lines:
            yield lines


class Sink:
    """Records all notifications in order, and the resulting objects."""

    def __init__(self) -> None:
        self.reported: list[tuple[str, str]] = []
        self.there: dict[str, Any] = {}
        self.broke: list[Broken] = []

    async def replace(self, items: Sequence[Any]) -> None:
        """Replace all objects."""
        self.reported.append(("all", " ".join(each.metadata.name for each in items)))
        self.there = {each.metadata.name: each for each in items}

    def put(self, item: Any) -> None:  # noqa: ANN401  # of any kind
        """Put one object."""
        self.reported.append(("put", f"{item.metadata.name} {item.metadata.labels.get('at', '')}".strip()))
        self.there[item.metadata.name] = item

    def drop(self, item: Any) -> None:  # noqa: ANN401  # of any kind
        """Record a deletion."""
        self.reported.append(("drop", item.metadata.name))
        self.there.pop(item.metadata.name, None)

    def broken(self, what: Broken) -> None:
        """Record an unreadable object."""
        self.reported.append(("broken", what.name))
        self.broke.append(what)


class Steady(Backoff):
    """Records its waits, and shortens them."""

    def __init__(self) -> None:
        super().__init__(Random(1))
        self.waits: list[float] = []
        self.resets = 0

    def failed(self) -> float:
        """Record a failure."""
        self.waits.append(super().failed())
        return 0.01

    def reset(self) -> None:
        """Record a success."""
        self.resets += 1
        super().reset()


class Followed:
    """A server, and a followed kind of its objects."""

    def __init__(
        self, server: ApiServer, folder: Path, source: Source[Any] = THINGS, request_timeout_s: float = 5.0
    ) -> None:
        self.server = server
        self.file = server.kubeconfig(folder / server.name)
        self.source = source
        self.sink, self.backoff = Sink(), Steady()
        self.health = Health([source.path])
        self.api = Listening(server.name, Credentials(self.file, server.name), request_timeout_s)
        self.reactor = EventLoopThread()
        self.task = self.reactor.submit(reflect(self.api, source, self.sink, self.health, self.backoff))

    @property
    def watching(self) -> bool:
        """True while the server has an open watch of it."""
        return bool(self.server.call(lambda: [each for each in self.server.watches.open if not each.cut]))

    def settle(self) -> None:
        """Wait until all of it is listed and watched."""
        wait(lambda: self.health.complete and self.watching, "the first list and its watch")

    def close(self) -> None:
        """Stop following."""
        self.server.faults.clear()
        self.task.cancel()
        self.reactor.run(self.api.close(), 5)
        self.reactor.close()


def wait(what: Callable[[], object], why: str) -> None:
    """Wait until a condition is met."""
    give_up_s = time.monotonic() + WAIT_S
    while not what():
        if time.monotonic() > give_up_s:
            pytest.fail(f"never seen: {why}")
        time.sleep(0.002)


def thing(name: str, at: int = 0) -> dict[str, Any]:
    """Write an object of the followed kind."""
    meta = {"name": name, "labels": {"kind": "thing", "at": str(at)}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """Start a server with frequent bookmarks."""
    with ApiServer("alpha", bookmark_s=0.05, controllers=()) as made:
        yield made


@pytest.fixture
def followed(server: ApiServer, tmp_path: Path) -> Iterator[Followed]:
    """Follow the objects of a server."""
    made = Followed(server, tmp_path)
    yield made
    made.close()


def names(followed: Followed) -> list[str]:
    """Return the names of the known objects."""
    return sorted(followed.sink.there)


def test_everything_is_listed_page_by_page_and_then_watched(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list comes in pages and is passed on as one; a watch continues from its version."""
    monkeypatch.setattr(reflecting, "PAGE", 2)
    for at in range(5):
        server.create(thing(f"thing-{at}"))
    version = str(server.version)
    followed = Followed(server, tmp_path)
    followed.settle()
    assert followed.api.asked == ["list", "next page", "next page", version]
    assert followed.sink.reported == [("all", " ".join(f"thing-{at}" for at in range(5)))]
    followed.close()


def test_a_page_that_came_too_late_is_no_loss(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the token of the next page has expired, all is listed in one answer, and no partial list is passed on.

    In pages the token could expire again and again, on a server with a short history.
    """
    monkeypatch.setattr(reflecting, "PAGE", 2)
    for at in range(4):
        server.create(thing(f"thing-{at}"))
    hung = server.faults.hang("/api/v1/configmaps")
    followed = Followed(server, tmp_path)
    wait(lambda: hung.hits, "the first page")
    first = server.faults.slow(0.2, "/api/v1/configmaps", times=2)
    server.faults.end(hung)
    wait(lambda: followed.api.asked[-1:] == ["next page"], "the second page")
    server.delete(CONFIG_MAPS, "default", "thing-0")
    server.forget_history()
    followed.settle()
    assert first.hits
    assert followed.api.asked[:3] == ["list", "next page", "all"]
    assert "next page" not in followed.api.asked[3:]
    assert followed.sink.reported == [("all", "thing-1 thing-2 thing-3")]
    followed.close()


def test_changes_are_reported_in_their_order(followed: Followed) -> None:
    """Changes are passed on in their order, and none twice."""
    followed.settle()
    expected = [("all", "")]
    for at in range(30):
        name = f"thing-{at % 3}"
        if at % 5 == 4 and name in {word.split()[0] for kind, word in expected if kind == "put"}:
            followed.server.put(thing("last"))
            followed.server.delete(CONFIG_MAPS, "default", "last")
            expected += [("put", "last 0"), ("drop", "last")]
        followed.server.put(thing(name, at))
        expected.append(("put", f"{name} {at}"))
    wait(lambda: len(followed.sink.reported) >= len(expected), "all changes")
    assert followed.sink.reported == expected


def test_a_change_is_reported_within_a_second(followed: Followed) -> None:
    """A change reaches the sink within a moment, not after a polling interval."""
    followed.settle()
    began_s = time.monotonic()
    followed.server.put(thing("new"))
    wait(lambda: "new" in followed.sink.there, "the change")
    assert time.monotonic() - began_s < 1


def test_a_dropped_watch_goes_on_where_it_was(followed: Followed) -> None:
    """After a dropped watch nothing is listed again, no change is lost, and none is repeated."""
    followed.settle()
    followed.server.put(thing("one", 1))
    followed.server.put(thing("two", 2))
    followed.server.delete(CONFIG_MAPS, "default", "one")
    wait(lambda: followed.sink.reported[-1] == ("drop", "one"), "what came before")
    before = followed.server.version
    hung = followed.server.faults.error(503, "/api/v1/configmaps")
    followed.server.faults.cut_watches()
    wait(lambda: hung.hits, "that the watch is begun again")
    followed.server.put(thing("three", 3))
    followed.server.faults.end(hung)
    wait(lambda: "three" in followed.sink.there, "what came meanwhile")
    assert followed.sink.reported[1:] == [("put", "one 1"), ("put", "two 2"), ("drop", "one"), ("put", "three 3")]
    assert followed.api.asked.count("list") == 1
    assert int(followed.api.asked[-1]) >= before


def test_a_watch_that_goes_on_is_an_answer(server: ApiServer, tmp_path: Path) -> None:
    """A quiet source counts as reachable as soon as its watch is open again, not with the next event."""
    server.watches.bookmark_s = 3600
    followed = Followed(server, tmp_path)
    followed.settle()
    hung = server.faults.error(503, "/api/v1/configmaps")
    server.faults.cut_watches()
    wait(lambda: followed.health.failing_s, "the failure")
    server.faults.end(hung)
    wait(lambda: not followed.health.failing_s, "the answer")
    followed.close()


def test_watches_that_are_cut_now_and_then_are_not_held_against_the_server(followed: Followed) -> None:
    """The back-off starts over once a watch was open, however it ended."""
    followed.settle()
    for _ in range(5):
        resets = followed.backoff.resets
        followed.server.faults.cut_watches()
        wait(lambda: followed.watching and followed.backoff.resets > resets, "the next watch")  # noqa: B023
    assert max(followed.backoff.waits) < 0.5


def test_bookmarks_move_the_version(followed: Followed) -> None:
    """Bookmarks advance the version without changes, so that a new watch is not too late."""
    followed.settle()
    for at in range(20):
        other = thing(f"other-{at}")
        other["metadata"]["labels"] = {}
        followed.server.put(other)
    version = followed.server.version
    time.sleep(0.2)  # some bookmarks
    followed.server.forget_history()
    followed.server.faults.cut_watches()
    wait(lambda: len(followed.api.asked) > 2, "the next watch")
    assert int(followed.api.asked[2]) >= version
    assert followed.api.asked.count("list") == 1


def test_a_version_that_is_too_old_has_everything_listed_again(followed: Followed) -> None:
    """When the server's history is too short, all is listed again, and deletions are found by that."""
    followed.settle()
    followed.server.put(thing("one"))
    wait(lambda: "one" in followed.sink.there, "the first change")
    hung = followed.server.faults.error(503, "/api/v1/configmaps")
    followed.server.faults.cut_watches()
    wait(lambda: hung.hits, "that the watch is begun again")
    followed.server.delete(CONFIG_MAPS, "default", "one")
    followed.server.put(thing("two"))
    followed.server.forget_history()
    followed.server.faults.end(hung)
    wait(lambda: names(followed) == ["two"], "the list")
    assert followed.sink.reported[-1] == ("all", "two")
    assert followed.api.asked.count("list") == 2


def test_a_server_that_falls_unreachable_is_given_up(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A watch without a byte for too long is opened again, and missed changes are passed on."""
    monkeypatch.setattr(reflecting, "IDLE_TIMEOUT_S", 0.3)
    followed = Followed(server, tmp_path, request_timeout_s=0.2)
    followed.settle()
    hung = server.faults.hang("/api/v1/configmaps")
    server.put(thing("meanwhile"))
    wait(lambda: hung.hits >= 2, "tries")
    assert followed.health.failing_s > 0
    assert followed.health.unreachable_reason(0)
    server.faults.end(hung)
    wait(lambda: "meanwhile" in followed.sink.there, "what came meanwhile")
    wait(lambda: not followed.health.unreachable_reason(0), "reports")
    assert followed.api.asked.count("list") == 1
    followed.close()


@pytest.mark.parametrize("code", [429, 500, 503])
def test_tries_come_later_every_time(code: int, server: ApiServer, tmp_path: Path) -> None:
    """A failing server gets fewer and fewer requests, with a random delay of at most twice the last."""
    fault = server.faults.error(code, "/api/v1/configmaps", times=5)
    followed = Followed(server, tmp_path)
    followed.settle()
    assert fault.hits == 5
    longest = [0.2 * 2**at for at in range(5)]
    for wait_s, most_s in zip(followed.backoff.waits, longest, strict=True):
        assert most_s / 2 <= wait_s <= most_s
    assert len({wait_s / most_s for wait_s, most_s in zip(followed.backoff.waits, longest, strict=True)}) == 5
    followed.close()


def test_anyone_says_when_to_come_again_is_heeded(server: ApiServer, tmp_path: Path) -> None:
    """A server that answers 429 with Retry-After gets no request before."""
    fault = server.faults.throttle(2, "/api/v1/configmaps", times=1)
    began_s = time.monotonic()
    followed = Followed(server, tmp_path)
    followed.settle()
    assert fault.hits == 1
    assert time.monotonic() - began_s >= 1.9
    followed.close()


def test_a_broken_object_is_reported_and_others_go_on(server: ApiServer, tmp_path: Path) -> None:
    """An object that cannot be decoded is named, listed or watched, and others are passed on."""

    def pod(name: str, containers: object) -> dict[str, Any]:
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers}}

    server.put(pod("broken-1", "not a list"))
    server.put(pod("good-1", []))
    followed = Followed(server, tmp_path, Source("/api/v1/pods", PodObject))
    followed.settle()
    server.put(pod("broken-2", 7))
    server.put(pod("good-2", []))
    wait(lambda: "good-2" in followed.sink.there, "the good one")
    assert [each.name for each in followed.sink.broke] == ["broken-1", "broken-2"]
    assert followed.sink.reported == [
        ("broken", "broken-1"),
        ("all", "good-1"),
        ("broken", "broken-2"),
        ("put", "good-2"),
    ]
    assert not followed.health.failing_s
    server.delete(PODS, "default", "good-1")
    wait(lambda: "good-1" not in followed.sink.there, "the next change")
    server.delete(PODS, "default", "broken-2")
    wait(lambda: ("drop", "broken-2") in followed.sink.reported, "that the broken one is gone")
    followed.close()


def test_a_kind_that_is_not_there_may_come_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server without an optional kind is healthy, with no objects; after its installation the kind is followed."""
    monkeypatch.setattr(reflecting, "ABSENT_RETRY_S", 0.05)
    with ApiServer("alpha", controllers=()) as server:
        missing = server.faults.error(404, QUEUES.path)
        followed = Followed(server, tmp_path, QUEUES)
        wait(lambda: missing.hits > 1, "two tries")
        assert followed.health.complete
        assert not followed.health.failing_s
        assert followed.sink.reported[0] == ("all", "")
        meta = {"name": "one"}
        server.put({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": meta})
        server.faults.end(missing)
        wait(lambda: names(followed) == ["one"], "the kind")
        followed.close()


def test_a_kind_that_goes_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When an optional kind is removed from a server, none of its objects are left."""
    monkeypatch.setattr(reflecting, "ABSENT_RETRY_S", 0.05)
    with ApiServer("alpha", controllers=()) as server:
        meta = {"name": "one"}
        server.put({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": meta})
        followed = Followed(server, tmp_path, QUEUES)
        followed.settle()
        server.faults.error(404, QUEUES.path)
        server.faults.cut_watches()
        wait(lambda: not followed.sink.there, "that it is gone")
        followed.close()


def test_a_token_that_is_not_taken_any_more_is_read_again(followed: Followed) -> None:
    """A new token in the kubeconfig is used after the first rejection."""
    followed.settle()
    followed.server.new_token(only=True)
    followed.server.kubeconfig(followed.file)
    followed.server.faults.cut_watches()
    followed.server.put(thing("new"))
    wait(lambda: "new" in followed.sink.there, "the change")
    wait(lambda: not followed.health.failing_s, "reports")


def test_a_mistake_of_ours_does_not_end_it(followed: Followed) -> None:
    """When the sink fails, everything is listed again, and following continues."""
    followed.settle()
    put = followed.sink.put

    def fail(item: object) -> None:
        followed.sink.put = put  # type: ignore[method-assign]
        raise KeyError(item)

    followed.sink.put = fail  # type: ignore[method-assign]
    followed.server.put(thing("one"))
    wait(lambda: "one" in followed.sink.there, "the list")
    assert followed.sink.reported[-1] == ("all", "one")


def test_cancelling_ends_it(server: ApiServer, tmp_path: Path) -> None:
    """A cancelled follower has no open connection."""
    server.kubeconfig(tmp_path / "alpha")

    async def briefly() -> None:
        api = Api("alpha", Credentials(tmp_path / "alpha", "alpha"))
        health = Health([THINGS.path])
        task = asyncio.create_task(reflect(api, THINGS, Sink(), health, Backoff(Random(1))))
        while not health.complete:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await api.close()

    asyncio.run(briefly())
    wait(lambda: not server.call(lambda: list(server.watches.open)), "that the server has no watch")
