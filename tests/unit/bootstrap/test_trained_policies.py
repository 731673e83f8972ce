"""Trained policies by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from seaway.bootstrap import trained_policies as module
from seaway.bootstrap.policies import policy_of
from seaway.bootstrap.trained_policies import Trained, own_folder
from seaway.domain.errors import RejectedError
from seaway.learning.policies.file import PolicyFile, write_policy
from seaway.learning.policies.library import FolderLibrary
from seaway.learning.policies.monitor import Counts, Limits
from seaway.learning.policies.session import Session
from seaway.scheduling.columns import NODE_CPU_FREE, NODE_MEMORY_FREE, NODE_PODS_FREE
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.policies.registry import PolicyOptions
from seaway.scheduling.profile import Profile
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.simulation.demo import demo_fleet, demo_jobs
from tests.fakes.policies import cluster_policy, node_policy

OPTIONS = PolicyOptions()


def test_names_and_paths_of_policy_files_are_policies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy of the user's own folder is known by its name, any other by its path, and a wrong name is reported."""
    monkeypatch.setenv("SEAWAY_DATA", str(tmp_path))
    file = node_policy()
    name = file.manifest.name
    write_policy(own_folder() / f"{name}.policy", file)
    write_policy(tmp_path / "elsewhere.policy", file)
    for text in (name, str(tmp_path / "elsewhere.policy")):
        policy = policy_of(text, OPTIONS)
        assert isinstance(policy, Profile)
        assert policy.title == f"{name}@{file.manifest.model_sha256[:12]}"
    with pytest.raises(RejectedError, match=f"unknown policy 'missing'; available: .*{name}"):
        policy_of("missing", OPTIONS)


def test_a_replay_tells_that_a_policy_does_not_decide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A user who compares a policy for two clusters on a fleet of three reads that the heuristic decided, once."""
    monkeypatch.setenv("SEAWAY_DATA", str(tmp_path / "own"))
    write_policy(tmp_path / "two.policy", cluster_policy(clusters=2))
    for _ in range(2):
        policy = policy_of(str(tmp_path / "two.policy"), OPTIONS)
        snapshot = Snapshot(demo_fleet())
        decide(snapshot, JobQueue(snapshot, demo_jobs(3)), policy)
    (reported,) = caplog.messages
    assert reported.endswith("trained for 2 clusters, and the fleet has 3")


def test_a_policy_for_nodes_has_no_level_of_clusters(tmp_path: Path) -> None:
    """A user who asks for the level of clusters is reported that the policy chooses among nodes."""
    with pytest.raises(RejectedError, match="chooses among nodes"):
        in_folder(tmp_path, node_policy()).make("tiny", PolicyOptions(level="cluster"))


def test_each_model_is_loaded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Policies that are made again, as when they learn what is asked for, share what is loaded, until it is let go."""
    loaded = []

    def load(file: PolicyFile) -> Session:
        loaded.append(file)
        return Session(file)

    trained = in_folder(tmp_path, node_policy())
    monkeypatch.setattr(module, "Session", load)
    for _ in range(3):
        trained.profile("tiny", ())
    assert len(loaded) == 1
    trained.forget("tiny")
    trained.profile("tiny", ())
    assert len(loaded) == 2


@pytest.mark.parametrize("file", [cluster_policy(clusters=3), node_policy()], ids=["cluster", "node"])
def test_the_same_jobs_go_to_the_same_places(file: PolicyFile, tmp_path: Path) -> None:
    """A model decides alike on equal fleets, and gives away nothing that is not there."""
    jobs = demo_jobs(30)
    trained = in_folder(tmp_path, file)
    plans = []
    for _ in range(2):
        snapshot = Snapshot(demo_fleet())
        queue = JobQueue(snapshot, jobs)
        plans.append(decide(snapshot, queue, trained.profile("tiny", ()), overdue=range(len(jobs))))
    assert plans[0].jobs_placed.any()
    np.testing.assert_array_equal(plans[0].decisions, plans[1].decisions)
    np.testing.assert_array_equal(plans[0].slices, plans[1].slices)
    assert (plans[0].snapshot.arrays.nodes[[NODE_CPU_FREE, NODE_MEMORY_FREE, NODE_PODS_FREE]] >= 0).all()


def in_folder(folder: Path, file: PolicyFile) -> Trained:
    """Keep a policy by the name of tiny in a folder, and return what makes it."""
    write_policy(folder / "tiny.policy", file)
    return Trained(FolderLibrary(folder), Limits(budget_ms=0), Counts(lambda: 0))
