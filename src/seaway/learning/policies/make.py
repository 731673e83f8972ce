"""Trained policies as profiles, at the level of clusters or of nodes, with a heuristic as fallback."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

import msgspec
import numpy as np

from seaway.domain.errors import RejectedError
from seaway.domain.reasons import Reason as Coded
from seaway.learning.observing import clusters as cluster_observation
from seaway.learning.observing import nodes as node_observation
from seaway.learning.observing.clusters import choice_of, observer
from seaway.learning.observing.nodes import NodeObserver
from seaway.learning.policies.choice import (
    Answer,
    Fallback,
    InterruptibleModel,
    Learned,
    Model,
    Policy,
    TimeLimited,
    check_finite,
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
    """Choice of a cluster: nodes of the chosen cluster score 1, others 0, so that the first feasible one is used.

    Parameters
    ----------
    model
        Model with the input ``observation`` of `observe`, shape (1, O), and the output ``action``, shape (1, 1).
    clusters
        Number of clusters that it was trained for.
    network
        Whether the input contains links.
    fitting
        Whether the input counts only free resources on nodes that fit the job.
    """

    def __init__(self, model: Model, clusters: int, *, network: bool, fitting: bool) -> None:
        self._model = model
        self._clusters = clusters
        self._observe = observer(network=network, fitting=fitting)

    def ready(self, snapshot: Snapshot) -> None:
        """Do nothing: there is no data to prepare."""

    def answer(self, cycle: Cycle) -> Answer:
        """Score all nodes by the chosen cluster.

        Raises
        ------
        NoAnswerError
            When the number of clusters differs, the chosen cluster has no feasible node, or the job may not wait.
        """
        count = len(cycle.snapshot.clusters)
        if count != self._clusters:
            raise NoAnswerError(Reason.UNSUITABLE, Coded("trained_for_others", trained=self._clusters, count=count))
        observation = self._observe(cycle.snapshot, cycle.demand_index)
        action = self._model.run({"observation": observation[np.newaxis]})["action"].item()
        check_finite(action)
        choice = choice_of(action, count)
        if choice == count:
            if not may_wait(cycle):
                raise NoAnswerError(Reason.WAITED, Coded("may_not_wait"))
            return Answer(np.zeros(len(cycle.feasible), np.int64), waits=True)
        chosen = cycle.snapshot.arrays.nodes[NODE_CLUSTER] == choice
        if not (chosen & cycle.feasible).any():
            raise NoAnswerError(Reason.ILLEGAL, Coded("nothing_fits", cluster=cycle.snapshot.clusters[choice].name))
        return Answer(chosen.astype(np.int64))

    def device_keys(self, cycle: Cycle, node: int) -> Scores:
        """Return equal keys: the first feasible devices are used."""
        nodes = cycle.snapshot.arrays.nodes
        return np.zeros(int(nodes[NODE_DEVICE_END, node] - nodes[NODE_DEVICE_FIRST, node]), np.int64)


STEPS = 1e6
"""Integer steps per unit of the model's score."""

MAX_DISTANCE = 1e3
"""Maximum distance of a score from the best one."""


class NodeChoice:
    """Scores of feasible nodes by a model.

    Parameters
    ----------
    model
        Model with the inputs ``nodes``, shape (M, F), and ``job``, shape (G,), and the outputs ``scores``, shape (M,),
        and ``wait``, shape (1,). It defers the job if ``wait`` exceeds all scores.
    observer
        Returns the inputs: some feasible nodes, the job and the fleet.
    devices
        Ranks the devices of the chosen node.
    """

    def __init__(self, model: Model, observer: NodeObserver, devices: DeviceScore) -> None:
        self._model = model
        self._observer = observer
        self._devices = devices

    def ready(self, snapshot: Snapshot) -> None:
        """Compute the table of node values, which takes as long as some decisions."""
        self._observer.ready(snapshot)

    def answer(self, cycle: Cycle) -> Answer:
        """Score all nodes. Nodes that are not in the input score just below the worst node in it.

        Raises
        ------
        NoAnswerError
            When the input has no node, or the output is for other nodes.
        """
        view = self._observer.observe(cycle.snapshot, cycle.demand_index, cycle.feasible)
        if not len(view.nodes):
            raise NoAnswerError(Reason.UNSUITABLE, Coded("shown_no_node"))
        answers = self._model.run({"nodes": view.features, "job": view.job})
        outputs, wait = np.ascontiguousarray(answers["scores"], np.float32), answers["wait"].item()
        if outputs.shape != view.nodes.shape:
            raise NoAnswerError(Reason.FAILED, Coded("scores_for_others", count=outputs.size, nodes=len(view.nodes)))
        scores = np.zeros(len(cycle.feasible), np.int64)
        best, total = score_listed(outputs, view.nodes, STEPS, MAX_DISTANCE, scores)
        check_finite(total + wait)
        return Answer(scores, waits=wait > best and may_wait(cycle))

    def device_keys(self, cycle: Cycle, node: int) -> Scores:
        """Return sort keys of the devices of a node, lowest first."""
        return self._devices.device_keys(cycle, node)


