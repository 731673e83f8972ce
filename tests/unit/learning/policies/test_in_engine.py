"""Trained policies decide in the engine, with a heuristic as fallback."""

from __future__ import annotations

import logging
from typing import NoReturn

import numpy as np
import pytest

from seaway.domain.errors import RejectedError
from seaway.learning.observing import nodes as nodes_shown
from seaway.learning.policies.file import PolicyFile
from seaway.learning.policies.make import make_learned
from seaway.learning.policies.monitor import Counts, Limits, Reason
from seaway.learning.policies.session import StoppedError
from seaway.scheduling.arrays import Float64
from seaway.scheduling.engine import decide
from seaway.scheduling.explain import explain, summary
from seaway.scheduling.framework import Plugin
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plan import Plan
from seaway.scheduling.policies.pilot.features import NODE_SIZE
from seaway.scheduling.policies.registry import PolicyOptions
from seaway.scheduling.policies.seaway.node_value import MixFigures, device_worths
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.testing.plugins import check_plugin, cluster, fleet, gpu, job, node
from tests.unit.learning.policies.stand_ins import Judged, Model, Time, chooses, manifest, prefers, says

WANTS = job("wants", gpus=1)
TWO = fleet(
    cluster(node(gpu(), name="a1"), name="a"), cluster(node(gpu(), name="b1"), node(gpu(), name="b2"), name="b")
)


def decided(judged: Judged, snapshot: Snapshot | None = None) -> Plan:
    """Return the plan for one job with one GPU."""
    snapshot = snapshot or Snapshot(TWO)
    return decide(snapshot, JobQueue(snapshot, [WANTS]), judged.profile)


def where(plan: Plan) -> list[str]:
    """Return the chosen nodes."""
    return [each.node for each in plan.placements()]


@pytest.mark.parametrize(
    "judged",
    [Judged(chooses(0, 1), clusters=1), Judged(says(np.nan), clusters=1), Judged(prefers(0)), Judged(prefers(0, 1e9))],
    ids=["clusters", "no number", "nodes", "waits"],
)
def test_trained_policies_pass_the_suite_of_plugins(judged: Judged) -> None:
    """For example, equal snapshots and jobs have equal decisions."""
    plugin: Plugin = judged.profile.plugins[-1].plugin
    check_plugin(plugin)


def test_the_first_feasible_node_of_the_chosen_cluster_is_used() -> None:
    """A policy at cluster level places as in the study."""
    judged = Judged(chooses(1, 2), clusters=2)
    assert where(decided(judged)) == ["b1"]
    assert judged.fallbacks == {}
    assert judged.model.asked == 1
    assert judged.counts.counted()["apprentice"].decided[0] == 1


def test_fallback_for_an_infeasible_cluster() -> None:
    """The heuristic decides and the plan reports it, so the job is not lost."""
    snapshot = Snapshot(fleet(cluster(node(name="bare"), name="a"), cluster(node(gpu(), name="b1"), name="b")))
    judged = Judged(chooses(0, 2), clusters=2)
    plan = decided(judged, snapshot)
    assert where(plan) == ["b1"]
    assert plan.messages == {0: "seaway decides instead of apprentice: nothing fits in a"}
    assert judged.fallbacks == {Reason.ILLEGAL: 1}


def test_fallback_for_another_number_of_clusters() -> None:
    """A policy for 16 clusters is not used for 2."""
    judged = Judged(chooses(0, 16), clusters=16)
    assert len(where(decided(judged))) == 1
    assert judged.fallbacks == {Reason.UNSUITABLE: 1}
    assert judged.model.asked == 0


@pytest.mark.parametrize("action", [np.nan, np.inf])
def test_fallback_for_actions_that_are_not_finite(action: float) -> None:
    """NaN and infinity are not a choice."""
    judged = Judged(says(action), clusters=2)
    assert len(where(decided(judged))) == 1
    assert judged.fallbacks == {Reason.NOT_FINITE: 1}


def test_deferral_of_jobs() -> None:
    """A policy may defer jobs with one replica; otherwise the heuristic decides."""
    judged = Judged(chooses(2, 2), clusters=2)
    snapshot = Snapshot(TWO)
    queue = JobQueue(snapshot, [WANTS, job("late", gpus=1), job("pair", gpus=1, replicas=2)])
    plan = decide(snapshot, queue, judged.profile, overdue={1})
    assert plan.deferred == {0: "apprentice waits for a better place"}
    assert plan.jobs_placed.tolist() == [False, True, True]
    assert judged.fallbacks == {Reason.WAITED: 3}


def test_the_node_with_the_highest_score_is_used() -> None:
    """Small differences of scores count."""
    roomy, tight = node(gpu(), gpu(), name="roomy"), node(gpu(), name="tight")
    snapshot = Snapshot(fleet(tight, roomy))
    assert where(decided(Judged(prefers(NODE_SIZE)), snapshot)) == ["roomy"]
    five, little, never = np.float32(5), np.float32(1e-5), np.zeros(1, np.float32)
    near = Model(lambda shown: {"scores": five + little * shown["nodes"][:, NODE_SIZE], "wait": never})
    assert where(decided(Judged(near), Snapshot(fleet(tight, roomy)))) == ["roomy"]


def test_a_policy_waits_if_that_has_the_highest_score() -> None:
    """The score of waiting exceeds that of the best node."""
    assert decided(Judged(prefers(0, wait=1e9))).deferred == {0: "apprentice waits for a better place"}
    assert decided(Judged(prefers(0, wait=-1e9))).deferred == {}


