"""Interface of an algorithm to a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Protocol

from seaway.domain.errors import RejectedError
from seaway.learning.policies.file import Level
from seaway.learning.training.listener import EpisodeResult, Listener

State = dict[str, Any]
"""State for a checkpoint: numbers, texts, tensors and arrays, in dicts, lists and tuples."""


@dataclass(frozen=True, slots=True)
class TrainedActor:
    """Trained network for export to a policy file; see `Manifest` for the other fields.

    Attributes
    ----------
    actor
        Module of torch with the inputs and outputs of its level.
    level, features, clusters, network, fitting
        As in the manifest.
    trials
        Examples of real inputs, 1 to 16.
    apart
        Whether it was evaluated on held-out instances.
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
    """An algorithm that learns in episodes, with a state that can be stored between them.

    A learner with equal settings and the restored state continues exactly as the first would, to the bit with one
    thread.
    """

    def prepare(self, listener: Listener) -> None:
        """Prepare the first episode, for example by imitation. It is not called for a resumed run."""

    def train(self) -> Iterator[Sequence[EpisodeResult]]:
        """Train without end, and yield the results of episodes, one or more per item.

        Between items, all other methods can be called.
        """

    def evaluate(self) -> Sequence[EpisodeResult]:
        """Play each instance once with the present policy, without noise. The state does not change."""

    def state(self) -> State:
        """Return the state for a checkpoint."""

    def restore(self, state: State) -> None:
        """Restore the state of a checkpoint."""

    def weights(self) -> State:
        """Return the weights that decisions need."""

    def load_weights(self, weights: State) -> None:
        """Set the weights for decisions. Training is not possible after that."""

    def trained_actor(self) -> TrainedActor:
        """Return the network for export."""


LOWER_RATES = "give it lower learning rates"


def check_finite(figure: float, remedy: str = LOWER_RATES) -> None:
    """Check that a figure is finite.

    Parameters
    ----------
    figure
        An action, or a sum of weights.
    remedy
        Remedy for the error message.

    Raises
    ------
    RejectedError
        When it is not, because weights diverged.
    """
    if not isfinite(figure):
        raise RejectedError(f"the weights have diverged: {remedy}")
