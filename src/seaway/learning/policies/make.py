"""Trained policies as profiles, at the level of clusters or of nodes, with a heuristic as fallback."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

import msgspec
import numpy as np

from seaway.domain.errors import RejectedError
from seaway.learning.observing import clusters as clusters_shown
from seaway.learning.observing import nodes as nodes_shown
from seaway.learning.observing.clusters import choice_of, observer
from seaway.learning.observing.nodes import NodeObserver
from seaway.learning.policies.choice import (
    Answer,
    FallBack,
    Learned,
    Model,
    Policy,
    Stoppable,
    Stopped,
    finite,
    may_wait,
)
from seaway.learning.policies.file import Level, Manifest, PolicyFile
from seaway.learning.policies.monitor import Guard, Limits, NoAnswerError, Reason, Watch
from seaway.learning.policies.session import Session
from seaway.scheduling.columns import NODE_CLUSTER, NODE_DEVICE_END, NODE_DEVICE_FIRST
from seaway.scheduling.framework import Cycle, DeviceScore, Scores
from seaway.scheduling.policies.pilot.shortlist import score_listed
from seaway.scheduling.policies.registry import PolicyOptions, make_profile, profile_of
from seaway.scheduling.policies.seaway.plugin import Seaway
from seaway.scheduling.profile import Profile
from seaway.scheduling.registry import ProfileSpec
from seaway.scheduling.snapshot.snapshot import Snapshot


class ClusterChoice:
    """Scores the nodes of the cluster that the model chooses 1, so that the first that fits is taken, others 0.

    Parameters
    ----------
    model
        Takes what `observe` shows as ``observation``, shape (1, O), and gives ``action``, shape (1, 1).
    clusters
        How many clusters it was trained for.
    network
        Whether it is shown links.
    fitting
        Whether of what is free it is shown only what is on nodes that fit the job.
    """

    def __init__(self, model: Model, clusters: int, *, network: bool, fitting: bool) -> None:
        self._model = model
        self._clusters = clusters
        self._observe = observer(network=network, fitting=fitting)

    def ready(self, snapshot: Snapshot) -> None:
        """Nothing is worked out beforehand."""

    def answer(self, cycle: Cycle) -> Answer:
        """Score every node by the cluster that is chosen.

        Raises
        ------
        NoAnswerError
            When the fleet has another number of clusters, nothing fits in the one that is chosen, or the job may not
            wait.
        """
        count = len(cycle.snapshot.clusters)
        if count != self._clusters:
            why = f"trained for {self._clusters} clusters, and the fleet has {count}"
            raise NoAnswerError(Reason.UNSUITABLE, why)
        shown = self._observe(cycle.snapshot, cycle.demand_index)
        action = self._model.run({"observation": shown[np.newaxis]})["action"].item()
        finite(action)
        choice = choice_of(action, count)
        if choice == count:
            if not may_wait(cycle):
                raise NoAnswerError(Reason.WAITED, "it would wait, and this job may not")
            return Answer(np.zeros(len(cycle.feasible), np.int64), waits=True)
        chosen = cycle.snapshot.arrays.nodes[NODE_CLUSTER] == choice
        if not (chosen & cycle.feasible).any():
            raise NoAnswerError(Reason.ILLEGAL, f"nothing fits in {cycle.snapshot.clusters[choice].name}")
        return Answer(chosen.astype(np.int64))

    def device_keys(self, cycle: Cycle, node: int) -> Scores:
        """Rank devices alike: the first that fit are taken."""
        nodes = cycle.snapshot.arrays.nodes
        return np.zeros(int(nodes[NODE_DEVICE_END, node] - nodes[NODE_DEVICE_FIRST, node]), np.int64)


STEPS = 1e6
"""Steps of a score in one of the model's."""

FARTHEST = 1e3
"""Scores so far below the best one count as one."""


class NodeChoice:
    """Scores nodes that fit as the model does.

    Parameters
    ----------
    model
        Takes ``nodes``, shape (M, F), and ``job``, shape (G,); gives ``scores``, shape (M,), and ``wait``, shape (1,).
        It would rather wait where that is above all scores.
    observer
        Shows it some nodes that fit, the job and the fleet.
    devices
        Ranks devices of the node that was chosen.
    """

    def __init__(self, model: Model, observer: NodeObserver, devices: DeviceScore) -> None:
        self._model = model
        self._observer = observer
        self._devices = devices

    def ready(self, snapshot: Snapshot) -> None:
        """Table what nodes are worth, which takes as long as some decisions."""
        self._observer.ready(snapshot)

    def answer(self, cycle: Cycle) -> Answer:
        """Score every node; those that the model is not shown come just after the worst of those that it is.

        Raises
        ------
        NoAnswerError
            When it is shown none, or answers of other nodes.
        """
        shown = self._observer.observe(cycle.snapshot, cycle.demand_index, cycle.feasible)
        if not len(shown.nodes):
            raise NoAnswerError(Reason.UNSUITABLE, "it is shown no node that fits")
        answers = self._model.run({"nodes": shown.figures, "job": shown.job})
        given, wait = np.ascontiguousarray(answers["scores"], np.float32), answers["wait"].item()
        if given.shape != shown.nodes.shape:
            raise NoAnswerError(Reason.FAILED, f"{given.size} scores for {len(shown.nodes)} nodes")
        scores = np.zeros(len(cycle.feasible), np.int64)
        best, total = score_listed(given, shown.nodes, STEPS, FARTHEST, scores)
        finite(total + wait)
        return Answer(scores, waits=wait > best and may_wait(cycle))

    def device_keys(self, cycle: Cycle, node: int) -> Scores:
        """Rank the node's devices."""
        return self._devices.device_keys(cycle, node)


