"""What a policy file says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec


class Level(StrEnum):
    """What a trained policy chooses among."""

    CLUSTER = "cluster"
    """It is shown free shares of a fixed number of clusters and answers with one number (the published form)."""
    NODE = "node"
    """It is shown any number of nodes and scores each."""


class Point(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a policy did without noise after so many episodes of its training.

    Attributes
    ----------
    placed, refused
        Jobs, over all instances that it was evaluated on; refused are those that nothing could have held.
    gpu_load_variance, reward
        Means over the instances.
    """

    episode: int
    placed: int
    refused: int
    gpu_load_variance: float
    reward: float


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a policy file says of its model, as it stands there.

    Attributes
    ----------
    name
        What users call the policy: a name as in Kubernetes.
    algo
        What trained it: ``eade-ddpg``, ``ddpg``, ``td3``, ``sac``, ``ppo`` or ``pilot``.
    level
        What it chooses among.
    features
        Version of the figures that the model is shown, see `seaway.learning.observing`; others are refused.
    clusters
        How many clusters it was trained for; None for a model that takes any number.
    network
        Whether link figures and network demands are among what it is shown.
    fitting
        Of level cluster: whether of what clusters have free it is shown only what is on nodes that fit the job.
    model_sha256
        Digest of the ONNX model, 64 hexadecimal digits.
    says
        What it does, one clause.
    made_by
        The command that made it.
    created
        When, ISO 8601 with a zone.
    config
        Settings of the training, and digests of the folders that it learned on.
    figures
        What it achieved where it was measured, by name.
    curve
        How it came to that, in the order of episodes; empty where nobody wrote it down.
    """

    name: str
    algo: str
    level: Level
    features: int
    model_sha256: str
    clusters: int | None = None
    network: bool = False
    fitting: bool = False
    says: str = ""
    made_by: str = ""
    created: str = ""
    config: Mapping[str, Any] = msgspec.field(default_factory=dict)
    figures: Mapping[str, float] = msgspec.field(default_factory=dict)
    curve: tuple[Point, ...] = ()
