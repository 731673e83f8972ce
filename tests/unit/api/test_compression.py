"""Metrics are compressed for clients that accept it."""

from __future__ import annotations

import gzip

import pytest

from seaway.api.http.replies import packed, takes_gzip
from tests.unit.api.rig import Rig

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("path", ["/metrics?cluster=a", "/api/v1/metrics"])
async def test_who_requests_for_gzip_gets_the_same_packed(rig: Rig, path: str) -> None:
    """Prometheus always accepts gzip; other clients get plain text, and caches get a Vary header."""
    async with rig.client("operator") as client:
        plain = await client.get(path, headers={"accept-encoding": "identity"})
        request = client.build_request("GET", path, headers={"accept-encoding": "gzip"})
        answer = await client.send(request, stream=True)
        raw = b"".join([piece async for piece in answer.aiter_raw()])
    assert (plain.headers.get("content-encoding"), answer.headers["content-encoding"]) == (None, "gzip")
    assert plain.headers["vary"] == answer.headers["vary"] == "accept-encoding"
    assert answer.headers["content-type"] == plain.headers["content-type"]
    assert gzip.decompress(raw) == plain.content
    assert len(raw) < len(plain.content) / 3


@pytest.mark.parametrize(
    ("header", "takes"),
    [("gzip", True), ("deflate, GZIP;q=0.5", True), ("gzip;q=0", False), ("gzip; q=0.000", False), ("br", False)],
)
def test_what_a_client_takes_is_what_it_names(header: str, *, takes: bool) -> None:
    """A weight of zero is a refusal."""
    assert takes_gzip(header) is takes


def test_a_long_answer_is_packed_while_it_is_made() -> None:
    """Compressed parts are sent before the rest is generated."""
    made = 0

    def pieces() -> list[bytes]:
        nonlocal made
        made += 1
        return [b"%d" % number for number in range(made * 50_000, (made + 1) * 50_000)]

    first = next(packed(b"".join(pieces()) for _ in range(100)))
    assert first
    assert made < 10
