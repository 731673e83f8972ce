"""A trained policy from its file to its placements."""

from __future__ import annotations

from pathlib import Path

import pytest

from seaway.application.changes import Change
from seaway.bootstrap.settings import PolicySettings
from seaway.domain.errors import RejectedError
from seaway.domain.queues import Queue
from seaway.domain.tenancy import DEFAULT
from seaway.learning.policies.file import pack
from tests.fakes.policies import cluster_policy, node_policy
from tests.fakes.records import shadow_result
from tests.unit.api.rig import Rig, make_rig

pytestmark = pytest.mark.anyio

LONGEST_WAIT_S = 300


async def test_a_trained_policy_is_watched_and_then_decides(rig: Rig) -> None:
    """It is refused with what to do, decides in the shadow, and after enough jobs for the queue.

    All of it is reported.
    """
    file = node_policy()
    rig.plane.policies.import_policy(pack(file), "ada")
    title = f"tiny@{file.manifest.model_sha256[:12]}"
    async with rig.client("admin") as client:
        early = await client.put(f"/api/v1/queues/{DEFAULT}", json={"policy": "tiny"})
        assert early.status_code == 409
        assert (
            f"policy {title} may not decide for queue 'default' yet: it decided 0 of 100 jobs" in early.json()["detail"]
        )
        assert (await client.put(f"/api/v1/queues/{DEFAULT}", json={"shadow": "tiny"})).status_code == 200
        await rig.submit(name="watched")
        rig.step(3)
        (seen,) = (await client.get("/api/v1/shadows")).json()["shadows"]
        assert (seen["shadow"], seen["jobs"], seen["answered"], seen["fallbacks"]) == (title, 1, 1, 0)
        rig.plane.writer.require(Change(insert=[shadow_result(queue=DEFAULT, shadow=title, jobs=99, answered=99)]))
        assert (await client.put(f"/api/v1/queues/{DEFAULT}", json={"policy": "tiny"})).status_code == 200
        job = await rig.submit(name="decided")
        rig.step(3)
        rig.clock.advance_s(LONGEST_WAIT_S)
        rig.step(3)
        (attempt,) = rig.store.attempts(job["id"])
        assert attempt.policy == "tiny"
        assert attempt.why.startswith("tiny chose ")
        assert 'seaway_policy_decision_seconds_count{policy="tiny"}' in (await client.get("/metrics")).text


async def test_another_file_under_an_old_name_decides(rig: Rig) -> None:
    """A policy of the same name as a removed one is used, and starts as a shadow again."""
    titles = []
    async with rig.client("admin") as client:
        for seed in range(2):
            file = node_policy(seed=seed)
            titles.append(f"tiny@{file.manifest.model_sha256[:12]}")
            rig.plane.policies.import_policy(pack(file), "ada")
            assert (await client.put(f"/api/v1/queues/{DEFAULT}", json={"shadow": "tiny"})).status_code == 200
            await rig.submit(name=f"watched-{seed}")
            rig.step(3)
            assert (await client.put(f"/api/v1/queues/{DEFAULT}", json={})).status_code == 200
            rig.step()
            assert (await client.delete("/api/v1/policies/tiny")).status_code == 204
        seen = (await client.get("/api/v1/shadows")).json()["shadows"]
    assert [each["shadow"] for each in seen] == titles[::-1]


async def test_jobs_that_something_else_decided_do_not_count(rig: Rig) -> None:
    """A policy for another number of clusters never answers: it cannot become active, however long it was a shadow."""
    file = cluster_policy(clusters=9)
    rig.plane.policies.import_policy(pack(file), "ada")
    async with rig.client("admin") as client:
        assert (await client.put(f"/api/v1/queues/{DEFAULT}", json={"shadow": "tiny"})).status_code == 200
        await rig.submit(name="watched")
        rig.step(3)
        (seen,) = (await client.get("/api/v1/shadows")).json()["shadows"]
        assert (seen["jobs"], seen["answered"], seen["fallbacks"]) == (1, 0, 1)
        early = await client.put(f"/api/v1/queues/{DEFAULT}", json={"policy": "tiny"})
        assert early.status_code == 409
        assert "decided 0 of 100 jobs" in early.json()["detail"]
        assert "(for 1 more it had no answer" in early.json()["detail"]


