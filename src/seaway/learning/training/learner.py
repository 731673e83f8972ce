"""What a run needs of an algorithm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Protocol

from seaway.domain.errors import RejectedError
from seaway.learning.policies.file import Level
from seaway.learning.training.listener import Listener, Play

State = dict[str, Any]
"""Numbers, texts, tensors and arrays, in dicts, lists and tuples: what a checkpoint can hold, see `checkpoint`."""


@dataclass(frozen=True, slots=True)
class Decider:
    """What decides, to be written as a policy file; see `Manifest` for what is not said here.

    Attributes
    ----------
    actor
        A module of torch that takes the inputs of its level and returns its outputs.
    level, features, clusters, network, fitting
        As the manifest has them.
    trials
        Inputs that it may really be shown, 1 to 16.
    apart
        Whether it was evaluated on instances that it did not learn on.
    """

    actor: Any
    level: Level
    features: int
    trials: Sequence[Mapping[str, Any]]
    clusters: int | None = None
    network: bool = False
    fitting: bool = False
    apart: bool = False


class Learner(Protocol):
    """An algorithm that learns in episodes, and whose whole state can be kept between them.

    A learner of the same settings that is given the state goes on as the first would have, to the bit with one thread.
    """

    def prepare(self, listener: Listener) -> None:
        """Do what comes before the first episode, like filling an expert's pool; not called where a run goes on."""

    def plays(self) -> Iterator[Sequence[Play]]:
        """Learn, without end: each item is the episodes that ended since the last one, at least one.

        Between items any other method may be called.
        """

    def evaluate(self) -> Sequence[Play]:
        """Play every instance once by what was learned until now, without noise; this changes no state."""

    def state(self) -> State:
        """Return all that it needs to go on."""

    def restore(self, state: State) -> None:
        """Take such a state up."""

    def weights(self) -> State:
        """Return what decides, without what only learning needs."""

    def wear(self, weights: State) -> None:
        """Decide by such weights from now on; it is not asked to learn after that."""

    def decider(self) -> Decider:
        """Return what decides now."""


LOWER_RATES = "give it lower learning rates"


def check_finite(figure: float, remedy: str = LOWER_RATES) -> None:
    """Reject a figure that is not a number any more.

    Parameters
    ----------
    figure
        An action, or a sum of weights.
    remedy
        What helps.

    Raises
    ------
    RejectedError
        When weights have grown beyond all bounds.
    """
    if not isfinite(figure):
        raise RejectedError(f"the weights have diverged: {remedy}")
