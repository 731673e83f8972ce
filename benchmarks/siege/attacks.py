"""Bytes that hostile clients send: request heads, credentials, bodies and web-socket frames."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from seaway.wire.reading import MAX_SUBMITTED

MIB = 1 << 20
BODY_BYTES = 943_718
"""Size of large bodies, bytes: 0.9 MiB, which is less than the default limit of 1 MiB."""

MASK = b"\x11\x22\x33\x44"
TEXT, BINARY, PING = 1, 2, 9
"""Opcodes of web-socket frames."""


def request(method: str, path: str, token: str = "", body: bytes | None = None, **headers: str) -> bytes:
    """Return a request; underscores in the names of headers become hyphens."""
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
    lines += [f"Authorization: Bearer {token}"] if token else []
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    lines += [f"Content-Length: {len(body)}"] if body is not None else []
    return "\r\n".join((*lines, "", "")).encode("latin-1") + (body or b"")


@dataclass(frozen=True, slots=True)
class GiantHead:
    """An endless request head: its begin, and the piece that follows again and again."""

    begin: bytes
    piece: bytes


_CHUNKED = b"POST /api/v1/jobs HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"

GIANT_HEADS = {
    "one header": GiantHead(b"GET / HTTP/1.1\r\nx: ", b"a" * 65_536),
    "many headers": GiantHead(b"GET / HTTP/1.1\r\n", b"a:b\r\n" * 10_000),
    "path": GiantHead(b"GET /", b"a" * 65_536),
    "empty lines": GiantHead(b"", b"\r\n" * 32_768),
    "trailers": GiantHead(_CHUNKED + b"0\r\n", b"a:b\r\n" * 10_000),
    "chunk extension": GiantHead(_CHUNKED + b"1", b";a=b" * 16_384),
}


def bad_requests(random: Random) -> list[bytes]:
    """Return requests without a valid credential: missing, malformed, unknown, too long, foreign, or duplicated."""
    unknown = f"sw_{random.randbytes(6).hex()}_{random.randbytes(24).hex()}"
    jwt = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJyb290Iiwic2Vhd2F5X3JvbGUiOiJhZG1pbiJ9."
    job = b'{"name": "x", "resources": {"gpus": 1}}'
    return [
        request("GET", "/api/v1/jobs"),
        request("GET", "/api/v1/jobs", unknown),
        request("GET", "/api/v1/events", unknown[:20]),
        request("GET", "/api/v1/jobs", unknown + "x" * 9000),
        request("GET", "/api/v1/jobs", jwt),
        request("GET", "/api/v1/jobs", Authorization="Basic cm9vdDpyb290"),
        request("GET", "/api/v1/jobs", unknown, Authorization=f"Bearer {unknown}"),
        request("POST", "/api/v1/jobs", unknown, job, Content_Type="application/json"),
        request("POST", "/api/v1/tokens", "", job, Content_Type="application/json"),
        request("POST", "/api/v1/jobs", unknown, b" " * 65_536, Content_Type="application/json"),
    ]


def _json_errors() -> bytes:
    values = ",".join(f'"k{number}":[1]' for number in range(BODY_BYTES // 16))
    return f'{{"name":"x","labels":{{{values}}}}}'.encode()


def _many(begin: str, piece: str, end: str, size: int = BODY_BYTES) -> bytes:
    return (begin + piece * ((size - len(begin) - len(end)) // len(piece)) + end).encode()


JSON_BOMBS: dict[str, Callable[[], bytes]] = {
    "errors": _json_errors,
    "unknown fields": lambda: b"{%b}" % ",".join(f'"f{at}":{at}' for at in range(BODY_BYTES // 18)).encode(),
    "deep lists": lambda: b'{"name":' + b"[" * 400_000 + b"]" * 400_000 + b"}",
    "deep objects": lambda: b'{"name":' + b'{"a":' * 150_000 + b"1" + b"}" * 150_000 + b"}",
    "unclosed": lambda: b"[" * BODY_BYTES,
    "list of numbers": lambda: _many('{"name":[', "1,", "1]}"),
    "duplicated fields": lambda: _many("{", '"a":1,', '"a":1}'),
    "long text": lambda: _many('{"name":"', "a", '"}'),
    "long number": lambda: _many('{"priority":', "9", "}"),
    "not JSON": lambda: _many('{"name":"x"', " ", "!"),
}
"""Bodies in JSON that are large, deep or wrong in many places."""


def _aliases() -> bytes:
    """Return nine levels of nine aliases: 9 ** 9 values."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 9)}]" for at in range(1, 9)]
    return "\n".join(lines).encode()