VERSION_DIGITS = 12
"""Digits of a model's digest in its version."""


def make_learned(
    file: PolicyFile, options: PolicyOptions, limits: Limits, watch: Watch, *, model: InterruptibleModel | None = None
) -> Profile:
    """Return a trained policy as a profile of the engine, with the filters in front; see `Learned`.

    Parameters
    ----------
    file
        The policy, checked.
    options
        Options of policies; the level is that of the file.
    limits, watch
        Limits of its calls, and receiver of its failures.
    model
        Its model if it is loaded already.

    Raises
    ------
    RejectedError
        When it was trained on another version of inputs, onnxruntime is missing, or the fallback policy does not exist.
    """
    plugin = make_plugin(file, options, limits, watch, model=model)
    return profile_of(plugin.name, options, plugin).with_version(version_of(file))


def make_plugin(
    file: PolicyFile,
    options: PolicyOptions,
    limits: Limits,
    watch: Watch,
    *,
    model: InterruptibleModel | None = None,
    profile: str = "",
) -> Learned:
    """Return a trained policy as a plugin of a profile; parameters and errors as in `make_learned`.

    Parameters
    ----------
    profile
        Name of the profile with other plugins; empty for a policy of its own.
    """
    manifest = file.manifest
    _check_version(manifest)
    loaded = model or Session(file)
    limited = TimeLimited(loaded, limits.stop_s) if limits.budget_ms else loaded
    policy = _policy_of(manifest, limited, options)
    fallback = Fallback(_fallback_profile(options, limits), graded=bool(profile))
    return Learned(manifest.name, policy, Guard(manifest.name, limits, watch), fallback, profile=profile)


class Unusable:
    """Replacement of a policy that cannot be used.

    Parameters
    ----------
    why
        Reason, one clause.
    """

    def __init__(self, why: str) -> None:
        self._why = why

    def ready(self, snapshot: Snapshot) -> None:
        """Do nothing: there is no data to prepare."""

    def answer(self, cycle: Cycle) -> Answer:
        """Raise the reason.

        Raises
        ------
        NoAnswerError
            Always.
        """
        raise NoAnswerError(Reason.UNUSABLE, self._why)

    def device_keys(self, cycle: Cycle, node: int) -> Scores:
        """Raise the reason; see `answer`."""
        raise NoAnswerError(Reason.UNUSABLE, self._why)


def make_unusable(name: str, why: str, options: PolicyOptions, limits: Limits, watch: Watch) -> Profile:
    """Return a profile in which the fallback decides, and reports the reason with each decision."""
    plugin = Learned(name, Unusable(why), Guard(name, limits, watch), Fallback(_fallback_profile(options, limits)))
    return profile_of(name, options, plugin)


def version_of(file: PolicyFile) -> str:
    """Return the version of a policy, which distinguishes policies of the same name."""
    return file.manifest.model_sha256[:VERSION_DIGITS]


def joined_version(outline: ProfileSpec, files: Mapping[str, PolicyFile]) -> str:
    """Return the version of a profile: a digest of its plugins, weights, settings and trained policies.

    Parameters
    ----------
    files
        Its trained policies by name.
    """
    models = {name: file.manifest.model_sha256 for name, file in files.items()}
    parts = [(each.name, each.weight, each.settings, models.get(each.policy)) for each in outline.plugins]
    return sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()[:VERSION_DIGITS]


def _fallback_profile(options: PolicyOptions, limits: Limits) -> Profile:
    """Return the fallback policy."""
    return make_profile(limits.fallback, PolicyOptions(seed=options.seed, mix=options.mix))


def _policy_of(manifest: Manifest, model: Model, options: PolicyOptions) -> Policy:
    if manifest.level is Level.CLUSTER:
        return ClusterChoice(model, manifest.clusters or 0, network=manifest.network, fitting=manifest.fitting)
    seaway = Seaway(options.mix)
    return NodeChoice(model, node_observation.NodeObserver(options.mix, seaway), seaway)


def _check_version(manifest: Manifest) -> None:
    version = cluster_observation.VERSION if manifest.level is Level.CLUSTER else node_observation.VERSION
    if manifest.features != version:
        raise RejectedError(
            f"policy {manifest.name!r} was trained on version {manifest.features} of the figures that policies for "
            f"{manifest.level.value}s are shown, and this Seaway shows version {version}: train it again"
        )
