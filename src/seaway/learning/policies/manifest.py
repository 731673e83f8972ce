"""What a policy file says of itself."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from seaway.domain.errors import RejectedError
from seaway.domain.tenancy import NAME


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
        How it came to that, in the order of episodes; empty where no one wrote it down.
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


Tensors = Mapping[str, NDArray[np.float32]]
"""Inputs or outputs of a model, by name."""

RELATIVE, ABSOLUTE = 1e-3, 1e-4
"""How far an answer may be off: processors add up in different orders."""


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """One recorded call of a model."""

    inputs: Tensors
    outputs: Tensors

    def reproduced_by(self, outputs: Tensors) -> bool:
        """Whether a model that was given the inputs gave the recorded outputs, as nearly as machines agree."""
        return set(outputs) == set(self.outputs) and all(
            each.shape == outputs[name].shape and np.allclose(each, outputs[name], rtol=RELATIVE, atol=ABSOLUTE)
            for name, each in self.outputs.items()
        )


FORMAT = 1
MAX_TRIALS = 16
LONGEST_TEXT = 4096
LONGEST_NAME = 63

_DIGEST = re.compile("[0-9a-f]{64}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class _Array(msgspec.Struct, forbid_unknown_fields=True):
    shape: list[int]
    values: list[float]


class _Trial(msgspec.Struct, forbid_unknown_fields=True):
    inputs: dict[str, _Array]
    outputs: dict[str, _Array]


class _Head(msgspec.Struct, forbid_unknown_fields=True):
    format: int
    manifest: Manifest
    trials: list[_Trial]


def encode_head(manifest: Manifest, trials: Sequence[Trial]) -> bytes:
    """Write both as JSON: the same bytes for the same values."""
    head = _Head(FORMAT, manifest, [_Trial(_arrays(each.inputs), _arrays(each.outputs)) for each in trials])
    return msgspec.json.format(msgspec.json.encode(head, order="sorted"), indent=1)


def decode_head(data: bytes) -> tuple[Manifest, tuple[Trial, ...]]:
    """Read what `encode_head` wrote.

    Raises
    ------
    RejectedError
        When it is anything else.
    """
    try:
        head = msgspec.json.decode(data, type=_Head)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise RejectedError(f"policy.json cannot be read: {error}") from None
    if head.format != FORMAT:
        raise RejectedError(f"format {head.format} of policy files is newer than this Seaway; it knows {FORMAT}")
    if not 1 <= len(head.trials) <= MAX_TRIALS:
        raise RejectedError(f"a policy file has 1 to {MAX_TRIALS} trials, this one {len(head.trials)}")
    check_manifest(head.manifest)
    return head.manifest, tuple(Trial(_tensors(each.inputs), _tensors(each.outputs)) for each in head.trials)


def check_manifest(manifest: Manifest) -> None:
    """Refuse names that are none, and texts that would do something to a terminal."""
    if len(manifest.name) > LONGEST_NAME or not NAME.fullmatch(manifest.name):
        raise RejectedError(f"{manifest.name[:80]!r} is not a name of a policy: use a-z, 0-9, '-' and '.', 63 at most")
    if not _DIGEST.fullmatch(manifest.model_sha256):
        raise RejectedError("model_sha256 is not a SHA-256 digest")
    for name in ("algo", "says", "made_by", "created", "config", "figures"):
        _check_texts(name, getattr(manifest, name), 0)


def _check_texts(where: str, value: object, depth: int) -> None:
    """Look at every text within a value."""
    if isinstance(value, str) and (len(value) > LONGEST_TEXT or _CONTROL.search(value)):
        raise RejectedError(f"{where} holds control characters, or more than {LONGEST_TEXT} letters")
    if depth > 8:
        raise RejectedError(f"{where} is nested too deep")
    if isinstance(value, Mapping):
        for key, each in value.items():
            _check_texts(where, key, depth + 1)
            _check_texts(where, each, depth + 1)
    elif isinstance(value, list | tuple):
        for each in value:
            _check_texts(where, each, depth + 1)


def _arrays(tensors: Tensors) -> dict[str, _Array]:
    return {
        name: _Array(list(each.shape), np.asarray(each, dtype=np.float32).astype(float).ravel().tolist())
        for name, each in tensors.items()
    }


def _tensors(arrays: Mapping[str, _Array]) -> Tensors:
    """Make arrays of what was read; lengths that do not fit, and numbers too large for 32 bits, are refused."""
    tensors = {}
    for name, each in arrays.items():
        with np.errstate(over="ignore"):
            values = np.array(each.values, dtype=np.float32)
        if min(each.shape, default=1) < 1 or not np.isfinite(values).all():
            raise RejectedError("a trial holds an empty tensor, or a number that is none")
        try:
            tensors[name] = values.reshape(each.shape)
        except (ValueError, OverflowError):
            raise RejectedError("a trial has a tensor whose shape does not fit its values") from None
    return tensors
