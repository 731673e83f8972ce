"""All attackers in one process: ``python -m benchmarks.siege.attackers``, which reads a `Target` as JSON.

Each kind of attack begins a fixed number of attempts per second, each from one of its addresses on loopback, and holds
a connection as long as the server lets it. The program prints a line of JSON at the end: what it tried, what it sent,
and how the attempts ended.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from urllib.parse import urlsplit

import uvloop

from benchmarks.siege.attacks import (
    BODY_BYTES,
    GIANT_HEADS,
    JSON_BOMBS,
    SOCKET_MESSAGES,
    UPGRADE,
    YAML_BOMBS,
    bad_requests,
    request,
)
from seaway.api.http.connections import raise_file_limit
from seaway.web.cookies import TOKEN

MOST_S = 90.0
"""Time after which an attacker gives up an attempt, seconds: longer than any limit of the server."""

MAX_OPEN = 4000
"""Maximum number of open connections of one kind of attack."""

LATE_S = 1.0
"""Delay after which attempts are skipped, because this process lacks CPU time, seconds."""

CLIENT = re.compile(rb"'client_id': '([0-9a-f-]+)'")


@dataclass(slots=True)
class Target:
    """The attacked server.

    Attributes
    ----------
    url
        URL of the server.
    seconds
        Duration of the attack.
    tokens
        Valid tokens of a few users, who are attackers too.
    hung_jobs
        Jobs whose logs hang.
    attacks
        Names of the kinds of attacks; empty for all.
    page
        ID of the page that an attacker loaded last.
    """

    url: str
    seconds: float
    tokens: list[str]
    hung_jobs: list[str]
    attacks: list[str]
    page: bytes = b""


@dataclass(slots=True)
class Tally:
    """Results of the attempts of one kind."""

    tried: int = 0
    skipped: int = 0
    open: int = 0
    most_open: int = 0
    sent_bytes: int = 0
    ends: Counter[str] = field(default_factory=Counter)


class Attempt:
    """One connection of an attacker.

    Parameters
    ----------
    number
        Number of the attempt within its kind, from which variants are chosen.
    """

    def __init__(
        self, target: Target, number: int, tally: Tally, streams: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    ) -> None:
        self.target, self.number = target, number
        self._tally = tally
        self._reader, self._writer = streams

    @property
    def token(self) -> str:
        """A valid token."""
        return self.target.tokens[self.number % len(self.target.tokens)]

    async def send(self, data: bytes) -> None:
        """Send bytes as fast as the server takes them."""
        self._writer.write(data)
        self._tally.sent_bytes += len(data)
        await self._writer.drain()

    async def read(self) -> bytes:
        """Return what the server sends next; nothing if it closes or resets the connection."""
        try:
            return await self._reader.read(65_536)
        except ConnectionError:
            return b""

    async def exchange(self, *pieces: bytes) -> str:
        """Send pieces until the server responds or closes the connection, and return how the attempt ended."""
        answer = asyncio.create_task(self.read())
        try:
            for piece in pieces:
                await self.send(piece)
                await asyncio.sleep(0.001)  # until a response is noticed
                if answer.done():
                    break
        except (
            ConnectionError,
            RuntimeError,
        ):  # the response is still there
            pass
        return _end(await answer)

    async def drip(self, every_s: float, piece: bytes = b"") -> str:
        """Send a piece at intervals until the server responds or closes the connection."""
        answer = asyncio.create_task(self.read())
        while not answer.done():
            if piece:
                await self.send(piece)
            await asyncio.wait([answer], timeout=every_s)
        return _end(await answer)

    async def sip(self) -> str:
        """Read a byte per second until the server closes the connection."""
        while await self._reader.read(1):
            await asyncio.sleep(1.0)
        return "closed"

    async def read_all(self) -> str:
        """Read until the server closes the connection."""
        while await self.read():
            pass
        return "closed"


def _end(answer: bytes) -> str:
    """Return the status of a response; ``closed`` without a response."""
    if not answer:
        return "closed"
    return answer[9:12].decode("latin-1") if answer.startswith(b"HTTP/1.1 ") else "data"


def _one_of(kinds: dict[str, Callable[[], bytes]]) -> list[bytes]:
    return [make() for make in kinds.values()]


async def slow_head(attempt: Attempt) -> str:
    """Send a head without end, one header per second."""
    await attempt.send(b"GET /api/v1/jobs HTTP/1.1\r\n")
    return await attempt.drip(1.0, b"x: y\r\n")


async def giant_head(attempt: Attempt) -> str:
    """Send a head of up to 2 MiB as fast as possible."""
    heads = list(GIANT_HEADS.values())
    head = heads[attempt.number % len(heads)]
    return await attempt.exchange(head.begin, *[head.piece] * 32)


async def half_open(attempt: Attempt) -> str:
    """Connect and send nothing."""
    return await attempt.drip(MOST_S)


BAD = bad_requests(Random(0))


async def bad_token(attempt: Attempt) -> str:
    """Send a request without a valid credential."""
    return await attempt.exchange(BAD[attempt.number % len(BAD)])


IN_JSON, IN_YAML = _one_of(JSON_BOMBS), _one_of(YAML_BOMBS)


async def json_bomb(attempt: Attempt) -> str:
    """Submit a large, deep or wrong body in JSON, now and then as a dry run."""
    body, turn = IN_JSON[attempt.number % len(IN_JSON)], attempt.number // len(IN_JSON)
    path = "/api/v1/jobs?dry_run=true" if turn % 4 == 3 else "/api/v1/jobs"
    return await attempt.exchange(request("POST", path, attempt.token, body, Content_Type="application/json"))


async def yaml_bomb(attempt: Attempt) -> str:
    """Submit such a body in YAML."""
    body = IN_YAML[attempt.number % len(IN_YAML)]
    sent = request("POST", "/api/v1/jobs", attempt.token, body, Content_Type="application/yaml")
    return await attempt.exchange(sent)


MESSAGES = [make() for make in SOCKET_MESSAGES.values()]


async def socket_message(attempt: Attempt) -> str:
    """Open a web socket of a page, or of none, and send binary, endless or senseless messages."""
    at = attempt.number % (2 * len(MESSAGES))
    if at == 0:
        await _load_page(attempt)
        return "page"
    cookie = f"{TOKEN}={attempt.target.tokens[0]}".encode()
    page = attempt.target.page if at % 2 else b"none"
    await attempt.send(
        UPGRADE.replace(b"?EIO", b"?client_id=%b&document_id=%b&tab_id=x&next_message_id=0&EIO" % (page, page)).replace(
            b"\r\n\r\n", b"\r\nCookie: %b\r\n\r\n" % cookie
        )
    )
    answer = await attempt.read()
    if not answer.startswith(b"HTTP/1.1 101"):
        return _end(answer)
    end = asyncio.create_task(attempt.read_all())
    try:
        for piece in MESSAGES[at // 2]:
            await attempt.send(piece)
    except ConnectionError:
        pass
    await end
    return "closed"


async def _load_page(attempt: Attempt) -> None:
    """Load a page, whose sockets later attempts use."""
    cookie = f"{TOKEN}={attempt.target.tokens[0]}"
    await attempt.send(request("GET", "/jobs", Cookie=cookie, Connection="close"))
    text = b""
    while piece := await attempt.read():
        text += piece
    if found := CLIENT.search(text):
        attempt.target.page = found[1]


async def hung_log(attempt: Attempt) -> str:
    """Read or follow a log whose kubelet never answers, and leave after 20 s."""
    jobs = attempt.target.hung_jobs
    path = f"/api/v1/jobs/{jobs[attempt.number % len(jobs)]}/logs"
    path += "/follow" if attempt.number % 5 == 4 else "?tail=1000"
    await attempt.send(request("GET", path, attempt.token))
    async with asyncio.timeout(20):
        return _end(await attempt.read())


async def slow_reader(attempt: Attempt) -> str:
    """Request large responses and events, and read a byte a second."""
    paths = ("/openapi.json", "/api/v1/events", "/api/v1/jobs?limit=100", "/api/v1/events")
    path = paths[attempt.number % len(paths)]
    await attempt.send(request("GET", path, attempt.token) * (16 if path == "/openapi.json" else 1))
    return await attempt.sip()


async def large_answers(attempt: Attempt) -> str:
    """Submit an array with a matrix of a megabyte once, then request all its tasks, and read a byte a second."""
    if attempt.number == 0:
        matrix = {"A": [f"{at:04}{'x' * 4090}" for at in range(235)], "B": list("12345")}
        job = {"name": "large", "run": {"image": "u"}, "resources": {"cpu": "1m"}, "matrix": matrix}
        body = json.dumps(job).encode()
        return await attempt.exchange(
            request("POST", "/api/v1/jobs", attempt.token, body, Content_Type="application/json")
        )
    path = ("/api/v1/jobs/large/tasks?limit=1000", "/api/v1/jobs/large")[attempt.number % 2]
    await attempt.send(request("GET", path, attempt.token))
    return await attempt.sip()


async def slow_body(attempt: Attempt) -> str:
    """Announce a large body, send a part of it, and the rest byte by byte."""
    head = request("POST", "/api/v1/jobs", attempt.token, b"", Content_Type="application/json")
    await attempt.send(
        head.replace(b"Content-Length: 0", b"Content-Length: %d" % BODY_BYTES) + b" " * (BODY_BYTES // 2)
    )
    return await attempt.drip(1.0, b" ")


@dataclass(frozen=True, slots=True)
class Attack:
    """One kind of attack.

    Attributes
    ----------
    per_s
        Attempts per second.
    addresses
        Source addresses, in turn.
    """

    name: str
    per_s: float
    addresses: Sequence[str]
    attempt: Callable[[Attempt], Awaitable[str]]


def _addresses(net: int, count: int) -> list[str]:
    return [f"127.0.{net}.{host}" for host in range(1, count + 1)]


ATTACKS = (
    Attack("slow heads", 10, _addresses(1, 5), slow_head),
    Attack("giant heads", 4, _addresses(2, 4), giant_head),
    Attack("half-open sockets, one address", 80, _addresses(3, 1), half_open),
    Attack("half-open sockets, 200 addresses", 40, _addresses(4, 200), half_open),
    Attack("bad tokens, one address", 50, _addresses(5, 1), bad_token),
    Attack("bad tokens, 200 addresses", 50, _addresses(6, 200), bad_token),
    Attack("bombs in JSON", 1, _addresses(7, 4), json_bomb),
    Attack("bombs in YAML", 1, _addresses(8, 4), yaml_bomb),
    Attack("web-socket messages", 2, _addresses(9, 4), socket_message),
    Attack("logs of hung kubelets", 5, _addresses(10, 4), hung_log),
    Attack("slow readers", 4, _addresses(11, 4), slow_reader),
    Attack("large answers", 4, _addresses(13, 4), large_answers),
    Attack("slow bodies", 4, _addresses(12, 4), slow_body),
)
"""All kinds of attacks with their rates. They are cheap for the attacker, so that the figures are the server's."""


