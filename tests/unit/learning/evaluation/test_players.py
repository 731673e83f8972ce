"""Evaluation of policies that defer jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from seaway.learning.evaluation.contestants import Contestant, EnginePlayer
from seaway.learning.evaluation.measure import run, tasks
from seaway.learning.evaluation.trained import LearnedPlayer
from seaway.learning.instances.instance import Instance
from seaway.learning.instances.wide import drawn
from seaway.learning.policies.check import read_policy
from seaway.learning.policies.file import Level, Manifest, write_policy
from seaway.scheduling.framework import PASS, Cycle, Status, Verdict
from seaway.scheduling.policies.registry import PolicyOptions, make_policy
from seaway.scheduling.profile import Profile, WeightedPlugin
from seaway.testing.plugins import fleet, gpu, job, node


class Patient:
    """Plugin that defers jobs with whole devices."""

    name = "Patient"

    def pre_score(self, cycle: Cycle) -> Status:
        """Hold a whole one back."""
        return Status(Verdict.WAIT, "") if cycle.job.demand.request.gpu_milli != 500 else PASS


def patient(options: PolicyOptions) -> Profile:
    """Return best fit with this plugin."""
    policy = make_policy("bestfit", options)
    assert isinstance(policy, Profile)
    return Profile("patient", (*policy.plugins, WeightedPlugin(Patient())))


def placed(offers: int) -> int | None:
    """Return the number of placed jobs of a whole device and two halves on one device."""
    halves = [job(name, gpus=1, gpu_milli=500, gpu_memory_mib=40_960) for name in "ab"]
    instance = Instance("one", fleet(node(gpu())), (job("whole", gpus=1), *halves))
    (task,) = tasks([Contestant("patient", "node", EnginePlayer(patient))], [instance], [0], offers)
    return run(task).row.placed


def test_deferred_jobs_are_offered_again_for_all_policies() -> None:
    """The whole job waits, so both halves are placed."""
    assert placed(offers=2) == 2
    assert placed(offers=1) == 1


@pytest.mark.slow
def test_training_and_engine_place_the_same_jobs(tmp_path: Path) -> None:
    """The kernel of training and the engine have the same rule for waiting."""
    pytest.importorskip("torch", reason="needs seaway[learn]")
    pytest.importorskip("onnxscript", reason="needs seaway[learn]")
    from seaway.learning.exporting import export_actor
    from seaway.learning.pilot.batch_environment import BatchEnvironment
    from seaway.learning.pilot.network import PilotNetwork, initial_weights
    from seaway.learning.pilot.train import example_views

    weights, instances = initial_weights(16, 2, 0), drawn("placement", 3, seed=5)
    trials = [{"nodes": view.features, "job": view.job} for view in example_views(instances)]
    manifest = Manifest("untrained", "pilot", Level.NODE, 1, "", network=True)
    file = tmp_path / "untrained.policy"
    write_policy(file, export_actor(PilotNetwork(weights), manifest, trials))
    player = LearnedPlayer(read_policy(file))
    counts = [player.play(each, seed=0).outcome.counts for each in instances]
    scores = [BatchEnvironment(each).play(weights, waiting=True) for each in instances]
    assert [(each.placed, each.failed) for each in counts] == [(each.placed, each.failed) for each in scores]
    at_once = [player.play(each, seed=0, offers=1).outcome.counts.placed for each in instances]
    assert at_once != [each.placed for each in counts]
