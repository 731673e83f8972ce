"""What trained policies of both levels have in common as plugins of the engine."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Protocol

import numpy as np

from seaway.learning.policies.file import Tensors
from seaway.learning.policies.monitor import Guard, NoAnswerError, Reason
from seaway.learning.policies.session import StoppedError
from seaway.scheduling.compiled import CompiledPlacer
from seaway.scheduling.engine import placer_for
from seaway.scheduling.framework import PASS, Cycle, Decider, Scores, Status, Verdict
from seaway.scheduling.plain import device_keys, total_score
from seaway.scheduling.profile import Profile
from seaway.scheduling.snapshot.snapshot import Snapshot


class FallBack:
    """A policy of the engine, asked for one decision at a time.

    Parameters
    ----------
    profile
        The policy.
    graded
        Whether every node gets a score of its own, as it takes to be weighed against other scores.
    """

    def __init__(self, profile: Profile, *, graded: bool = False) -> None:
        self._profile = profile
        self._graded = graded
        self.name = profile.name

    def scores(self, cycle: Cycle) -> Scores:
        """Score nodes, shape (N,).

        Unless they are graded, the node that it takes comes before all others, by machine code where there is some.
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
        """Rank the devices of a node, the lowest first."""
        return device_keys(self._profile, cycle, node)


class Model(Protocol):
    """What answers: a loaded model."""

    def run(self, inputs: Tensors) -> Tensors:
        """Return outputs by name."""


class Stoppable(Model, Protocol):
    """One that can be stopped."""

    def run_within(self, inputs: Tensors, seconds: float) -> Tensors:
        """Return them, or raise `StoppedError` about when so many seconds have passed."""


class Stopped:
    """A model that is stopped when it takes far too long, so that no one waits for it.

    Parameters
    ----------
    model
        Which.
    seconds
        What it gets for an answer.
    """

    def __init__(self, model: Stoppable, seconds: float) -> None:
        self._model = model
        self._seconds = seconds

    def run(self, inputs: Tensors) -> Tensors:
        """Return outputs by name.

        Raises
        ------
        NoAnswerError
            When it was stopped.
        """
        try:
            return self._model.run_within(inputs, self._seconds)
        except StoppedError:
            raise NoAnswerError(Reason.SLOW, f"stopped after {self._seconds * 1e3:g} ms") from None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a trained policy says of a decision.

    Attributes
    ----------
    scores
        Of nodes, shape (N,).
    waits
        Whether it would rather have the job wait.
    """

    scores: Scores
    waits: bool = False


class Policy(Protocol):
    """A trained policy of one level."""

    def ready(self, snapshot: Snapshot) -> None:
        """Work out what hangs on the fleet alone, where it is not known yet."""

    def answer(self, cycle: Cycle) -> Answer:
        """Score the nodes of a decision, some of which fit.

        Raises
        ------
        NoAnswerError
            When nothing that counts can be said.
        """

    def device_keys(self, cycle: Cycle, node: int) -> Scores:
        """Rank the devices of a node that it chose."""


class Learned:
    """A trained policy as a plugin: a score, a choice of devices and, of jobs of one replica, whether to wait.

    It is asked once for a decision, with what fits known. Where it has no answer, the heuristic decides; in a profile
    that it shares with other plugins, the heuristic scores in its place, and the profile decides all the same.

    Parameters
    ----------
    name
        The policy's.
    policy
        What answers.
    guard
        Asks it.
    fallback
        What decides otherwise.
    profile
        The profile that it shares with others; empty where it is alone.
    """

    def __init__(self, name: str, policy: Policy, guard: Guard, fallback: FallBack, *, profile: str = "") -> None:
        self.name = name
        self._policy = policy
        self._guard = guard
        self._fall_back = fallback
        self._profile = profile

    def pre_score(self, cycle: Cycle) -> Status:
        """Ask the policy; hold the job back where it says so."""
        found = self._asked(cycle)
        if isinstance(found, Answer) and found.waits:
            return Status(Verdict.WAIT, f"{self.name} waits for a better place")
        return PASS

    def score(self, cycle: Cycle) -> Scores:
        """Score every node, shape (N,)."""
        found = self._asked(cycle)
        return found.scores if isinstance(found, Answer) else self._fall_back.scores(cycle)

    def device_keys(self, cycle: Cycle, node: int) -> Scores:
        """Rank the node's devices."""
        decided = isinstance(self._asked(cycle), Answer)
        return (self._policy if decided else self._fall_back).device_keys(cycle, node)

    def _asked(self, cycle: Cycle) -> Answer | str:
        """Return what the policy says of a decision, or why nothing; it is asked once."""
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
        """Say that the heuristic steps in."""
        does = "scores" if self._profile else "decides"
        said = f"{self._fall_back.name} {does} instead of {self.name}: {why}"
        cycle.message = "; ".join(filter(None, (cycle.message, said)))
        cycle.decider = Decider(self._profile, cycle.message) if self._profile else Decider(self._fall_back.name, why)


def may_wait(cycle: Cycle) -> bool:
    """Tell whether a policy may hold a job back: one of several replicas would be torn apart."""
    return cycle.may_defer and cycle.job.replicas == 1


def finite(total: float) -> None:
    """Refuse 32-bit figures by their sum as a 64-bit one, which is finite just where all of them are.

    Raises
    ------
    NoAnswerError
        When one is not finite.
    """
    if not isfinite(total):
        raise NoAnswerError(Reason.NOT_FINITE, "its answer is not a number")
