"""Steps of Adam on one line of weights."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class Adam:
    """Steps against a gradient, each weight by a length of its own.

    `torch.optim.Adam` with the same numbers gives the same; its book-keeping takes four times as long as its sums
    where there is one small tensor.

    Parameters
    ----------
    weights
        What is stepped; its `grad` is read.
    rate
        Learning rate.

    References
    ----------
    Kingma and Ba, Adam: A Method for Stochastic Optimization, 2014, algorithm 1. doi:10.48550/arXiv.1412.6980
    """

    FIRST_DECAY = 0.9
    SECOND_DECAY = 0.999
    EPSILON = 1e-8

    def __init__(self, weights: Tensor, rate: float) -> None:
        self._weights = weights
        self._rate = rate
        self._first = torch.zeros_like(weights)
        self._second = torch.zeros_like(weights)
        self._taken = torch.zeros(())

    def step(self) -> None:
        """Take a step."""
        self._taken += 1
        torch._fused_adam_(
            [self._weights],
            [self._weights.grad],
            [self._first],
            [self._second],
            [],
            [self._taken],
            lr=self._rate,
            beta1=self.FIRST_DECAY,
            beta2=self.SECOND_DECAY,
            weight_decay=0.0,
            eps=self.EPSILON,
            amsgrad=False,
            maximize=False,
        )

    def state(self) -> dict[str, Any]:
        """Give copies of its moments and how many steps it took."""
        return {"first": self._first.clone(), "second": self._second.clone(), "taken": self._taken.clone()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` gave."""
        self._first.copy_(state["first"])
        self._second.copy_(state["second"])
        self._taken.copy_(state["taken"])