YAML_BOMBS: dict[str, Callable[[], bytes]] = {
    "aliases": _aliases,
    "alias of itself": lambda: b"name: &a [*a, *a]",
    "merged aliases": lambda: b"a: &a {x: 1}\n" + b"\n".join(b"b%d: {<<: [*a, *a, *a, *a]}" % at for at in range(9000)),
    "deep lists": lambda: b"name: " + b"[" * 400_000,
    "deep blocks": lambda: b"\n".join(b" " * at + b"- " for at in range(1300)),
    "list of numbers": lambda: _many("name: [", "1,", "1]"),
    "as many values as allowed": lambda: _many("name: [", "1,", "1]", 2 * (MAX_SUBMITTED - 10)),
    "duplicated fields": lambda: _many("", "a: 1\n", ""),
    "long text": lambda: _many("name: '", "a", "'"),
    "tags": lambda: b"name: !!python/object/apply:os.system [exit]",
    "anchors": lambda: b"\n".join(b"k%d: &a%d 1" % (at, at) for at in range(40_000)),
    "directives": lambda: _many("", "%TAG ! tag:x,2000:\n", "--- 1"),
    "complex keys": lambda: _many("", "? [a]\n: 1\n", ""),
}
"""The same in YAML, with expanding aliases."""


def frame(payload: bytes, opcode: int, *, final: bool = True, announced: int | None = None) -> bytes:
    """Return a masked web-socket frame, whose length may be announced differently from its payload.

    References
    ----------
    RFC 6455, section 5.2: base framing protocol.
    """
    length = len(payload) if announced is None else announced
    first = (0x80 if final else 0) | opcode
    if length < 126:
        head = struct.pack("!BB", first, 0x80 | length)
    elif length < 1 << 16:
        head = struct.pack("!BBH", first, 0x80 | 126, length)
    else:
        head = struct.pack("!BBQ", first, 0x80 | 127, length)
    stream = MASK * (len(payload) // len(MASK) + 1)
    masked = (int.from_bytes(payload, "big") ^ int.from_bytes(stream[: len(payload)], "big")).to_bytes(
        len(payload), "big"
    )
    return head + MASK + masked


UPGRADE = request(
    "GET",
    "/_nicegui_ws/socket.io/?EIO=4&transport=websocket",
    Connection="Upgrade",
    Upgrade="websocket",
    Sec_WebSocket_Version="13",
    Sec_WebSocket_Key="AAAAAAAAAAAAAAAAAAAAAA==",
)

SOCKET_MESSAGES: dict[str, Callable[[], list[bytes]]] = {
    "binary": lambda: [frame(b"\0" * MIB, BINARY)],
    "announced binary": lambda: [
        frame(b'451-["event",{"_placeholder":true,"num":0}]', TEXT),
        frame(b"\0" * MIB, BINARY),
    ],
    "unfinished": lambda: [frame(b"\0" * (MIB * 7 // 4), BINARY, announced=2 * MIB)],
    "fragments": lambda: [frame(b"4" * 65_536, TEXT, final=False)] + [frame(b"4" * 65_536, 0, final=False)] * 24,
    "announced too large": lambda: [frame(b"\0" * 65_536, BINARY, announced=1 << 40)],
    "pings": lambda: [frame(b"\0" * 125, PING)] * 5000,
    "nonsense": lambda: [frame(b'40{"a":' + b"[" * 100_000, TEXT)],
    "large text": lambda: [frame(b"42" + _many("[", "[],", "[]]", MIB * 15 // 8), TEXT)],
}
"""Frames that follow an upgrade to a web socket."""