async def test_a_policy_that_cannot_be_used_is_stood_in_for_until_it_can(rig: Rig) -> None:
    """`policies.fallback` decides instead, reported and counted; when the policy is available it decides itself."""
    rig.plane.writer.require(Change(put=[Queue(DEFAULT, policy="tiny")]))
    rig.step(3)
    assert rig.plane.controller.scheduler.readiness.wait("tiny", most_s=60)
    job = await rig.submit(name="early")
    rig.step(3)
    (attempt,) = rig.store.attempts(job["id"])
    assert attempt.policy == "seaway"
    assert " in place of tiny: unknown policy 'tiny'" in attempt.why
    async with rig.client("admin") as client:
        metrics = (await client.get("/metrics")).text
    assert 'seaway_policy_fallbacks_total{policy="tiny",reason="unusable"}' in metrics
    rig.plane.policies.import_policy(pack(node_policy()), "ada")
    assert rig.plane.controller.scheduler.readiness.wait("tiny", most_s=60)
    assert rig.plane.controller.scheduler.policy("tiny").title.startswith("tiny@")


BOTH = """
name = "both"
[[plugin]]
name = "trained"
policy = "tiny"
weight = 2
[[plugin]]
name = "BestFit"
"""


async def test_a_trained_policy_decides_beside_other_plugins(tmp_path: Path) -> None:
    """A profile of the server's folder can be chosen once its policy exists, after a time as a shadow."""
    (tmp_path / "both.toml").write_text(BOTH, encoding="utf-8")
    rig = make_rig(policies=PolicySettings(profiles_dir=str(tmp_path), shadow_jobs=1))
    queue = f"/api/v1/queues/{DEFAULT}"
    async with rig.client("admin") as client:
        listed = {each["name"]: each for each in (await client.get("/api/v1/policies")).json()["policies"]}
        assert (listed["both"]["source"], listed["both"]["description"]) == ("profile", "joins tiny, BestFit")
        early = await client.put(queue, json={"shadow": "both"})
        assert early.status_code == 422
        assert "plugin 'trained' with policy 'tiny': trained policy 'tiny' not found" in early.text
        rig.plane.policies.import_policy(pack(node_policy()), "ada")
        untried = await client.put(queue, json={"policy": "both"})
        assert "it decided 0 of 1 job in its shadow" in untried.json()["detail"]
        assert (await client.put(queue, json={"shadow": "both"})).status_code == 200
        assert (await client.delete("/api/v1/policies/tiny")).status_code == 409
        await rig.submit(name="watched")
        rig.step(3)
        (seen,) = (await client.get("/api/v1/shadows")).json()["shadows"]
        assert (seen["shadow"][:5], seen["jobs"], seen["answered"]) == ("both@", 1, 1)
        assert (await client.put(queue, json={"policy": "both"})).status_code == 200
        job = await rig.submit(name="decided")
        rig.step(3)
        rig.clock.advance_s(LONGEST_WAIT_S)
        rig.step(3)
        (attempt,) = rig.store.attempts(job["id"])
        assert (attempt.policy, attempt.why.partition(" chose ")[0]) == ("both", "both")
        metrics = (await client.get("/metrics")).text
    assert 'seaway_policy_decision_seconds_count{policy="tiny"}' in metrics


async def test_a_profile_whose_policy_has_no_answer_still_decides(tmp_path: Path) -> None:
    """The heuristic scores instead, reported in the attempt, and each fallback is counted."""
    (tmp_path / "both.toml").write_text(BOTH, encoding="utf-8")
    rig = make_rig(policies=PolicySettings(profiles_dir=str(tmp_path), shadow_jobs=0))
    rig.plane.policies.import_policy(pack(cluster_policy(clusters=9)), "ada")
    async with rig.client("admin") as client:
        assert (await client.put(f"/api/v1/queues/{DEFAULT}", json={"policy": "both"})).status_code == 200
        job = await rig.submit(name="decided")
        rig.step(3)
        metrics = (await client.get("/metrics")).text
    (attempt,) = rig.store.attempts(job["id"])
    assert attempt.policy == "both"
    said = "seaway scores instead of tiny: trained for 9 clusters, and the fleet has 2"
    assert attempt.why.partition(": ")[2].startswith(said)
    assert 'seaway_policy_fallbacks_total{policy="tiny",reason="unsuitable"}' in metrics


def test_a_profile_may_not_take_the_name_of_a_trained_policy(tmp_path: Path) -> None:
    """The name would be ambiguous, so the server does not start."""
    (tmp_path / "mine.toml").write_text(BOTH.replace("both", "pilot"), encoding="utf-8")
    with pytest.raises(RejectedError, match="a trained policy 'pilot' exists"):
        make_rig(policies=PolicySettings(profiles_dir=str(tmp_path)))