@pytest.mark.parametrize("wait", [np.nan, np.inf, -np.inf])
def test_fallback_for_a_score_of_waiting_that_is_not_finite(wait: float) -> None:
    """Infinity would defer all jobs, and NaN none."""
    judged = Judged(prefers(0, wait=wait))
    assert len(where(decided(judged))) == 1
    assert judged.fallbacks == {Reason.NOT_FINITE: 1}


def test_fallback_for_a_wrong_number_of_scores() -> None:
    """A model must score exactly the nodes of its input."""
    judged = Judged(Model(lambda _: {"scores": np.zeros(99, np.float32), "wait": np.zeros(1, np.float32)}))
    assert len(where(decided(judged))) == 1
    assert judged.fallbacks == {Reason.FAILED: 1}


def test_fallback_for_slow_answers_and_pause() -> None:
    """An answer after the time limit is ignored, and several in a row pause the policy."""
    judged = Judged(chooses(1, 2), clusters=2, limits=Limits(budget_ms=5, failure_threshold=2, cooldown_s=30))
    quick = judged.model.answer

    def slowly(inputs: object) -> object:
        judged.time.pass_ms(6)
        return quick(inputs)  # type: ignore[arg-type]

    judged.model.answer = slowly  # type: ignore[assignment]
    assert decided(judged).messages == {0: "seaway decides instead of apprentice: slower than 5 ms"}
    decided(judged)
    assert judged.fallbacks == {Reason.SLOW: 2}
    decided(judged)
    assert judged.fallbacks == {Reason.SLOW: 2, Reason.SET_ASIDE: 1}
    assert judged.model.asked == 2
    judged.model.answer = quick
    judged.time.pass_ms(31_000)
    assert where(decided(judged)) == ["b1"]
    assert judged.fallbacks == {Reason.SLOW: 2, Reason.SET_ASIDE: 1}


def test_tables_of_the_fleet_do_not_count_towards_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take as long as many decisions."""
    judged = Judged(prefers(NODE_SIZE), limits=Limits(budget_ms=5))
    tabled = []

    def slowly(figures: MixFigures) -> Float64:
        tabled.append(figures)
        judged.time.pass_ms(100)
        return device_worths(figures)

    monkeypatch.setattr("seaway.scheduling.policies.seaway.plugin.device_worths", slowly)
    snapshot = Snapshot(TWO)
    for _ in range(3):
        assert len(where(decided(judged, snapshot.copy()))) == 1
    assert judged.fallbacks == {}
    assert judged.model.asked == 3
    assert len(tabled) == 1, "copies of a fleet share what was worked out for it"


def test_very_slow_models_are_stopped() -> None:
    """After four times the limit the model is stopped, which counts as slow."""
    judged = Judged(chooses(1, 2), clusters=2, limits=Limits(budget_ms=5))

    def stopped(_: object) -> NoReturn:
        raise StoppedError("the model fails")

    judged.model.answer = stopped
    assert decided(judged).messages == {0: "seaway decides instead of apprentice: stopped after 20 ms"}
    assert judged.fallbacks == {Reason.SLOW: 1}
    assert judged.model.seconds == 0.02


def test_without_a_budget_nothing_is_stopped() -> None:
    """Decisions do not depend on a clock then."""
    judged = Judged(chooses(1, 2), clusters=2, limits=Limits(budget_ms=0))
    assert where(decided(judged)) == ["b1"]
    assert judged.model.seconds == 0


def test_only_consecutive_failures_pause_a_policy() -> None:
    """A valid answer resets the count."""
    judged = Judged(chooses(1, 2), clusters=2, limits=Limits(failure_threshold=2))
    good = judged.model.answer
    for _ in range(3):
        judged.model.answer = lambda _: {}
        decided(judged)
        judged.model.answer = good
        assert where(decided(judged)) == ["b1"]
    assert judged.fallbacks == {Reason.FAILED: 3}


def test_explanations_report_fallbacks() -> None:
    """They have the reason."""
    reported = explain(Snapshot(TWO), WANTS, Judged(says(np.nan), clusters=2).profile)
    assert summary(reported).endswith("; seaway decides instead of apprentice: its answer is not a number")


def test_repeated_fallbacks_are_logged_once_in_ten_minutes(caplog: pytest.LogCaptureFixture) -> None:
    """All fallbacks are counted."""
    time = Time()
    counts = Counts(time)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            counts.fell_back("apprentice", Reason.ILLEGAL, "nothing fits in a")
        assert len(caplog.records) == 1
        time.pass_ms(600_000)
        counts.fell_back("apprentice", Reason.ILLEGAL, "nothing fits in a")
    assert len(caplog.records) == 2
    assert counts.counted()["apprentice"].fallbacks == {Reason.ILLEGAL: 4}


def test_other_versions_of_features_are_rejected() -> None:
    """The model would misinterpret its inputs."""
    file = PolicyFile(manifest(features=nodes_shown.VERSION + 1), b"", ())
    with pytest.raises(RejectedError, match="train it again"):
        make_learned(file, PolicyOptions(), Limits(), Counts(Time()), model=prefers(0))


def test_the_version_depends_on_the_model() -> None:
    """Policies with equal names and different models have different versions."""
    assert Judged(prefers(0)).profile.title == "apprentice@0123456789ab"
