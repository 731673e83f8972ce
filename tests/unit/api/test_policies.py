"""Trained policies over HTTP."""

from __future__ import annotations

import pytest

from seaway.domain.queues import Queue
from seaway.learning.policies.check import read_policy
from seaway.learning.policies.file import pack
from tests.fakes.policies import cluster_policy
from tests.unit.api.rig import Rig

pytestmark = pytest.mark.anyio

PATH = "/api/v1/policies"
SENT = {"content-type": "application/octet-stream"}
MINE = pack(cluster_policy("mine"))


async def test_a_policy_comes_and_goes(rig: Rig) -> None:
    """A policy is listed with its manifest, returned byte by byte, and gone after its removal."""
    async with rig.client("operator") as client:
        made = await client.post(PATH, content=MINE, headers=SENT)
        assert (made.status_code, made.json()["name"]) == (201, "mine")
        again = await client.post(PATH, content=MINE, headers={"content-type": "application/zip"})
        assert (again.status_code, again.headers["etag"]) == (200, made.headers["etag"])
        listed = {each["name"]: each for each in (await client.get(PATH)).json()["policies"]}
        assert (listed["mine"]["source"], listed["mine"]["description"]) == ("trained", "weights by lot")
        assert (listed["bestfit"]["source"], listed["bestfit"]["queues"]) == ("seaway", ["default", "theirs"])
        shown = await client.get(f"{PATH}/mine")
        assert shown.headers["etag"] == made.headers["etag"]
        trained = shown.json()["trained"]
        assert (trained["level"], trained["clusters"], trained["signed_by"]) == ("cluster", 2, "")
        assert trained["digest"] == read_policy(MINE).digest
        assert trained["size_bytes"] < len(MINE)
        given = await client.get(f"{PATH}/mine/file")
        assert given.content == MINE
        assert given.headers["content-disposition"] == 'attachment; filename="mine.policy"'
        wrong = await client.delete(f"{PATH}/mine", headers={"if-match": '"another"'})
        assert wrong.status_code == 412
        assert (await client.delete(f"{PATH}/mine", headers={"if-match": made.headers["etag"]})).status_code == 204
        for path in (f"{PATH}/mine", f"{PATH}/mine/file"):
            assert (await client.get(path)).status_code == 404
        assert (await client.delete(f"{PATH}/mine")).status_code == 404


async def test_heuristics_are_shown_as_well(rig: Rig) -> None:
    """A heuristic has no file and always exists."""
    async with rig.client("operator") as client:
        shown = await client.get(f"{PATH}/bestfit")
        assert (shown.json()["trained"], shown.json()["source"]) == (None, "seaway")
        known = await client.get(f"{PATH}/bestfit", headers={"if-none-match": shown.headers["etag"]})
        assert known.status_code == 304
        assert (await client.get(f"{PATH}/bestfit/file")).status_code == 409
        assert (await client.delete(f"{PATH}/bestfit")).status_code == 409


async def test_the_tag_of_a_policy_covers_its_queues(rig: Rig) -> None:
    """A change of its queues changes the tag, for heuristics and trained policies."""
    async with rig.client("operator") as client:
        await client.post(PATH, content=MINE, headers=SENT)
        tags = {name: (await client.get(f"{PATH}/{name}")).headers["etag"] for name in ("greedy", "mine")}
        for name, tag in tags.items():
            rig.plane.controller.live.queues["default"] = Queue("default", policy=name)
            shown = await client.get(f"{PATH}/{name}", headers={"if-none-match": tag})
            assert (shown.status_code, shown.json()["queues"]) == (200, ["default"])


async def test_what_is_no_sound_policy_is_refused(rig: Rig) -> None:
    """Another media type, a damaged file and a name in use have different errors."""
    async with rig.client("operator") as client:
        assert (await client.post(PATH, json={})).status_code == 415
        damaged = await client.post(PATH, content=MINE[:-9], headers=SENT)
        assert (damaged.status_code, damaged.json()["detail"][:17]) == (422, "not a policy file")
        taken = await client.post(PATH, content=pack(cluster_policy("bestfit")), headers=SENT)
        assert taken.status_code == 422
        await client.post(PATH, content=MINE, headers=SENT)
        other = await client.post(PATH, content=pack(cluster_policy("mine", seed=1)), headers=SENT)
        assert other.status_code == 409


