"""Attackers and measurements of `script/bench siege`."""

from __future__ import annotations

import asyncio
from inspect import signature
from random import Random

import httptools
import orjson
import pytest
from websockets.frames import Frame, Opcode
from websockets.streams import StreamReader

from benchmarks.samples import Sample
from benchmarks.siege.attackers import ATTACKS, Attackers, Target
from benchmarks.siege.attacks import (
    BINARY,
    BODY_BYTES,
    GIANT_HEADS,
    JSON_BOMBS,
    SOCKET_MESSAGES,
    TEXT,
    UPGRADE,
    YAML_BOMBS,
    bad_requests,
    frame,
    request,
)
from benchmarks.siege.cases import Phase, growth_mib
from benchmarks.siege.server import make_mixed
from seaway.api.http.connections import LARGEST_HEAD
from seaway.bootstrap.clusters import make_clusters
from seaway.bootstrap.settings import ServerSettings
from seaway.domain.errors import RejectedError
from seaway.wire.job_in import JobIn
from seaway.wire.reading import read_json, read_yaml_message

LIMIT = ServerSettings().body_limit_bytes


class Read:
    """Result of an HTTP parser."""

    def __init__(self, data: bytes) -> None:
        self.headers: list[tuple[str, str]] = []
        self.body, self.complete = b"", False
        parser = httptools.HttpRequestParser(self)
        try:
            parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.complete = True
        self.method = parser.get_method()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect a header."""
        self.headers.append((name.decode().lower(), value.decode()))

    def on_body(self, body: bytes) -> None:
        """Collect a part of the body."""
        self.body += body

    def on_message_complete(self) -> None:
        """Record the end of the request."""
        self.complete = True


def test_requests_are_complete() -> None:
    """Every request of an attacker has the framing of HTTP, so that the server judges its content."""
    read = Read(request("POST", "/x", "sw_a_b", b"{}", Content_Type="application/json"))
    assert (read.method, read.body, read.complete) == (b"POST", b"{}", True)
    assert ("content-type", "application/json") in read.headers
    assert ("authorization", "Bearer sw_a_b") in read.headers
    for each in (*bad_requests(Random(0)), UPGRADE):
        assert Read(each).complete, each[:80]


@pytest.mark.parametrize("name", GIANT_HEADS)
def test_giant_heads_never_end(name: str) -> None:
    """A giant head is longer than the limit, and no request is complete within it."""
    head = GIANT_HEADS[name]
    assert len(head.begin) + 2 * len(head.piece) > LARGEST_HEAD
    assert not Read(head.begin + head.piece).complete


@pytest.mark.parametrize("name", JSON_BOMBS)
def test_json_bombs_are_rejected_within_the_limit_of_bodies(name: str) -> None:
    """The server has to read each body, and rejects it with a reason."""
    body = JSON_BOMBS[name]()
    assert BODY_BYTES // 3 < len(body) <= LIMIT
    with pytest.raises(RejectedError):
        read_json(JobIn, body)


@pytest.mark.parametrize("name", YAML_BOMBS)
def test_yaml_bombs_are_rejected_within_the_limit_of_bodies(name: str) -> None:
    """The server has to read each body, and rejects it with a reason, not with an exhausted stack or memory."""
    body = YAML_BOMBS[name]()
    assert len(body) <= LIMIT
    with pytest.raises(RejectedError):
        read_yaml_message(JobIn, body)


def parsed(data: bytes) -> list[Frame]:
    """Return the complete frames in some bytes from a client."""
    reader = StreamReader()
    reader.feed_data(data)
    found: list[Frame] = []
    while True:
        parsing = Frame.parse(reader.read_exact, mask=True)
        try:
            next(parsing)
        except StopIteration as end:
            found.append(end.value)
        else:  # it waits for more
            return found


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536])
def test_frames_are_masked_and_have_their_length(size: int) -> None:
    """A parser of web sockets reads the payload of a frame of each length."""
    payload = bytes(range(256)) * (size // 256) + bytes(size % 256)
    (found,) = parsed(frame(payload, BINARY))
    assert (found.opcode, found.data, found.fin) == (Opcode.BINARY, payload, True)


def test_unfinished_frames_and_fragments_never_end() -> None:
    """The parser waits for the rest of an announced length, and for the last fragment."""
    assert parsed(frame(b"x" * 100, TEXT, announced=1 << 20)) == []
    assert parsed(b"".join(SOCKET_MESSAGES["unfinished"]())) == []
    fragments = parsed(b"".join(SOCKET_MESSAGES["fragments"]()))
    assert [each.opcode for each in fragments[:2]] == [Opcode.TEXT, Opcode.CONT]
    assert not any(each.fin for each in fragments)


def test_attackers_keep_their_rate_and_report_how_attempts_end() -> None:
    """Attempts begin at the rate of their kind, from its addresses, and each is counted once with its end."""

    async def attack() -> tuple[Attackers, set[str]]:
        sources: set[str] = set()

        async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            sources.add(writer.get_extra_info("peername")[0])
            await reader.read(10)
            writer.write(b"HTTP/1.1 401 Unauthorized\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(refuse, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        attackers = Attackers(Target(f"http://127.0.0.1:{port}", 0.2, [], [], ["bad tokens, 200 addresses"]))
        await attackers.run()
        server.close()
        return attackers, sources

    attackers, sources = asyncio.run(attack())
    (tally,) = attackers.tallies.values()
    (wanted,) = (each for each in ATTACKS if each.name == "bad tokens, 200 addresses")
    assert tally.tried + tally.skipped == pytest.approx(0.2 * wanted.per_s, abs=1)
    assert sum(tally.ends.values()) == tally.tried
    assert set(tally.ends) <= {"401", "left at the end"}
    assert sources <= set(wanted.addresses)
    assert tally.open == 0


def test_growth_of_memory_is_from_the_end_of_a_phase_to_the_peak_of_the_next() -> None:
    """Growth before the siege, or after it, does not count."""
    memory = {0: 100.0, 9: 300.0, 15: 390.0, 19: 350.0, 25: 900.0}
    samples = [Sample(at, mib, mib, 0, 0, 0.0) for at, mib in memory.items()]
    assert growth_mib(samples, Phase("before", 0, 10), Phase("siege", 10, 20)) == 90.0


def test_bombs_are_json() -> None:
    """Bodies that shall be valid JSON are, so that the server must read all of it."""
    for name in ("errors", "unknown fields", "list of numbers", "long text", "duplicated fields"):
        assert orjson.loads(JSON_BOMBS[name]())


def test_its_clusters_are_made_as_the_server_makes_them() -> None:
    """The server passes the same arguments."""
    assert list(signature(make_mixed).parameters) == list(signature(make_clusters).parameters)
