"""Common parts of trained policies of both levels as plugins of the engine."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Protocol

import numpy as np

from seaway.domain.reasons import Reason as Coded
from seaway.domain.reasons import also
from seaway.learning.policies.file import Tensors
from seaway.learning.policies.monitor import Guard, NoAnswerError, Reason
from seaway.learning.policies.session import StoppedError
from seaway.scheduling.compiled import CompiledPlacer
from seaway.scheduling.engine import placer_for
from seaway.scheduling.framework import PASS, Cycle, Decider, Scores, Status, Verdict
from seaway.scheduling.plain import device_keys, total_score
from seaway.scheduling.profile import Profile
from seaway.scheduling.snapshot.snapshot import Snapshot


class Fallback:
    """A policy of the engine for single decisions.

    Parameters
    ----------
    profile
        The policy.
    graded
        Whether each node gets its own score, as required to combine it with other scores.
    """

    def __init__(self, profile: Profile, *, graded: bool = False) -> None:
        self._profile = profile
        self._graded = graded
        self.name = profile.name
        self.draws = profile.draws

    def scores(self, cycle: Cycle) -> Scores:
        """Score nodes, shape (N,).

        Without `graded`, the chosen node gets the highest score, by compiled code if possible.
        """
        placer = None if self._graded else placer_for(cycle.snapshot, self._profile)
        if isinstance(placer, CompiledPlacer):
            n = placer.choose_node(cycle.snapshot, cycle.demand_index, cycle.random_bits)
            if n >= 0 and cycle.feasible[n]:
                scores = np.zeros(len(cycle.feasible), np.int64)
                scores[n] = 1
                return scores
        return total_score(self._profile, cycle)

    def device_keys(self, cycle: Cycle, node: int) -> Scores:
        """Return sort keys of the devices of a node, lowest first."""
        return device_keys(self._profile, cycle, node)


class Model(Protocol):
    """A loaded model."""

    def run(self, inputs: Tensors) -> Tensors:
        """Return outputs by name."""


class InterruptibleModel(Model, Protocol):
    """A model that can be stopped."""

    def run_within(self, inputs: Tensors, seconds: float) -> Tensors:
        """Return outputs by name; raise `StoppedError` after about so many seconds."""


class TimeLimited:
    """A model with a time limit.

    Parameters
    ----------
    model
        The model.
    seconds
        Time limit of an answer.
    """

    def __init__(self, model: InterruptibleModel, seconds: float) -> None:
        self._model = model
        self._seconds = seconds

    def run(self, inputs: Tensors) -> Tensors:
        """Return outputs by name.

        Raises
        ------
        NoAnswerError
            When the time limit was exceeded.
        """
        try:
            return self._model.run_within(inputs, self._seconds)
        except StoppedError:
            raise NoAnswerError(Reason.SLOW, Coded("stopped_after", limit=self._seconds * 1e3)) from None


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer of a trained policy.

    Attributes
    ----------
    scores
        Scores of nodes, shape (N,).
    waits
        Whether it prefers that the job waits.
    """

    scores: Scores
    waits: bool = False


class Policy(Protocol):
    """A trained policy of one level."""

    def ready(self, snapshot: Snapshot) -> None:
        """Prepare data that depends on the fleet only."""

    def answer(self, cycle: Cycle) -> Answer:
        """Score the nodes of a decision with at least one feasible node.

        Raises
        ------
        NoAnswerError
            When there is no valid answer.
        """

    def device_keys(self, cycle: Cycle, node: int) -> Scores:
        """Return sort keys of the devices of a node, lowest first."""


class Learned:
    """A trained policy as a plugin: scores, a choice of devices and, for jobs with one replica, deferral.

    It is called once per decision, after the filters. Without a valid answer, the heuristic decides. In a profile with
    other plugins, the scores of the heuristic replace its scores.

    Parameters
    ----------
    name
        Name of the policy.
    policy
        The policy.
    guard
        Limits of its calls.
    fallback
        The heuristic.
    profile
        Profile with other plugins; empty for a policy of its own.
    """

    def __init__(self, name: str, policy: Policy, guard: Guard, fallback: Fallback, *, profile: str = "") -> None:
        self.name = name
        self._policy = policy
        self._guard = guard
        self._fallback = fallback
        self._profile = profile

    def pre_score(self, cycle: Cycle) -> Status:
        """Call the policy; defer the job if it requests that."""
        found = self._answer(cycle)
        if isinstance(found, Answer) and found.waits:
            return Status(Verdict.WAIT, Coded("waits_for_better", policy=self.name))
        return PASS

    def score(self, cycle: Cycle) -> Scores:
        """Score all nodes, shape (N,)."""
        found = self._answer(cycle)
        return found.scores if isinstance(found, Answer) else self._fallback.scores(cycle)

    def device_keys(self, cycle: Cycle, node: int) -> Scores:
        """Return sort keys of the devices of a node, lowest first."""
        decided = isinstance(self._answer(cycle), Answer)
        return (self._policy if decided else self._fallback).device_keys(cycle, node)

    def _answer(self, cycle: Cycle) -> Answer | str:
        """Return the answer of the policy for a decision, or the reason for its absence; the policy is called once."""
        found: Answer | str | None = cycle.state.get(self.name)
        if found is None:
            found = cycle.state[self.name] = self._guard.ask(
                lambda: self._policy.answer(cycle), lambda: self._policy.ready(cycle.snapshot)
            )
            if isinstance(found, str):
                self._record_fallback(cycle, found)
            elif cycle.decider is None:
                cycle.decider = Decider(self._profile or self.name)
        return found

    def _record_fallback(self, cycle: Cycle, why: str) -> None:
        code = "fallback_scores" if self._profile else "fallback_decides"
        message = Coded(code, policy=self._fallback.name, other=self.name, why=why)
        cycle.message = also(cycle.message, message) if cycle.message else message
        cycle.decider = Decider(self._profile, cycle.message) if self._profile else Decider(self._fallback.name, why)


def may_wait(cycle: Cycle) -> bool:
    """Report whether a policy may defer a job.

    Jobs with several replicas may not be deferred, which would split them.
    """
    return cycle.may_defer and cycle.job.replicas == 1


def check_finite(total: float) -> None:
    """Check that 32-bit numbers are finite, by their sum in 64 bits.

    Raises
    ------
    NoAnswerError
        When one is not finite.
    """
    if not isfinite(total):
        raise NoAnswerError(Reason.NOT_FINITE, Coded("answer_not_finite"))
