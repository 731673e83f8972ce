"""Several logs of a job at a time: which, whose lines are whose, and that none ends the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import orjson
import pytest

from seaway import AsyncClient, Client
from seaway.cli.jobs import logs as many_logs
from seaway.cli.jobs.logs import (
    Files,
    Printer,
    Search,
    Source,
    Wanted,
    choose,
    follow_all,
    pattern_of,
    read_all,
)
from seaway.domain.errors import RejectedError
from tests.unit.client.requesting import JOB, SERVER, TOKEN, Handler, problem

RUNS = {**JOB, "replicas": 3}


def seen(replica: int, *containers: str) -> dict[str, object]:
    """Make what a cluster tells of a replica."""
    shown = [{"name": each, "ports": [], "devices": []} for each in containers]
    pod = f"seaway/{replica}"
    return {"replica": replica, "phase": "running", "node": "n", "pod": pod, "containers": shown, "reason": ""}


def answer(request: httpx.Request) -> httpx.Response:
    """Show a job of three replicas, the last of which has no pod yet."""
    if request.url.path.endswith("/attempts"):
        copy = {"cluster": "a", "phase": "running", "address": "", "reason": ""}
        workloads = [{**copy, "replicas": [seen(1, "main", "side")]}, {**copy, "replicas": [seen(0, "main")]}]
        return httpx.Response(200, json={"attempts": [], "workloads": workloads, "next": None})
    return httpx.Response(200, json=RUNS)


def client(handler: Handler = answer) -> Client:
    """Make a client before a stub."""
    return Client(SERVER, TOKEN, transport=httpx.MockTransport(handler))


def wanted(*replicas: int, every: bool = False, container: str = "", every_container: bool = False) -> Wanted:
    """Ask for some logs."""
    return Wanted.of(replicas, every=every, container=container, every_container=every_container)


@pytest.mark.parametrize(
    ("asked", "labels"),
    [
        (wanted(), ["[0]"]),
        (wanted(container="side"), ["[0/side]"]),
        (wanted(2, 0, 2), ["[2]", "[0]"]),
        (wanted(every=True), ["[0]", "[1]", "[2]"]),
        (wanted(1, every_container=True), ["[1/main]", "[1/side]"]),
        (wanted(every=True, every_container=True), ["[0/main]", "[1/main]", "[1/side]", "[2]"]),
    ],
)
def test_logs_are_chosen_by_replica_and_container(asked: Wanted, labels: list[str]) -> None:
    """The first of both where nothing is reported; of a replica of which no container is known, its first."""
    _, found = choose(client(), "train", asked, follow=True)
    assert [each.label for each in found] == labels


def test_what_does_not_go_together_is_refused() -> None:
    """No one is left to guess which of two counts."""
    with pytest.raises(RejectedError, match="--all: cannot be used"):
        wanted(1, every=True)
    with pytest.raises(RejectedError, match="--all-containers: cannot be used"):
        wanted(container="main", every_container=True)


def test_so_many_are_followed_and_any_number_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream holds a connection of its cluster, which others need too.

    Who asks for more is reported how to choose.
    """
    monkeypatch.setattr(many_logs, "MAX_FOLLOWED", 2)
    with pytest.raises(RejectedError, match="these are 3 logs, and 2 are followed at a time: name some by --replica"):
        choose(client(), "train", wanted(every=True), follow=True)
    assert len(choose(client(), "train", wanted(every=True), follow=False)[1]) == 3
    assert len(choose(client(), "train", wanted(0, 1), follow=True)[1]) == 2


