"""Training sets in policy files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from seaway.learning.evaluation.contestants import TrainingSet, joint_training_set, training_set
from seaway.learning.evaluation.measure import tasks
from seaway.learning.evaluation.trained import from_file
from seaway.learning.instances.instance import read_instances
from seaway.learning.instances.wide import drawn
from seaway.learning.policies.check import read_policy
from seaway.learning.policies.library import ShippedLibrary
from seaway.learning.runs.assemble import new_run, record_of
from seaway.learning.runs.export import MAX_DIGESTS, learned_on
from seaway.learning.runs.instances import MIX, digest_of
from seaway.learning.settings import Run
from tests.unit.learning.runs.small import small_run, write_instance


def read_back(run: Run, digests: Mapping[str, str]) -> TrainingSet | None:
    """Return the training set according to a policy file of a run."""
    return training_set(json.loads(json.dumps(record_of(run) | learned_on(run, digests))))


@pytest.mark.slow
def test_a_policy_file_identifies_its_training_instances(tmp_path: Path) -> None:
    """Without the folder of the run, training instances are recognised, and others are not."""
    pytest.importorskip("torch", reason="needs seaway[learn]")
    pytest.importorskip("onnxscript", reason="needs seaway[learn]")
    from seaway.learning.runs.run import train

    mine, other = (write_instance(tmp_path / name, jobs) for name, jobs in (("mine", 10), ("other", 9)))
    reached = train(small_run("ddpg", mine, episodes=2), tmp_path / "run")
    assert reached.policy
    file = read_policy(reached.policy.rename(tmp_path / "moved.policy"))
    work = tasks([from_file(file)], read_instances([mine, other]), [0])
    assert [(task.instance.name, task.trained_on_instance) for task in work] == [("mine", True), ("other", False)]


def test_generated_instances_are_identified_by_generation() -> None:
    """Their digests are not stored; an instance of that name is generated again and compared."""
    run = new_run("pilot", ["x"], ["network"], {"draws": 2, "draw_seed": 3})
    first, second, third = drawn("network", 3, seed=3)
    digests = {each.name: digest_of(each) for each in (first, second)} | {f"{MIX}{first.name}": "1", "x": "2"}
    assert learned_on(run, digests) == {"digests": {"x": "2"}}
    seen = read_back(run, digests)
    assert seen
    assert [seen.has(each, digest_of(each)) for each in (first, second, third)] == [True, True, False]
    changed = replace(first, jobs=first.jobs[1:])
    assert not seen.has(changed, digest_of(changed))
    (foreign,) = drawn("network", 1, seed=4)
    assert not seen.has(foreign, digest_of(foreign))


def test_files_without_records_have_no_training_set() -> None:
    """Older files, foreign files and files of very many folders do not record instances."""
    run = new_run("ddpg", ["x"], [], {})
    assert read_back(run, {str(at): "1" for at in range(MAX_DIGESTS)})
    assert read_back(run, {str(at): "1" for at in range(MAX_DIGESTS + 1)}) is None
    for config in ({}, record_of(run), {"digests": ["1"]}, {"digests": {}, "settings": {"draws": "many"}}):
        assert training_set(config) is None


def test_the_joint_training_set_of_several_policies() -> None:
    """It is the union of all, or unknown if one of them is unknown."""
    one, two = drawn("network", 2, seed=3)
    said = [{"digests": {each.name: digest_of(each)}} for each in (one, two)]
    for configs, has in (([said[0]], [True, False]), (said, [True, True])):
        seen = joint_training_set(configs)
        assert seen
        assert [seen.has(each, digest_of(each)) for each in (one, two)] == has
    assert joint_training_set([*said, {}]) is None
    assert joint_training_set([]) is None


def test_shipped_policies_without_records() -> None:
    """Without digests, nothing is reported."""
    library = ShippedLibrary()
    for name in library.names():
        file = library.load(name)
        assert (from_file(file).trained_on is None) == ("digests" not in file.manifest.config)