async def test_viewers_look_and_operators_change(rig: Rig) -> None:
    """Upload, activation and removal require an operator, who is in the audit log."""
    async with rig.client("viewer") as client:
        assert (await client.post(PATH, content=MINE, headers=SENT)).status_code == 403
        assert (await client.post(f"{PATH}/greedy/activate", json={"queue": "default"})).status_code == 403
        assert (await client.delete(f"{PATH}/mine")).status_code == 403
        assert (await client.get(PATH)).status_code == 200
    async with rig.client("operator") as client:
        await client.post(PATH, content=MINE, headers=SENT)
        await client.delete(f"{PATH}/mine")
    async with rig.client("admin") as client:
        entries = (await client.get("/api/v1/audit")).json()["entries"]
    reported = [(each["verb"], each["target"], each["status"]) for each in entries[:2]]
    assert reported == [("DELETE delete_policy", f"{PATH}/mine", 204), ("POST import_policy", f"{PATH}/mine", 201)]


async def test_a_policy_is_activated(rig: Rig) -> None:
    """The queue uses it from then on, and the answer reports that no wait is left."""
    async with rig.client("operator") as client:
        done = await client.post(f"{PATH}/greedy/activate", json={"queue": "default"})
        assert done.json()["left"] == ""
        assert done.json()["queue"]["policy"] == "greedy"
        queue = (await client.get("/api/v1/queues/default")).json()
        assert queue == done.json()["queue"]
        rig.step(1)
        assert (await client.get(f"{PATH}/greedy")).json()["queues"] == ["default"]
        for name, body, status in (
            ("no", {"queue": "default"}, 404),
            ("greedy", {"queue": "no"}, 404),
            ("greedy", {}, 422),
        ):
            assert (await client.post(f"{PATH}/{name}/activate", json=body)).status_code == status


async def test_a_baseline_comes_with_a_warning(rig: Rig) -> None:
    """Its description, its activation and the change of a queue to it have the warning; other policies have none."""
    async with rig.client("operator") as client:
        done = (await client.post(f"{PATH}/volcano-divided/activate", json={"queue": "default"})).json()
        assert done["warning"]["message"].startswith("This is a baseline for comparison.")
        stored = await client.put("/api/v1/queues/other", json={"policy": "volcano-divided"})
        listed = {each["name"]: each["warning"] for each in (await client.get(PATH)).json()["policies"]}
        assert done["warning"] == stored.json()["warning"] == listed["volcano-divided"]
        assert stored.headers["etag"] == f'"{(await client.get("/api/v1/queues/other")).json()["version"]}"'
        assert (await client.post(f"{PATH}/greedy/activate", json={"queue": "other"})).json()["warning"] is None


async def test_a_policy_in_use_is_not_removed(rig: Rig) -> None:
    """It can be removed when no queue uses it any more."""
    async with rig.client("operator") as client:
        await client.post(PATH, content=MINE, headers=SENT)
        rig.plane.store.queues = lambda: [Queue("q", shadow="mine")]  # type: ignore[method-assign]
        refused = await client.delete(f"{PATH}/mine")
        assert (refused.status_code, refused.json()["detail"]) == (409, "policy 'mine' is used by queue 'q'")


async def test_a_trained_policy_is_compared_before_it_decides(rig: Rig) -> None:
    """It is rejected until it was the queue's shadow for long enough, and becomes the shadow on request."""
    async with rig.client("operator") as client:
        await client.post(PATH, content=MINE, headers=SENT)
        path = f"{PATH}/mine/activate"
        early = await client.post(path, json={"queue": "default"})
        assert early.status_code == 409
        assert "decided 0 of 100 jobs in its shadow" in early.json()["detail"]
        asked = (await client.post(path, json={"queue": "default", "shadow": True})).json()
        assert (asked["queue"]["policy"], asked["queue"]["shadow"]) == ("bestfit", "mine")
        assert "0 of 100 jobs in its shadow" in asked["left"]
        assert "let more jobs come" in asked["left"]
        assert (await client.delete(f"{PATH}/mine")).status_code == 409
