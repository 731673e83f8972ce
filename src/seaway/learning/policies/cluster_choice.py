"""Trained policies that choose among clusters, the published form: one number stands for a cluster, or for waiting."""

from __future__ import annotations

import numpy as np

from seaway.learning.observing.actions import choice_of
from seaway.learning.observing.clusters import observer
from seaway.learning.policies.budget import NoAnswerError
from seaway.learning.policies.choice import Answer, Model, finite, may_wait
from seaway.learning.policies.watch import Reason
from seaway.scheduling.columns import NODE_CLUSTER, NODE_DEVICE_END, NODE_DEVICE_FIRST
from seaway.scheduling.framework import Cycle, Scores
from seaway.scheduling.snapshot import Snapshot


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
        shown = self._observe(cycle.snapshot, cycle.line)
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
