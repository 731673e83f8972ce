"""Trained policies that choose among nodes, of which there may be any number."""

from __future__ import annotations

import numpy as np

from seaway.learning.observing.nodes import NodeObserver
from seaway.learning.policies.budget import NoAnswerError
from seaway.learning.policies.choice import Answer, Model, finite, may_wait
from seaway.learning.policies.watch import Reason
from seaway.scheduling.framework import Cycle, DeviceScore, Scores
from seaway.scheduling.kernels.shortlist import score_listed
from seaway.scheduling.snapshot import Snapshot

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
        shown = self._observer.observe(cycle.snapshot, cycle.line, cycle.feasible)
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
