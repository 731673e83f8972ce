"""Plugins by name, and profiles of plugins."""

from __future__ import annotations

from pathlib import Path

import pytest

from seaway.domain.errors import RejectedError
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plugins import RULES_OF_FIT
from seaway.scheduling.policies.registry import LEAST_MIX, PolicyOptions, make_policy, policy_names, with_options
from seaway.scheduling.registry import BUILT_IN, PluginSpec, ProfileSpec, make_plugin, plugin_names, profile_from
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.testing.plugins import cluster, fleet, gpu, job, node

OPTIONS = PolicyOptions(seed=3, plain=True)


@pytest.mark.parametrize("name", BUILT_IN)
def test_plugins_are_registered_under_their_own_names(name: str) -> None:
    """Profile files and explanations have the same names."""
    assert make_plugin(PluginSpec(name), OPTIONS).name == name


def test_profile_begins_with_the_filters() -> None:
    """The built-in filters precede all plugins, and options are passed on."""
    profile = profile_from(ProfileSpec("mine", (PluginSpec("Spread", 2), PluginSpec("PrioritySort"))), OPTIONS)
    names = [each.plugin.name for each in profile.plugins]
    assert names == [*RULES_OF_FIT, "Spread", "PrioritySort"]
    assert [weight for _, weight in profile.scores()] == [2]
    assert (profile.name, profile.seed, profile.plain) == ("mine", 3, True)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ([PluginSpec("Bestfit")], r"unknown plugin 'Bestfit'; available: BestFit, ClusterScore"),
        ([PluginSpec("BestFit", settings={"depth": 3})], r"plugin 'BestFit' does not accept depth"),
        ([PluginSpec("ClusterScore", settings={"cost": 3})], r"plugin 'ClusterScore' does not accept cost"),
        ([PluginSpec("ClusterScore", settings={"price": -3})], r"from 0 up"),
        ([PluginSpec("BestFit"), PluginSpec("BestFit")], r"'mine' has the plugin 'BestFit' more than once"),
        ([PluginSpec("BestFit", weight=0)], r"'mine' has a weight that is not between 1 and"),
        ([PluginSpec("BestFit", policy="pilot")], r"plugin 'BestFit' does not accept policy"),
        ([PluginSpec("PrioritySort")], r"'mine' has no plugin that scores nodes"),
    ],
)
def test_invalid_plugin_is_rejected(wanted: list[PluginSpec], message: str) -> None:
    """The error has one line with the plugin and the existing names."""
    with pytest.raises(RejectedError, match=message):
        profile_from(ProfileSpec("mine", tuple(wanted)), OPTIONS)


def test_a_queue_learns_the_job_mix_from_the_jobs_of_a_queue() -> None:
    """Where whole GPUs are expected, a small job goes to a used one; where halves are, it leaves a used one whole."""
    whole = [job(name=f"w{at}", gpus=1, gpu_milli=1000, gpu_memory_percent=100, queue="whole") for at in range(40)]
    halves = [job(name=f"h{at}", gpus=1, gpu_milli=500, gpu_memory_percent=50, queue="halves") for at in range(30)]
    few = [job(name=f"f{at}", gpus=1, gpu_milli=500, gpu_memory_percent=50, queue="few") for at in range(LEAST_MIX - 1)]
    options = PolicyOptions(mix=[*whole, *halves, *few], plain=True)
    for name in ("fgd", "seaway"):
        assert with_options(name, {"mix": "whole"}, options).mix == whole
        assert with_options(name, {"mix": "few"}, options).mix == options.mix

    def node_of(queue: str) -> str:
        snapshot = Snapshot(fleet(cluster(node(gpu(uuid="u"), name="used"), node(gpu(), name="free"))))
        first = job(name="first", gpus=1, gpu_milli=500, gpu_memory_percent=50, use_uuids={"u"})
        policy = make_policy("fgd", with_options("fgd", {"mix": queue}, options))
        plan = decide(
            snapshot,
            JobQueue(snapshot, [first, job(name="small", gpus=1, gpu_milli=300, gpu_memory_percent=30)]),
            policy,
        )
        return next(each.node for each in plan.placements() if each.job == "small")

    assert (node_of("whole"), node_of("halves")) == ("used", "free")


def offer(folder: Path, name: str, **groups: str) -> None:
    """Write the entry points of an installed package."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [f"[seaway.{group}]\n{line}\n" for group, line in groups.items()]
    (info / "entry_points.txt").write_text("\n".join(lines))


@pytest.mark.parametrize(
    "value", ["no_such_module:Plugin", "seaway.scheduling.policies.greedy:NoSuchClass"], ids=["module", "class"]
)
def test_broken_entry_points_are_rejected(value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the broken package; others still load."""
    offer(tmp_path, "broken", plugins=f"Broken = {value}", policies=f"broken = {value}")
    monkeypatch.syspath_prepend(tmp_path)
    assert "Broken" in plugin_names()
    assert "broken" in policy_names()
    with pytest.raises(RejectedError, match=rf"'Broken', offered as '{value}', cannot be loaded"):
        make_plugin(PluginSpec("Broken"), OPTIONS)
    with pytest.raises(RejectedError, match=rf"'broken', offered as '{value}', cannot be loaded"):
        make_policy("broken")
    assert make_policy("bestfit").name == "bestfit"


def test_built_in_names_take_precedence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package cannot replace a built-in plugin, but its other plugins load."""
    greedy = "seaway.scheduling.policies.greedy:Greedy"
    offer(tmp_path, "other", plugins=f"BestFit = {greedy}\nMine = {greedy}")
    monkeypatch.syspath_prepend(tmp_path)
    assert make_plugin(PluginSpec("BestFit"), OPTIONS).name == "BestFit"
    assert make_plugin(PluginSpec("Mine"), OPTIONS).name == "Greedy"