class Attackers:
    """Attackers of all kinds."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._attacks = [each for each in ATTACKS if not target.attacks or each.name in target.attacks]
        self._tasks: set[asyncio.Task[None]] = set()
        self.tallies = {attack.name: Tally() for attack in self._attacks}

    async def run(self) -> None:
        """Attack until the time is over, and disconnect."""
        until_s = time.monotonic() + self._target.seconds
        await asyncio.gather(*(self._attack(each, until_s) for each in self._attacks))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _attack(self, attack: Attack, until_s: float) -> None:
        tally, number, due_s = self.tallies[attack.name], 0, time.monotonic()
        while due_s < until_s:
            await asyncio.sleep(due_s - time.monotonic())
            if time.monotonic() - due_s > LATE_S or tally.open >= MAX_OPEN:
                tally.skipped += 1
            else:
                task = asyncio.create_task(self._try(attack, number, tally))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            number += 1
            due_s += 1 / attack.per_s

    async def _try(self, attack: Attack, number: int, tally: Tally) -> None:
        parts = urlsplit(self._target.url)
        source = attack.addresses[number % len(attack.addresses)]
        tally.tried += 1
        tally.open += 1
        tally.most_open = max(tally.most_open, tally.open)
        writer: asyncio.StreamWriter | None = None
        end = "left at the end"
        try:
            async with asyncio.timeout(MOST_S):
                reader, writer = await asyncio.open_connection(
                    parts.hostname, parts.port, local_addr=(source, 0), limit=65_536
                )
                end = await attack.attempt(Attempt(self._target, number, tally, (reader, writer)))
        except TimeoutError:
            end = "gave up"
        except (OSError, RuntimeError):  # uvloop raises the latter when the connection is closed
            end = "reset"
        finally:
            tally.open -= 1
            tally.ends[end] += 1
            if writer:
                writer.transport.abort()


async def main() -> None:
    """Attack, and print the result."""
    raise_file_limit(2 * MAX_OPEN)
    attackers = Attackers(Target(**json.loads(sys.stdin.readline())))
    await attackers.run()
    print(
        json.dumps(
            {
                name: {
                    "tried": tally.tried,
                    "skipped": tally.skipped,
                    "most_open": tally.most_open,
                    "sent_bytes": tally.sent_bytes,
                    "ends": dict(tally.ends.most_common()),
                }
                for name, tally in attackers.tallies.items()
            }
        )
    )


if __name__ == "__main__":
    uvloop.run(main())
