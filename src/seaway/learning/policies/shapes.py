"""What a policy's model is asked and what it answers, by level."""

from __future__ import annotations

from typing import NamedTuple

from seaway.domain.errors import RejectedError
from seaway.learning.policies.manifest import Level, Manifest

FEATURES: dict[Level, int] = {Level.CLUSTER: 1, Level.NODE: 1}
"""The version of the figures that models are shown now.

This and how many there are stands in `seaway.learning.observing` too, which takes a second to import.
"""

NODE_FIGURES = 20
"""Figures of one node."""

JOB_FIGURES = 16
"""Figures of the job and the fleet."""

MAX_CLUSTERS = 4096

Length = int | str
"""How long an axis is: a number, or a letter for one that differs from call to call."""


class Tensor(NamedTuple):
    """One input or output: 32-bit floats of a shape."""

    name: str
    shape: tuple[Length, ...]


class Shapes(NamedTuple):
    """All inputs and outputs of a model, in order."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


def shapes_of(manifest: Manifest) -> Shapes:
    """Return what the model of a policy has to take and to give.

    Raises
    ------
    RejectedError
        When the manifest contradicts itself or is meant for figures that this version does not show.
    """
    if manifest.features != FEATURES[manifest.level]:
        raise RejectedError(
            f"the policy was made for version {manifest.features} of the figures of a {manifest.level}, and this "
            f"Seaway shows version {FEATURES[manifest.level]}: train it again"
        )
    if manifest.level is Level.NODE:
        if manifest.clusters is not None:
            raise RejectedError("a policy of level node takes any number of clusters; leave clusters out")
        return Shapes(
            (Tensor("nodes", ("N", NODE_FIGURES)), Tensor("job", (JOB_FIGURES,))),
            (Tensor("scores", ("N",)), Tensor("wait", (1,))),
        )
    if manifest.clusters is None or not 1 <= manifest.clusters <= MAX_CLUSTERS:
        raise RejectedError(f"a policy of level cluster needs its number of clusters, 1 to {MAX_CLUSTERS}")
    length = 8 * manifest.clusters + 8 if manifest.network else 4 * manifest.clusters + 4
    return Shapes((Tensor("observation", (1, length)),), (Tensor("action", (1, 1)),))
