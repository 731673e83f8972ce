"""Fake models, and policies with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from seaway.learning.observing import nodes as nodes_shown
from seaway.learning.observing.clusters import action_of
from seaway.learning.policies.file import Level, Manifest, PolicyFile
from seaway.learning.policies.make import make_learned
from seaway.learning.policies.monitor import Counts, Limits, Reason
from seaway.scheduling.policies.registry import PolicyOptions
from seaway.scheduling.profile import Profile

Float32 = NDArray[np.float32]
DIGEST = "0123456789ab" + 52 * "c"


class Time:
    """Manual monotonic clock."""

    def __init__(self) -> None:
        self.ns = 0

    def __call__(self) -> int:
        """Return the time."""
        return self.ns

    def pass_ms(self, milliseconds: float) -> None:
        """Let time pass."""
        self.ns += int(milliseconds * 1e6)


class Model:
    """Model that answers by a function, and counts its calls."""

    def __init__(self, answer: Callable[[Mapping[str, Float32]], Mapping[str, Float32]]) -> None:
        self.answer = answer
        self.asked = 0
        self.seconds = 0.0

    def run(self, inputs: Mapping[str, Float32]) -> Mapping[str, Float32]:
        """Answer."""
        self.asked += 1
        return self.answer(inputs)

    def run_within(self, inputs: Mapping[str, Float32], seconds: float) -> Mapping[str, Float32]:
        """Answer; be stopped where that is informed of."""
        self.seconds = seconds
        return self.run(inputs)


def chooses(choice: int, clusters: int) -> Model:
    """Return a model that always chooses a cluster; one past the last waits."""
    return says(action_of(choice, clusters))


def says(action: float) -> Model:
    """Return a model with a constant action."""
    return Model(lambda _: {"action": np.full((1, 1), action, np.float32)})


def prefers(column: int, wait: float = -1e9) -> Model:
    """Return a model that scores a node by one of its features."""
    return Model(lambda shown: {"scores": shown["nodes"][:, column], "wait": np.full(1, wait, np.float32)})


class Judged:
    """Trained policy under test, with its clock and counters."""

    def __init__(self, model: Model, *, clusters: int = 0, limits: Limits | None = None) -> None:
        self.model = model
        self.time = Time()
        self.counts = Counts(self.time)
        limits = replace(limits or Limits(), now_ns=self.time)
        self.profile = learned(model, limits, self.counts, clusters=clusters)

    @property
    def fallbacks(self) -> dict[Reason, int]:
        """The way how often something else decided, by reason."""
        return {reason: count for each in self.counts.counted().values() for reason, count in each.fallbacks.items()}


def manifest(*, clusters: int = 0, features: int | None = None) -> Manifest:
    """Return a manifest for a number of clusters, or at node level."""
    level = Level.CLUSTER if clusters else Level.NODE
    version = nodes_shown.VERSION if features is None else features
    return Manifest("apprentice", "pilot", level, version, DIGEST, clusters=clusters or None)


def learned(model: Model, limits: Limits, counts: Counts, *, clusters: int = 0) -> Profile:
    """Return a trained policy with a model."""
    file = PolicyFile(manifest(clusters=clusters), b"", ())
    return make_learned(file, PolicyOptions(), limits, counts, model=model)
