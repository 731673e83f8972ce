"""Trained policies decide in the engine like any other, and whatever they do, a user decides."""

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
    """Decide one job of one GPU."""
    snapshot = snapshot or Snapshot(TWO)
    return decide(snapshot, JobQueue(snapshot, [WANTS]), judged.profile)


def where(plan: Plan) -> list[str]:
    """Return the nodes that were chosen."""
    return [each.node for each in plan.placements()]


@pytest.mark.parametrize(
    "judged",
    [Judged(chooses(0, 1), clusters=1), Judged(says(np.nan), clusters=1), Judged(prefers(0)), Judged(prefers(0, 1e9))],
    ids=["clusters", "no number", "nodes", "waits"],
)
def test_trained_policies_keep_the_rules_of_plugins(judged: Judged) -> None:
    """They pass the suite that every plugin should pass: the same snapshot and job give the same decision, and more."""
    plugin: Plugin = judged.profile.plugins[-1].plugin
    check_plugin(plugin)


def test_the_first_node_that_fits_of_the_chosen_cluster_is_taken() -> None:
    """A policy for clusters chooses one; there the first node that fits is taken, as in the study."""
    judged = Judged(chooses(1, 2), clusters=2)
    assert where(decided(judged)) == ["b1"]
    assert judged.fallbacks == {}
    assert judged.model.asked == 1
    assert judged.counts.counted()["apprentice"].decided[0] == 1


def test_a_choice_where_nothing_fits_is_the_heuristics() -> None:
    """Where nothing fits in the chosen cluster, the heuristic decides, and the plan says so: the job is not lost."""
    snapshot = Snapshot(fleet(cluster(node(name="bare"), name="a"), cluster(node(gpu(), name="b1"), name="b")))
    judged = Judged(chooses(0, 2), clusters=2)
    plan = decided(judged, snapshot)
    assert where(plan) == ["b1"]
    assert plan.messages == {0: "seaway decides instead of apprentice: nothing fits in a"}
    assert judged.fallbacks == {Reason.ILLEGAL: 1}


def test_a_fleet_of_another_size_is_the_heuristics() -> None:
    """A policy for 16 clusters is not asked about 2."""
    judged = Judged(chooses(0, 16), clusters=16)
    assert len(where(decided(judged))) == 1
    assert judged.fallbacks == {Reason.UNSUITABLE: 1}
    assert judged.model.asked == 0


@pytest.mark.parametrize("action", [np.nan, np.inf])
def test_an_answer_that_is_no_number_is_the_heuristics(action: float) -> None:
    """NaN and infinity choose nothing."""
    judged = Judged(says(action), clusters=2)
    assert len(where(decided(judged))) == 1
    assert judged.fallbacks == {Reason.NOT_FINITE: 1}


def test_a_policy_may_hold_a_job_back_but_not_when_it_is_overdue_or_has_several_replicas() -> None:
    """The wait choice holds a job of one replica back; where it may not, the heuristic decides."""
    judged = Judged(chooses(2, 2), clusters=2)
    snapshot = Snapshot(TWO)
    queue = JobQueue(snapshot, [WANTS, job("late", gpus=1), job("pair", gpus=1, replicas=2)])
    plan = decide(snapshot, queue, judged.profile, overdue={1})
    assert plan.deferred == {0: "apprentice waits for a better place"}
    assert plan.jobs_placed.tolist() == [False, True, True]
    assert judged.fallbacks == {Reason.WAITED: 3}


def test_a_policy_for_nodes_takes_the_node_that_it_scores_highest() -> None:
    """Of nodes that fit the one with the highest score wins, also where scores differ by little."""
    roomy, tight = node(gpu(), gpu(), name="roomy"), node(gpu(), name="tight")
    snapshot = Snapshot(fleet(tight, roomy))
    assert where(decided(Judged(prefers(NODE_SIZE)), snapshot)) == ["roomy"]
    five, little, never = np.float32(5), np.float32(1e-5), np.zeros(1, np.float32)
    near = Model(lambda shown: {"scores": five + little * shown["nodes"][:, NODE_SIZE], "wait": never})
    assert where(decided(Judged(near), Snapshot(fleet(tight, roomy)))) == ["roomy"]


