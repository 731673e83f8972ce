"""Policies in the package."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from seaway.learning.evaluation.contestants import heuristic
from seaway.learning.evaluation.trained import from_file
from seaway.learning.instances.wide import drawn
from seaway.learning.observing.nodes import JOB_FEATURES, NODE_FEATURES, SHORTLIST_SIZE, VERSION
from seaway.learning.policies.library import ShippedLibrary
from seaway.learning.runs.assemble import command_of, run_of
from seaway.learning.runs.instances import digest_of
from seaway.learning.training.listener import Evaluation


def test_shipped_pilot_answers_for_any_number_of_nodes() -> None:
    """It has the present version of features, names its command, is small, and scores each node."""
    pytest.importorskip("onnxruntime", reason="needs seaway[policy]")
    from seaway.learning.policies.session import Session

    file = ShippedLibrary().load("pilot")
    assert file.manifest.features == VERSION
    assert file.manifest.made_by.startswith("seaway train --algo pilot")
    assert len(file.model) < 200_000
    session = Session(file)
    random = np.random.default_rng(0)
    job = random.random(JOB_FEATURES, np.float32)
    for count in (1, SHORTLIST_SIZE):
        nodes = random.random((count, NODE_FEATURES), np.float32)
        answer = session.run({"nodes": nodes, "job": job})
        assert answer["scores"].shape == (count,)
        assert np.isfinite(answer["scores"]).all()
        turned = session.run({"nodes": np.ascontiguousarray(nodes[::-1]), "job": job})
        assert np.allclose(turned["scores"][::-1], answer["scores"], atol=1e-4)
        assert np.allclose(turned["wait"], answer["wait"], atol=1e-4)


def test_shipped_pilot_records_its_command() -> None:
    """The command matches its settings, and its results are of held-out instances."""
    manifest = ShippedLibrary().load("pilot").manifest
    run = run_of(manifest.config)
    assert run.algo == manifest.algo
    assert manifest.made_by == command_of(run, Path("runs/pilot"))
    assert set(manifest.figures) == {f"kept_apart_{each.name}" for each in fields(Evaluation)}


def test_shipped_eade_ddpg_decides_for_the_published_shape() -> None:
    """It is small, names its command, and loses hardly any job of an unknown instance to an illegal choice."""
    pytest.importorskip("onnxruntime", reason="needs seaway[policy]")
    file = ShippedLibrary().load("eade-ddpg")
    manifest, run = file.manifest, run_of(file.manifest.config)
    assert (manifest.name, manifest.algo, manifest.clusters) == ("eade-ddpg", "eade-ddpg", 16)
    assert manifest.made_by == command_of(run, Path("runs/eade-ddpg"))
    assert file.size_bytes < 200_000
    (instance,) = drawn("placement", 1, seed=77)
    shipped = from_file(file)
    assert shipped.trained_on
    assert not shipped.trained_on.has(instance, digest_of(instance))
    found, lots = (each.player.play(instance, 0).outcome.counts for each in (shipped, heuristic("random", "cluster")))
    assert found.placed > lots.placed
    assert found.failed < 5


def test_trials_of_shipped_pilot_are_real_observations() -> None:
    """They are the first feasible jobs of the instances of its command."""
    pytest.importorskip("torch", reason="needs seaway[learn]")
    from seaway.learning.pilot.train import TRIALS, example_views

    file = ShippedLibrary().load("pilot")
    run = run_of(file.manifest.config)
    seen = example_views(drawn(run.draw[0], TRIALS, run.settings.draw_seed))
    assert len(file.trials) == len(seen) == TRIALS
    for trial, view in zip(file.trials, seen, strict=True):
        assert np.allclose(trial.inputs["nodes"], view.features, atol=1e-5)
        assert np.allclose(trial.inputs["job"], view.job, atol=1e-5)
