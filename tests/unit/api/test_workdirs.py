"""Archives with working directories of jobs, over HTTP."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from seaway.adapters.s3 import S3Bucket
from seaway.application.records import BUCKET_PART_BYTES, PART_BYTES, WorkdirLimits
from seaway.application.workdirs import SENDING_NS, SETTLED_NS
from seaway.domain.deployment import Deployment
from tests.fakes.s3_server import ACCESS_KEY, SECRET_KEY, S3Server, s3_server
from tests.unit.api.rig import Rig

pytestmark = pytest.mark.anyio

PATH = "/api/v1/workdirs"
SENT = {"content-type": "application/octet-stream"}
LARGE = bytes(PART_BYTES) + b"the rest"
SETTLED_S = SETTLED_NS // 10**9


@pytest.fixture
def store(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """Return the store of a bucket in which the archives of the rig are."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with s3_server() as server:
        rig.plane.workdirs.bucket = S3Bucket("archives", "seaway", server.url, "eu-west-1")
        yield server


def digest_of(content: bytes) -> str:
    """Return the name of an archive."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


async def complete(client: httpx.AsyncClient, content: bytes, tenant: str = "") -> httpx.Response:
    """Complete an archive."""
    query = {"tenant": tenant} if tenant else {}
    return await client.put(f"{PATH}/{digest_of(content)}", json={"size_bytes": len(content)}, params=query)


async def send(client: httpx.AsyncClient, content: bytes) -> str:
    """Send an archive, and return its digest."""
    answer = await complete(client, content)
    assert answer.status_code == 200, answer.text
    for number in answer.json()["missing"]:
        part = content[number * PART_BYTES :][:PART_BYTES]
        stored = await client.put(f"{PATH}/{digest_of(content)}/parts/{number}", content=part, headers=SENT)
        assert stored.status_code == 204, stored.text
    done = (await complete(client, content)).json()
    assert done == {"digest": digest_of(content), "stored": True, "missing": [], "uploads": []}
    return digest_of(content)


async def digests(client: httpx.AsyncClient) -> list[str]:
    """Return the digests of the stored archives, the last used first."""
    return [each["digest"] for each in (await client.get(PATH)).json()["workdirs"]]


async def test_an_archive_is_sent_once_and_returned(rig: Rig) -> None:
    """The server names the missing parts, stores them with one audit entry for each request of the whole archive."""
    async with rig.client("user") as client:
        assert (await complete(client, LARGE)).json()["missing"] == [0, 1]
        digest = await send(client, LARGE)
        listed = (await client.get(PATH)).json()
        assert (listed["used_bytes"], listed["part_bytes"]) == (len(LARGE), PART_BYTES)
        assert [(each["digest"], each["created_by"]) for each in listed["workdirs"]] == [(digest, "user")]
        assert (await client.get(f"{PATH}/{digest}")).content == LARGE
    async with rig.client() as client:
        entries = (await client.get("/api/v1/audit")).json()["entries"]
        assert {each["verb"] for each in entries if "workdir" in each["verb"]} == {"PUT complete_workdir"}


async def test_archives_belong_to_a_tenant(rig: Rig) -> None:
    """Another tenant neither reads an archive nor names it in a job; viewers read none."""
    async with rig.client("user") as client:
        digest = await send(client, b"mine")
    for token, status in (("other", 404), ("viewer", 403), ("", 401)):
        async with rig.client(token) as client:
            assert (await client.get(f"{PATH}/{digest}")).status_code == status
    async with rig.client("other") as client:
        assert await digests(client) == []
        assert (await client.get(PATH, params={"tenant": "default"})).status_code == 404
        refused = await client.post("/api/v1/jobs", json={"name": "a", "queue": "theirs", "workdir": digest})
        assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "workdir")
    async with rig.client() as client:
        assert (await client.get(f"{PATH}/{digest}", params={"tenant": "default"})).content == b"mine"
        assert (await client.get(PATH, params={"tenant": "nobody"})).status_code == 404
    assert (await rig.submit(workdir=digest))["spec"]["workdir"] == digest


async def test_content_must_have_the_digest(rig: Rig) -> None:
    """Parts of another archive are rejected and removed, so that they can be sent again."""
    async with rig.client("user") as client:
        path = f"{PATH}/{digest_of(b'right')}"
        await client.put(f"{path}/parts/0", content=b"wrong", headers=SENT)
        wrong = await client.put(path, json={"size_bytes": 5})
        assert (wrong.status_code, await digests(client)) == (422, [])
        assert rig.store.workdir_parts() == []
        await send(client, b"right")
        assert (await client.put(f"{PATH}/sha256:1", json={"size_bytes": 5})).status_code == 422
        large = await client.put(f"{path}/parts/0", content=bytes(PART_BYTES + 1), headers=SENT)
        assert large.status_code == 422


async def test_sizes_are_limited(rig: Rig) -> None:
    """An archive has a limit and a tenant a quota, for which unused archives make room, but none that jobs need."""
    rig.plane.workdirs.limits = WorkdirLimits(PART_BYTES, 2 * PART_BYTES)
    async with rig.client("user") as client:
        assert (await complete(client, LARGE)).status_code == 422
        beyond = await client.put(f"{PATH}/{digest_of(LARGE)}/parts/1", content=b"x", headers=SENT)
        assert beyond.status_code == 422
        first, second, third = (bytes([number]) * PART_BYTES for number in range(3))
        needed, unused = await send(client, first), await send(client, second)
        await rig.submit(workdir=needed)
        rig.step()
        fresh = await complete(client, third)
        assert (fresh.status_code, "quota" in fresh.json()["detail"]) == (409, True)
        rig.clock.advance_s(SETTLED_S + 1)
        newest = await send(client, third)
        assert sorted(await digests(client)) == sorted([needed, newest])
        assert unused not in {part.digest for part in rig.store.workdir_parts()}


async def test_archives_are_removed_when_no_job_needs_them(rig: Rig) -> None:
    """The retention counts from the end of the last job; parts that were never completed go after an hour."""
    async with rig.client("user") as client:
        digest = await send(client, b"needed")
        await send(client, b"never used")
        await client.put(f"{PATH}/{digest_of(b'never complete')}/parts/0", content=b"x", headers=SENT)
        job = await rig.submit(workdir=digest)
        rig.step()
        retention_s = rig.plane.workdirs.limits.retention_ns // 10**9
        rig.clock.advance_s(retention_s + 1)
        assert rig.plane.workdirs.collect() == {"workdirs": 1, "unfinished workdirs": 1}
        assert await digests(client) == [digest]
        await client.post(f"/api/v1/jobs/{job['id']}/cancel")
        rig.step(3)
        rig.clock.advance_s(retention_s - 60)
        assert rig.plane.workdirs.collect()["workdirs"] == 0
        rig.clock.advance_s(60)
        assert rig.plane.workdirs.collect()["workdirs"] == 1
        assert (await digests(client), rig.store.workdirs(), rig.store.workdir_parts()) == ([], [], [])
        refused = await client.post(f"/api/v1/jobs/{job['id']}/retry")
        assert (refused.status_code, "submit the job again" in refused.json()["detail"]) == (409, True)


async def test_a_user_deletes_archives_that_no_job_needs(rig: Rig) -> None:
    """An archive of an unfinished job is a conflict; other tenants and viewers delete none."""
    async with rig.client("user") as client:
        needed, unused = await send(client, b"needed"), await send(client, b"unused")
        job = await rig.submit(workdir=needed)
        rig.step()
        listed = {each["digest"]: each["needed"] for each in (await client.get(PATH)).json()["workdirs"]}
        assert listed == {needed: True, unused: False}
        for token, status in (("other", 404), ("viewer", 403)):
            async with rig.client(token) as stranger:
                assert (await stranger.delete(f"{PATH}/{unused}")).status_code == status
        for digest, status in ((unused, 204), (unused, 404), ("sha256:1", 422), (needed, 409)):
            assert (await client.delete(f"{PATH}/{digest}")).status_code == status
        assert ([each.digest for each in rig.store.workdir_parts()], await digests(client)) == ([needed], [needed])
        await client.post(f"/api/v1/jobs/{job['id']}/cancel")
        rig.step(3)
        assert (await client.delete(f"{PATH}/{needed}")).status_code == 204
        assert (rig.store.workdirs(), rig.store.workdir_parts()) == ([], [])


async def test_pods_fetch_the_archive_of_their_job_only(rig: Rig) -> None:
    """The token of a pod works for one archive, until its attempt ends, and for no other operation."""
    async with rig.client("user") as client:
        digest, other = await send(client, b"mine"), await send(client, b"another")
    job_id = (await rig.submit(workdir=digest))["id"]
    rig.step()
    job = rig.store.job(job_id)
    assert job is not None
    deployment = Deployment(job_id, job.attempt, "a", job.spec, ())
    token = rig.plane.workdirs.token(deployment)
    async with rig.client("") as client:

        async def status(path: str, token: str) -> int:
            header = f"Bearer {token}".encode("latin-1")
            return (await client.get(path, headers={b"authorization": header})).status_code

        assert await status(f"{PATH}/{digest}", token) == 200
        assert [await status(path, token) for path in (f"{PATH}/{other}", PATH, "/api/v1/jobs")] == [401] * 3
        later = rig.plane.workdirs.token(replace(deployment, attempt=job.attempt + 1))
        for wrong in (token[:-1] + "x", later, "swd_", "swd_a_b_c", f"{token}ü"):
            assert await status(f"{PATH}/{digest}", wrong) == 401
        async with rig.client("user") as user:
            await user.post(f"/api/v1/jobs/{job_id}/cancel")
        rig.step(3)
        assert await status(f"{PATH}/{digest}", token) == 401


async def test_archives_outlive_the_process(rig: Rig) -> None:
    """Another process on the same database has the archives, the parts that were sent, and the same tokens."""
    async with rig.client("user") as client:
        digest = await send(client, b"mine")
        await client.put(f"{PATH}/{digest_of(LARGE)}/parts/1", content=LARGE[PART_BYTES:], headers=SENT)
    rig.plane.workdirs.start(rig.plane.writer, lambda: None)
    async with rig.client("user") as client:
        assert (await client.get(f"{PATH}/{digest}")).content == b"mine"
        assert (await complete(client, LARGE)).json()["missing"] == [0]


def put(upload: dict[str, Any], content: bytes) -> httpx.Response:
    """Send an archive to the bucket."""
    headers = upload["headers"] | {"content-length": str(len(content))}
    return httpx.put(upload["url"], content=iter([content]), headers=headers, trust_env=False)


async def test_archives_are_sent_to_and_fetched_from_a_bucket(rig: Rig, store: S3Server) -> None:
    """The bucket gets content with the digest and size only; the database has no content, and the server no traffic."""
    async with rig.client("user") as client:
        asked = (await complete(client, LARGE)).json()
        assert (asked["stored"], asked["missing"]) == (False, [])
        for wrong, status in ((bytes(len(LARGE)), 400), (b"short", 403)):
            assert put(asked["uploads"][0], wrong).status_code == status
        assert (await complete(client, LARGE)).json()["stored"] is False
        assert put(asked["uploads"][0], LARGE).status_code == 200
        assert (await complete(client, LARGE)).json()["stored"] is True
        digest = digest_of(LARGE)
        (record,) = rig.store.workdirs()
        assert (record.bucket, rig.store.workdir_parts()) == ("s3://archives/seaway", [])
        listed = (await client.get(PATH)).json()
        assert ([each["digest"] for each in listed["workdirs"]], listed["used_bytes"]) == ([digest], len(LARGE))
        moved = await client.get(f"{PATH}/{digest}")
        plain = await client.get(f"{PATH}/{digest}", headers={"accept": "text/uri-list"})
        assert (moved.status_code, plain.status_code) == (307, 200)
        for url in (moved.headers["location"], plain.text.strip()):
            assert httpx.get(url, trust_env=False).content == LARGE
        assert httpx.get(moved.headers["location"].replace("eu-west-1", "eu-west-2"), trust_env=False).is_error
        assert (await client.delete(f"{PATH}/{digest}")).status_code == 204
    assert (store.objects, rig.store.workdirs()) == ({}, [])


async def test_a_bucket_is_cleaned_up_like_the_database(rig: Rig, store: S3Server) -> None:
    """Unused archives make room and end after the retention; what was sent and never completed ends after a day."""
    rig.plane.workdirs.limits = WorkdirLimits(PART_BYTES, 2 * PART_BYTES)
    contents = [bytes([number]) * PART_BYTES for number in range(4)]
    async with rig.client("user") as client:
        for each in contents[:2]:
            put((await complete(client, each)).json()["uploads"][0], each)
            assert (await complete(client, each)).json()["stored"]
        assert (await complete(client, contents[2])).status_code == 409
        rig.clock.advance_s(SETTLED_S + 1)
        put((await complete(client, contents[2])).json()["uploads"][0], contents[2])
        assert len(store.objects) == 2
        rig.clock.advance_s(SENDING_NS // 10**9)
        assert rig.plane.workdirs.collect() == {"workdirs": 0, "unfinished workdirs": 1}
        assert len(store.objects) == 1
        rig.clock.advance_s(rig.plane.workdirs.limits.retention_ns // 10**9)
        assert rig.plane.workdirs.collect()["workdirs"] == 1
    assert (store.objects, rig.store.workdirs(), rig.store.workdir_parts()) == ({}, [], [])


async def test_an_archive_is_sent_to_a_bucket_in_parts(rig: Rig, store: S3Server) -> None:
    """An upload goes on with the parts that are missing, also after a restart, and begins again if it was removed."""
    content = bytes(2 * BUCKET_PART_BYTES) + b"the rest"
    async with rig.client("user") as client:
        asked = (await complete(client, content)).json()["uploads"]
        assert [each["size_bytes"] for each in asked] == [BUCKET_PART_BYTES, BUCKET_PART_BYTES, len(b"the rest")]
        assert put(asked[0], b"another size").status_code == 403
        for each in asked[1:]:
            assert put(each, content[each["offset_bytes"] :][: each["size_bytes"]]).status_code == 200
        rig.plane.workdirs.start(rig.plane.writer, frozenset)
        again = (await complete(client, content)).json()["uploads"]
        assert [each["offset_bytes"] for each in again] == [0]
        store.uploads.clear()
        asked = (await complete(client, content)).json()["uploads"]
        assert len(asked) == 3
        for each in asked:
            put(each, content[each["offset_bytes"] :][: each["size_bytes"]])
        assert (await complete(client, content)).json()["stored"]
        assert (list(store.objects.values()), rig.store.workdir_parts()) == ([content], [])
        await complete(client, content + b"another")
        rig.clock.advance_s(SENDING_NS // 10**9)
        assert rig.plane.workdirs.collect()["unfinished workdirs"] == 1
    assert store.uploads == {}


async def test_a_bucket_that_fails_is_named(rig: Rig, store: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong credentials and a store that does not respond are 503 with the reason, and the archive stays unknown."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    async with rig.client("user") as client:
        for url, reason in ((store.url, "check its credentials"), ("http://127.0.0.1:9", "did not respond")):
            rig.plane.workdirs.bucket = S3Bucket("archives", "", url, "eu-west-1")
            reply = await complete(client, LARGE)
            assert (reply.status_code, reason in reply.text) == (503, True), reply.text
        assert await digests(client) == []


async def test_archives_of_another_bucket_are_unknown(rig: Rig, store: S3Server) -> None:
    """After a change of the bucket, folders are sent again, and their records are replaced."""
    async with rig.client("user") as client:
        put((await complete(client, LARGE)).json()["uploads"][0], LARGE)
        assert (await complete(client, LARGE)).json()["stored"]
        rig.plane.workdirs.bucket = S3Bucket("others", "", store.url, "eu-west-1")
        rig.plane.workdirs.start(rig.plane.writer, frozenset)
        assert await digests(client) == []
        put((await complete(client, LARGE)).json()["uploads"][0], LARGE)
        assert (await complete(client, LARGE)).json()["stored"]
        assert [each.bucket for each in rig.store.workdirs()] == ["s3://others"]
