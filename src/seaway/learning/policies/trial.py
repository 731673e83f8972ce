"""Trials: what a model once answered, which it has to answer wherever it is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
