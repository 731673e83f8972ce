"""Trained policies that choose among clusters, the published form: one number stands for a cluster, or for waiting."""

from __future__ import annotations

import numpy as np

from seaway.learning.observing.clusters import choice_of, observer
from seaway.learning.observing.nodes import NodeObserver
from seaway.learning.policies.budget import NoAnswerError
from seaway.learning.policies.choice import Answer, Model, finite, may_wait
from seaway.learning.policies.monitor import Reason
from seaway.scheduling.columns import NODE_CLUSTER, NODE_DEVICE_END, NODE_DEVICE_FIRST
from seaway.scheduling.framework import Cycle, DeviceScore, Scores
from seaway.scheduling.policies.pilot.shortlist import score_listed
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
