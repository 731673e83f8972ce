"""Requests that are broken, too large, or of the wrong kind."""

from __future__ import annotations

import asyncio
import gzip
import re
from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi.responses import PlainTextResponse
from starlette.types import Message
from uvicorn.protocols.utils import ClientDisconnected

import seaway.api.http.guard as guard_module
from seaway.api.http.replies import BytesInFlight
from seaway.learning.policies.file import LARGEST_FILE
from tests.unit.api.rig import JOB, Rig, make_rig

pytestmark = pytest.mark.anyio
JOBS = "/api/v1/jobs"
JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("GET", "/api/v1/jobs/", 404),
        ("GET", "/api/v2/jobs", 404),
        ("DELETE", "/api/v1/jobs", 405),
        ("PUT", "/healthz", 405),
        ("GET", "/api/v1/jobs?limit=x", 422),
    ],
)
async def test_every_error_is_a_problem(rig: Rig, method: str, path: str, status: int) -> None:
    """Every error has problem details with its status and path."""
    async with rig.client() as client:
        answer = await client.request(method, path)
    assert answer.status_code == answer.json()["status"] == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["instance"] == path.partition("?")[0]
    assert set(answer.json()) >= {"type", "title", "detail"}
    if status == 405:
        assert answer.headers["allow"] == ("GET, POST" if path == JOBS else "GET")


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({}, b"{}"),
        ({"content-type": "text/plain"}, b"{}"),
        ({"content-type": "application/x-www-form-urlencoded"}, b"name=a"),
        ({"content-type": "application/json; charset=latin-1"}, b"{}"),
        ({**JSON, "content-encoding": "gzip"}, gzip.compress(b"{}", mtime=0)),
    ],
)
async def test_bodies_of_another_kind_are_refused(rig: Rig, headers: dict[str, str], body: bytes) -> None:
    """A body that is not plain JSON in UTF-8 gets 415."""
    async with rig.client() as client:
        assert (await client.post(JOBS, content=body, headers=headers)).status_code == 415