VERSION_DIGITS = 12
"""Digits of a model's digest by which people tell it from others."""


def make_learned(
    file: PolicyFile, options: PolicyOptions, limits: Limits, watch: Watch, *, model: Stoppable | None = None
) -> Profile:
    """Make a trained policy that the engine can decide by.

    The rules of fit come first, so that what it chooses fits; see `Learned` for the rest.

    Parameters
    ----------
    file
        The policy, read and checked.
    options
        What policies are told; the level is the file's own.
    limits, watch
        What it may take, and who is told when it takes more.
    model
        Its model, where that is loaded already.

    Raises
    ------
    RejectedError
        When it was trained on other figures than this version shows, onnxruntime is missing, or there is no such
        heuristic to fall back to.
    """
    plugin = make_plugin(file, options, limits, watch, model=model)
    return profile_of(plugin.name, options, plugin).with_version(version_of(file))


def make_plugin(
    file: PolicyFile,
    options: PolicyOptions,
    limits: Limits,
    watch: Watch,
    *,
    model: Stoppable | None = None,
    profile: str = "",
) -> Learned:
    """Make a trained policy as a plugin, to be weighed against others.

    Parameters
    ----------
    profile
        The profile that it joins; empty for one that it is alone in. The others are as for `make_learned`, and so is
        what is raised.
    """
    manifest = file.manifest
    _check_figures(manifest)
    loaded = model or Session(file)
    asked = Stopped(loaded, limits.stop_s) if limits.budget_ms else loaded
    chooser = _chooser(manifest, asked, options)
    behind = FallBack(_behind(options, limits), graded=bool(profile))
    return Learned(manifest.name, chooser, Guard(manifest.name, limits, watch), behind, profile=profile)


class Unusable:
    """Stands in the place of a policy that cannot be used.

    Parameters
    ----------
    why
        One clause.
    """

    def __init__(self, why: str) -> None:
        self._why = why

    def ready(self, snapshot: Snapshot) -> None:
        """Nothing is worked out beforehand."""

    def answer(self, cycle: Cycle) -> Answer:
        """Say that there is none.

        Raises
        ------
        NoAnswerError
            Always.
        """
        raise NoAnswerError(Reason.UNUSABLE, self._why)

    def device_keys(self, cycle: Cycle, node: int) -> Scores:
        """Rank the devices of a node; raises as `answer`."""
        raise NoAnswerError(Reason.UNUSABLE, self._why)


def make_unusable(name: str, why: str, options: PolicyOptions, limits: Limits, watch: Watch) -> Profile:
    """Make what decides in place of a policy that cannot be used, and says so of each decision."""
    plugin = Learned(name, Unusable(why), Guard(name, limits, watch), FallBack(_behind(options, limits)))
    return profile_of(name, options, plugin)


def version_of(file: PolicyFile) -> str:
    """Return what tells a policy from others of its name."""
    return file.manifest.model_sha256[:VERSION_DIGITS]


def joined_version(outline: ProfileSpec, files: Mapping[str, PolicyFile]) -> str:
    """Return what tells a profile from others of its name: its plugins, weights and settings, and trained policies.

    Parameters
    ----------
    files
        Its trained policies, by the names that it has for them.
    """
    models = {name: file.manifest.model_sha256 for name, file in files.items()}
    parts = [(each.name, each.weight, each.settings, models.get(each.policy)) for each in outline.plugins]
    return sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()[:VERSION_DIGITS]


def _behind(options: PolicyOptions, limits: Limits) -> Profile:
    """Make the heuristic that decides where a trained policy does not."""
    return make_profile(limits.fallback, PolicyOptions(seed=options.seed, mix=options.mix))


def _chooser(manifest: Manifest, model: Model, options: PolicyOptions) -> Policy:
    if manifest.level is Level.CLUSTER:
        return ClusterChoice(model, manifest.clusters or 0, network=manifest.network, fitting=manifest.fitting)
    seaway = Seaway(options.mix)
    return NodeChoice(model, nodes_shown.NodeObserver(options.mix, seaway), seaway)


def _check_figures(manifest: Manifest) -> None:
    shown = clusters_shown.VERSION if manifest.level is Level.CLUSTER else nodes_shown.VERSION
    if manifest.features != shown:
        raise RejectedError(
            f"policy {manifest.name!r} was trained on version {manifest.features} of the figures that policies for "
            f"{manifest.level.value}s are shown, and this Seaway shows version {shown}: train it again"
        )