def test_a_policy_for_nodes_waits_when_that_beats_all_scores() -> None:
    """It holds a job back when waiting is worth more to it than the best node."""
    assert decided(Judged(prefers(0, wait=1e9))).deferred == {0: "apprentice waits for a better place"}
    assert decided(Judged(prefers(0, wait=-1e9))).deferred == {}


@pytest.mark.parametrize("wait", [np.nan, np.inf, -np.inf])
def test_a_wait_that_is_no_number_is_the_heuristics(wait: float) -> None:
    """Infinity would hold every job back, and NaN none: neither says anything."""
    judged = Judged(prefers(0, wait=wait))
    assert len(where(decided(judged))) == 1
    assert judged.fallbacks == {Reason.NOT_FINITE: 1}


def test_scores_of_other_nodes_are_the_heuristics() -> None:
    """A model that scores more nodes than it was shown has failed."""
    judged = Judged(Model(lambda _: {"scores": np.zeros(99, np.float32), "wait": np.zeros(1, np.float32)}))
    assert len(where(decided(judged))) == 1
    assert judged.fallbacks == {Reason.FAILED: 1}


def test_a_slow_answer_is_the_heuristics_and_after_several_the_policy_is_set_aside() -> None:
    """Anything that took longer than the budget does not count.

    After some in a row the policy is not asked for a while.
    """
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


def test_what_a_fleet_is_worth_takes_no_part_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables that hang on the fleet alone take as long as many decisions; no policy is slow for having to wait."""
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


def test_a_policy_that_takes_far_too_long_is_stopped() -> None:
    """It gets four times its budget, so that the control loop does not wait for it; that counts as slow."""
    judged = Judged(chooses(1, 2), clusters=2, limits=Limits(budget_ms=5))

    def stopped(_: object) -> NoReturn:
        raise StoppedError("the model fails")

    judged.model.answer = stopped
    assert decided(judged).messages == {0: "seaway decides instead of apprentice: stopped after 20 ms"}
    assert judged.fallbacks == {Reason.SLOW: 1}
    assert judged.model.seconds == 0.02


def test_without_a_budget_nothing_is_stopped() -> None:
    """Anything that is decided depends on no clock then."""
    judged = Judged(chooses(1, 2), clusters=2, limits=Limits(budget_ms=0))
    assert where(decided(judged)) == ["b1"]
    assert judged.model.seconds == 0


def test_a_good_answer_in_between_is_no_strike() -> None:
    """Only failures in a row set a policy aside."""
    judged = Judged(chooses(1, 2), clusters=2, limits=Limits(failure_threshold=2))
    good = judged.model.answer
    for _ in range(3):
        judged.model.answer = lambda _: {}
        decided(judged)
        judged.model.answer = good
        assert where(decided(judged)) == ["b1"]
    assert judged.fallbacks == {Reason.FAILED: 3}


def test_an_explanation_says_that_the_heuristic_would_decide() -> None:
    """A user who asks why is reported that the policy would not decide, and for what reason."""
    reported = explain(Snapshot(TWO), WANTS, Judged(says(np.nan), clusters=2).profile)
    assert summary(reported).endswith("; seaway decides instead of apprentice: its answer is not a number")


def test_what_goes_wrong_again_and_again_is_logged_once_in_ten_minutes(caplog: pytest.LogCaptureFixture) -> None:
    """Every fallback is counted, and only the first of its kind in ten minutes is logged."""
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


def test_a_policy_that_was_trained_on_other_figures_is_refused() -> None:
    """A model that was shown other figures would take ours for something else."""
    file = PolicyFile(manifest(features=nodes_shown.VERSION + 1), b"", ())
    with pytest.raises(RejectedError, match="train it again"):
        make_learned(file, PolicyOptions(), Limits(), Counts(Time()), model=prefers(0))


def test_the_edition_is_the_model() -> None:
    """Two policies of one name are distinguished by their models."""
    assert Judged(prefers(0)).profile.title == "apprentice@0123456789ab"