async def test_bodies_may_not_be_too_large(rig: Rig) -> None:
    """A body above the limit gets 413, with a length or in chunks."""
    limit = rig.plane.settings.body_limit_bytes

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(limit // 65_536 + 1):
            yield b" " * 65_536

    async with rig.client() as client:
        for path in (JOBS, "/api/v1/tokens"):
            reported = await client.post(path, content=b" " * (limit + 1), headers=JSON)
            assert reported.status_code == 413
            in_pieces = await client.post(path, content=pieces(), headers=JSON)
            assert in_pieces.status_code == 413
        assert (await client.post(JOBS, content=b"x", headers={**JSON, "content-length": "1e9"})).status_code == 413


async def test_a_header_that_counts_is_present_once(rig: Rig) -> None:
    """Duplicates of a significant header are rejected, because the meaning is ambiguous."""
    async with rig.client() as client:
        for name in ("idempotency-key", "content-type", "authorization", "if-match"):
            answer = await client.post(JOBS, json=JOB, headers=[(name, "a"), (name, "b")])
            assert answer.status_code == 400, name
            assert name in answer.json()["detail"]


@pytest.mark.parametrize(
    ("base", "sent"),
    [("https://seaway.example.com", True), ("http://seaway.example.com", False), ("https://localhost:8080", False)],
)
async def test_browsers_keep_to_https(rig: Rig, base: str, sent: bool) -> None:
    """Responses over TLS have HSTS, except for names that other servers of the machine share."""
    async with httpx.AsyncClient(transport=httpx.ASGITransport(rig.app), base_url=base) as client:
        for path in ("/healthz", "/api/v1/jobs"):
            answer = await client.get(path)
            assert ("strict-transport-security" in answer.headers) is sent
            assert answer.headers["x-content-type-options"] == "nosniff"


async def test_a_policy_file_has_a_bound_of_its_own(rig: Rig) -> None:
    """The format's whole size is accepted, from programs and pages, whatever the limit of other bodies."""
    async with rig.client("admin") as client:
        for path, status in (("/api/v1/policies", 422), ("/_nicegui/client/x/upload/1", 404)):
            for size, expected in ((LARGEST_FILE, status), (LARGEST_FILE + 1, 413)):
                answer = await client.post(path, content=b" " * size, headers={"content-type": "application/zip"})
                assert answer.status_code == expected, (path, size)


async def test_without_tokens_only_this_machine_s_own_pages_may_ask() -> None:
    """Without authentication, pages of other sites and foreign host names get nothing."""
    rig = make_rig(no_auth=True)
    async with rig.client("") as client:
        assert (await client.post(JOBS, json=JOB)).status_code == 201
        anybody = {"name": "anonymous", "role": "admin", "tenant": "", "max_body_bytes": 1_048_576, "currency": ""}
        assert (await client.get("/api/v1/me")).json() == {**anybody, "max_policy_file_bytes": LARGEST_FILE}
        assert (await client.get(JOBS, headers={"host": "evil.example:8080"})).status_code == 403
        assert (await client.post(JOBS, json=JOB, headers={"origin": "http://evil.example"})).status_code == 403
        assert (await client.delete(f"{JOBS}/train", headers={"sec-fetch-site": "cross-site"})).status_code == 403
        assert (await client.delete(f"{JOBS}/train", headers={"origin": "http://127.0.0.1"})).status_code == 204
    rig.plane.stop()


async def test_health_needs_no_token(rig: Rig) -> None:
    """Liveness and readiness are public; metrics are not."""
    async with rig.client("") as client:
        assert (await client.get("/healthz")).json() == {"status": "ok"}
        assert (await client.get("/readyz")).status_code == 200
        assert (await client.get("/metrics")).status_code == 401
        rig.store.fail_next()
        rig.plane.controller.database_health.look()
        assert (await client.get("/readyz")).status_code == 503
        rig.plane.controller.database_health.look()
        assert (await client.get("/readyz")).status_code == 200
        rig.plane.controller._loaded = False  # noqa: SLF001  # as after the database was gone
        assert (await client.get("/readyz")).headers["retry-after"] == "1"


async def test_figures_are_counted_by_operation(rig: Rig) -> None:
    """Requests are counted by operation and status, beside the control loop's metrics."""
    await rig.submit()
    async with rig.client("admin") as client:
        await client.get("/nothing/at/all")
        text = (await client.get("/metrics")).text
    assert 'seaway_http_requests_total{operation="submit_job",status="201"} 1.0' in text
    assert 'seaway_http_requests_total{operation="other",status="404"} 1.0' in text
    assert 'seaway_clusters{state="up"} 2.0' in text
    assert "_created" not in text


async def test_the_description_is_whole(rig: Rig) -> None:
    """Every reference in the description resolves, and each operation has its role and its errors."""
    async with rig.client("") as client:
        described = (await client.get("/openapi.json")).json()
        page = await client.get("/docs")
        assert (await client.get("/")).headers["location"] == "/docs"
        for file in re.findall(r"(?:src|href)=([^ >]+)", page.text):
            answer = await client.get(f"/{file}")
            assert (answer.status_code, len(answer.content) > 100) == (200, True)
        assert (await client.get("/docs/main.py")).status_code == 404
    text = str(described)
    schemas = described["components"]["schemas"]
    for part in text.split("#/components/schemas/")[1:]:
        assert part.partition("'")[0] in schemas
    for path, operations in described["paths"].items():
        for operation in operations.values():
            assert operation["operationId"]
            assert operation["description"]
            if path.startswith("/api"):
                assert {"401", "403", "422", "429", "500", "503"} <= set(operation["responses"])
                assert operation["x-role"] in {"agent", "viewer", "user", "operator", "admin"}
    assert "submit_job" in text
    assert "http" not in page.text.replace("http://json-schema", "")


async def test_an_unknown_parameter_is_reported_with_those_there_are(rig: Rig) -> None:
    """The error lists exactly the parameters of the operation."""
    async with rig.client() as client:
        detail = (await client.get(JOBS, params={"stat": "x"})).json()["detail"]
    there = detail.partition("unknown parameter; available: ")[2].split(", ")
    assert {"state", "limit", "after"} <= set(there)
    assert "query" not in there


async def test_a_field_twice_is_refused(rig: Rig) -> None:
    """Two values for one field are an error, in a body and in a patch."""
    kind = {"content-type": "application/json"}
    job = await rig.submit()
    async with rig.client("user") as client:
        posted = await client.post("/api/v1/jobs", content='{"name": "a", "name": "b"}', headers=kind)
        patched = await client.patch(
            f"/api/v1/jobs/{job['id']}", content='{"priority": 1, "priority": 2}', headers=kind
        )
    for answer, field in ((posted, "name"), (patched, "priority")):
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)