def test_containers_are_looked_up_once_the_job_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """Before that there may be no pods, and who follows waits for them."""
    states = ["queued", "queued", "running"]

    def shows(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/events"):
            event = {"id": 7, "state": "running"}
            return httpx.Response(200, content=b"data: " + orjson.dumps(event) + b"\n\n")
        if request.url.path.endswith("/attempts"):
            assert not states[1:]
            return answer(request)
        return httpx.Response(200, json={**RUNS, "state": states.pop(0) if states[1:] else states[0]})

    _, found = choose(client(shows), "train", wanted(1, every_container=True), follow=True)
    assert [each.container for each in found] == ["main", "side"]
    assert "waiting for the job to run" in capsys.readouterr().err


def test_one_that_cannot_be_read_does_not_keep_from_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    """Each line says whose it is; what went wrong is reported beside them, and in the exit code."""

    def shows(request: httpx.Request) -> httpx.Response:
        replica = request.url.params["replica"]
        if replica == "1":
            return problem(409, "there is no place yet")
        return httpx.Response(200, text=f"one of {replica}\n\n\u2028of {replica}\n" if replica == "0" else "")

    sources = [Source(0), Source(1), Source(2)]
    printer = Printer(sources, labelled=None)
    read_all(client(shows), "train", sources, Search(10), printer)
    said = capsys.readouterr()
    assert said.out == "[0] one of 0\n[0] \n[0] \u2028of 0\n"
    assert said.err == "[1] error: there is no place yet\n"
    assert printer.code == 2


@pytest.mark.parametrize(
    ("search", "said"),
    [
        (Search(2, pattern=pattern_of("err|warn")), ["warn 2", "err 3"]),
        (Search(9, pattern=pattern_of("^err")), ["err 1", "err 3"]),
        (Search(2), ["fine 3", "err 3"]),
    ],
)
def test_the_last_matching_lines_of_each_log_are_printed(
    capsys: pytest.CaptureFixture[str], search: Search, said: list[str]
) -> None:
    """An expression is searched in all lines that the server returns, not only in the last few."""
    lines = ["err 1", "warn 2", "fine 3", "err 3"]

    def shows(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, text="".join(f"{each}\n" for each in lines[-int(request.url.params["tail"]) :]))

    printer = Printer([Source(0)], labelled=None)
    read_all(client(shows), "train", [Source(0)], search, printer)
    assert capsys.readouterr().out.splitlines() == said
    assert printer.lines == len(said)


def test_logs_are_saved_to_a_file_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One that cannot be read is reported, and leaves no file."""

    def shows(request: httpx.Request) -> httpx.Response:
        replica = request.url.params["replica"]
        return problem(409, "there is no place yet") if replica == "1" else httpx.Response(200, text=f"of {replica}\n")

    sources = [Source(0), Source(1), Source(2, "side")]
    files = Files(tmp_path / "new", "train", sources)
    read_all(client(shows), "train", sources, Search(10), files)
    written = {each.name: each.read_text() for each in (tmp_path / "new").iterdir()}
    assert written == {"train-0.log": "of 0\n", "train-2-side.log": "of 2\n"}
    assert "[1] error: there is no place yet" in capsys.readouterr().err
    with pytest.raises(RejectedError, match=r"--save: .* cannot be written: File exists"):
        Files(tmp_path / "new" / "train-0.log", "train", sources).print_all(Source(0), [])


@pytest.mark.parametrize(("labelled", "line"), [(None, "x\n"), (True, "[4/main] x\n"), (False, "x\n")])
def test_one_log_alone_is_printed_as_it_is(
    capsys: pytest.CaptureFixture[str], labelled: bool | None, line: str
) -> None:
    """Unless a user asks for it."""
    source = Source(4, "main")
    Printer([source], labelled=labelled).print(source, "x")
    assert capsys.readouterr().out == line


def test_labels_have_colours_on_a_terminal_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replicas are distinguished at a glance; no one who set NO_COLOR sees any."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    sources = [Source(0), Source(1)]
    for source in sources:
        Printer(sources, labelled=None).print(source, "x")
    monkeypatch.setenv("NO_COLOR", "1")
    Printer(sources, labelled=None).print(sources[0], "x")
    assert capsys.readouterr().out == "\x1b[36m[0]\x1b[0m x\n\x1b[32m[1]\x1b[0m x\n[0] x\n"


class Lines(httpx.AsyncByteStream):
    """A log that is followed: some lines, then an end when it may."""

    def __init__(self, name: str, texts: list[str], may_end: asyncio.Event, ended: asyncio.Event) -> None:
        self._name = name
        self._texts = texts
        self._may_end = may_end
        self._ended = ended

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for at, text in enumerate(self._texts, 1):
            yield b"id: 1~%b.%d\ndata: %b\n\n" % (self._name.encode(), at, orjson.dumps({"text": text}))
        await self._may_end.wait()
        yield b"event: end\ndata: {}\n\n"

    async def aclose(self) -> None:
        """Note that no one reads any more."""
        self._ended.set()


def test_logs_that_are_followed_end_each_for_itself(capsys: pytest.CaptureFixture[str]) -> None:
    """One that fails, and one that is over, leave the others; what they wrote last comes after that."""

    async def run() -> Printer:
        at_once, over = asyncio.Event(), asyncio.Event()
        at_once.set()

        def shows(request: httpx.Request) -> httpx.Response:
            match request.url.params["replica"]:
                case "0":
                    return problem(422, "container 'x' not found; available: main")
                case "1":
                    return httpx.Response(200, stream=Lines("b", ["one"], at_once, over))
                case _:
                    return httpx.Response(200, stream=Lines("c", ["two", "three"], over, asyncio.Event()))

        sources = [Source(0), Source(1), Source(2)]
        printer = Printer(sources, labelled=None)
        requesting = AsyncClient(SERVER, TOKEN, transport=httpx.MockTransport(shows))
        await follow_all(requesting, "train", sources, Search(10), printer)
        return printer

    printer = asyncio.run(run())
    said = capsys.readouterr()
    assert sorted(said.out.splitlines()) == ["[1] one", "[2] three", "[2] two"]
    assert said.err == "[0] error: container 'x' not found; available: main\n"
    assert printer.code == 2


def test_who_stops_lets_go_of_all() -> None:
    """As with Ctrl-C: no connection stays."""
    held = [asyncio.Event() for _ in range(3)]

    async def run() -> None:
        never = asyncio.Event()
        begun: list[str] = []

        def shows(request: httpx.Request) -> httpx.Response:
            replica = request.url.params["replica"]
            begun.append(replica)
            return httpx.Response(200, stream=Lines(replica, [], never, held[int(replica)]))

        sources = [Source(0), Source(1), Source(2)]
        requesting = AsyncClient(SERVER, TOKEN, transport=httpx.MockTransport(shows))
        following = asyncio.create_task(
            follow_all(requesting, "train", sources, Search(10), Printer(sources, labelled=None))
        )
        while len(begun) < len(sources):
            await asyncio.sleep(0)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)

    asyncio.run(run())
    assert all(each.is_set() for each in held)