async def test_description_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Strangers may request it at any rate, so a request costs no more than its transfer."""
    rig = make_rig()
    async with rig.client("") as client:
        first = [(await client.get(path)).content for path in ("/docs", "/openapi.json")]

        def describe(_: object) -> None:
            pytest.fail("written again")

        monkeypatch.setattr("seaway.api.app.describe", describe)
        assert [(await client.get(path)).content for path in ("/docs", "/openapi.json")] == first


async def test_first_requests_for_the_description_share_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Concurrent requests wait for the first one, since each would take a second of CPU time."""
    rig, written = make_rig(), list[object]()

    def describe(app: object) -> dict[str, str]:
        written.append(app)
        return {"openapi": "3.1.0"}

    monkeypatch.setattr("seaway.api.app.describe", describe)
    async with rig.client("") as client:
        answers = await asyncio.gather(*(client.get("/openapi.json") for _ in range(8)))
    assert {answer.text for answer in answers} == {'{"openapi":"3.1.0"}'}
    assert len(written) == 1


async def test_unread_bytes_of_all_large_responses_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large body of any kind goes out in pieces and counts until it is read. More are refused, then sent."""
    monkeypatch.setattr(guard_module, "BytesInFlight", lambda: BytesInFlight(most=150_000, of_caller=150_000))
    rig = make_rig()
    rig.app.add_route("/log", lambda _: PlainTextResponse("x" * 100_000))
    sizes: list[int] = []
    blocked, reads = asyncio.Event(), asyncio.Event()

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sizes.append(len(message.get("body", b"")))
        blocked.set()
        await reads.wait()

    scope = {"type": "http", "method": "GET", "path": "/log", "query_string": b"", "headers": [], "scheme": "http"}
    slow = asyncio.create_task(rig.app(scope, receive, send))
    await blocked.wait()
    async with rig.client() as client:
        answer = await client.get("/log")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
        assert "too many bytes of earlier answers are not read yet" in answer.text
        assert (await client.get("/api/v1/me")).status_code == 200
        reads.set()
        await slow
        assert sizes == [0, 65_536, 34_464]
        assert (await client.get("/log")).text == "x" * 100_000
        assert (await client.head("/log")).status_code == 200


@pytest.mark.parametrize(("kind", "scheme"), [("http", "http"), ("websocket", "ws")])
async def test_clients_that_leave_are_counted_in_one_line(
    kind: str, scheme: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A client that closes before its response fills no log: all of a minute are one line without a traceback."""
    rig = make_rig()

    async def receive() -> Message:
        return {"type": f"{kind}.connect", "body": b""}

    async def send(_: Message) -> None:
        raise ClientDisconnected

    common = {"method": "GET", "query_string": b"", "headers": [], "extensions": {"websocket.http.response": {}}}
    for _ in range(100):
        await rig.app({**common, "type": kind, "path": "/api/v1/jobs/x/exec", "scheme": scheme}, receive, send)
    assert [(each.levelname, each.exc_info) for each in caplog.records] == [("WARNING", None)]
    assert "before the end of their responses: 1, the latest that to /api/v1/jobs/x/exec" in caplog.text
