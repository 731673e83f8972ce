"""Passes through a network, there and back, written out: each number has its place in memory before the first.

What autograd does in general is done here for the one form that actor and critic have. It takes half the time: batches
and networks are small, so that most of it went into new memory for each intermediate result and into book-keeping.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from seaway.learning.agents.networks import Actor, Attention, Critic
from seaway.learning.agents.replay import Floats
from seaway.scheduling.kernels.attention import LANES, attend, attend_back


def lay_flat(network: nn.Module) -> nn.Parameter:
    """Move a network's weights and gradients into one line of memory, and return it: an optimiser's only parameter."""
    line = nn.Parameter(torch.cat([weight.detach().flatten() for weight in network.parameters()]))
    line.grad = torch.zeros_like(line)
    first = 0
    for weight in network.parameters():
        here = slice(first, first + weight.numel())
        weight.data = line.data[here].view_as(weight)
        weight.grad = line.grad[here].view_as(weight)
        first = here.stop
    return line


class AttentionParams(NamedTuple):
    """Memory for a batch on its way through attention.

    Attributes
    ----------
    question
        What questions are made of, shape (B, 2F), or (B, 2F + 1) with the action.
    asked, found
        The questions of all heads, and what they saw, shapes (B, H * D).
    shares
        What the kernel keeps for the way back.
    found_slopes, asked_slopes
        Gradients of `found` and `asked`.
    """

    question: Tensor
    asked: Tensor
    found: Tensor
    shares: Floats
    found_slopes: Tensor
    asked_slopes: Tensor


class Room(NamedTuple):
    """Memory for a batch on its way through a network; networks of one form that run in turn may share it.

    Attributes
    ----------
    query
        Of attention; None where there is none.
    taken
        What the first layer takes, shape (B, I).
    hidden, hidden_slopes
        What each hidden layer gives, and the gradient of that, shapes (B, width).
    value
        What the last layer gives, shape (B, 1).
    action_slopes
        Gradient of the action, shape (B, 1).
    """

    query: AttentionParams | None
    taken: Tensor
    hidden: list[Tensor]
    hidden_slopes: list[Tensor]
    value: Tensor
    action_slopes: Tensor


def make_room(network: Actor | Critic, batch: int) -> Room:
    """Allocate what passes of one batch size need."""
    linear = [layer for layer in network.layers if isinstance(layer, nn.Linear)]
    return Room(
        query=_make_attention(network.attend, batch) if network.attend else None,
        taken=torch.zeros(batch, linear[0].in_features),
        hidden=[torch.zeros(batch, layer.out_features) for layer in linear[:-1]],
        hidden_slopes=[torch.zeros(batch, layer.out_features) for layer in linear[:-1]],
        value=torch.zeros(batch, 1),
        action_slopes=torch.zeros(batch, 1),
    )


def _make_attention(attend: Attention, batch: int) -> AttentionParams:
    of_heads = (batch, attend.heads * attend.width)
    return AttentionParams(
        question=torch.zeros(batch, attend.queries.in_features),
        asked=torch.zeros(of_heads),
        found=torch.zeros(of_heads),
        shares=np.zeros((-(-batch // LANES), attend.heads, attend.clusters + 1, LANES), np.float32),
        found_slopes=torch.zeros(of_heads),
        asked_slopes=torch.zeros(of_heads),
    )


class LayerViews(NamedTuple):
    """A linear layer's memory: weights (out, in), the same turned (in, out), bias (out,), and their gradients."""

    weight: Tensor
    turned: Tensor
    bias: Tensor
    weight_slopes: Tensor
    bias_slopes: Tensor


def _views(layer: nn.Linear) -> LayerViews:
    weight = layer.weight.data
    return LayerViews(weight, weight.t(), layer.bias.data, layer.weight.grad, layer.bias.grad)


class Passes:
    """Runs batches through an actor or a critic, and gradients back.

    Parameters
    ----------
    network
        Whose weights, laid flat before, are read at each pass, and whose gradients are written.
    room
        What a pass leaves there counts until the next pass in it.
    """

    def __init__(self, network: Actor | Critic, room: Room) -> None:
        self._room = room
        self._layers = [_views(layer) for layer in network.layers if isinstance(layer, nn.Linear)]
        self._looking = _Looking(network.attend, room.query) if network.attend and room.query else None

    def run(self, observation: Floats, action: Tensor | None = None) -> Tensor:
        """Return what the last layer gives (B, 1), before any tanh, for observations (B, O) and actions (B, 1)."""
        taken = self._room.taken
        seen = taken if action is None else taken[:, :-1]
        if self._looking:
            self._looking.run(observation, action, seen)
        else:
            seen.copy_(torch.from_numpy(observation))
        if action is not None:
            taken[:, -1:] = action
        for layer, out in zip(self._layers[:-1], self._room.hidden, strict=True):
            taken = torch.addmm(layer.bias, taken, layer.turned, out=out).relu_()
        return torch.addmm(self._layers[-1].bias, taken, self._layers[-1].turned, out=self._room.value)

    def lead_back(self, slope: Tensor, observation: Floats) -> None:
        """Write the gradients of all weights, where `slope` (B, 1) is that of what the last `run` gave."""
        room = self._room
        for at in range(len(self._layers) - 1, -1, -1):
            layer = self._layers[at]
            torch.mm(slope.t(), room.hidden[at - 1] if at else room.taken, out=layer.weight_slopes)
            torch.sum(slope, 0, out=layer.bias_slopes)
            if at:
                slope = self._through(at, slope)
        if self._looking:
            self._looking.lead_back(slope, self._layers[0].weight, observation)

    def lead_to_action(self, slope: Tensor, observation: Floats) -> Tensor:
        """Return the gradient of the actions (B, 1) alone, where `slope` is that of what the last `run` gave."""
        for at in range(len(self._layers) - 1, 0, -1):
            slope = self._through(at, slope)
        weight = self._layers[0].weight
        out = torch.mm(slope, weight[:, -1:], out=self._room.action_slopes)
        return self._looking.lead_to_action(slope, weight, observation, out) if self._looking else out

    def _through(self, at: int, slope: Tensor) -> Tensor:
        """Return the gradient of what layer `at` took, before the rectifier in front of it."""
        out = torch.mm(slope, self._layers[at].weight, out=self._room.hidden_slopes[at - 1])
        return torch.ops.aten.threshold_backward.grad_input(out, self._room.hidden[at - 1], 0, grad_input=out)


class _Looking:
    """Runs batches through attention, and gradients back to questions and actions."""

    def __init__(self, attend: Attention, room: AttentionParams) -> None:
        self._room = room
        self._queries = _views(attend.queries)
        self._places = attend.places.numpy()
        self._figures = attend.figures
        self._clusters = attend.clusters

    def run(self, observation: Floats, action: Tensor | None, out: Tensor) -> None:
        """Write what heads see, and the job, to `out` (B, saw)."""
        room, figures, size = self._room, self._figures, self._clusters * self._figures
        seen = torch.from_numpy(observation)
        job = seen[:, size:]
        room.question[:, :figures] = job
        torch.mean(
            seen[:, :size].unflatten(1, (self._clusters, figures)), 1, out=room.question[:, figures : 2 * figures]
        )
        if action is not None:
            room.question[:, -1:] = action
        torch.addmm(self._queries.bias, room.question, self._queries.turned, out=room.asked)
        attend(observation, self._places, room.asked.numpy(), room.shares, room.found.numpy())
        out[:, : -self._figures] = room.found
        out[:, -self._figures :] = job

    def lead_back(self, slope: Tensor, weight: Tensor, observation: Floats) -> None:
        """Write the gradients of what makes questions; `slope` is that of what the first layer, of `weight`, gave."""
        asked_slopes = self._to_questions(slope, weight, observation)
        torch.mm(asked_slopes.t(), self._room.question, out=self._queries.weight_slopes)
        torch.sum(asked_slopes, 0, out=self._queries.bias_slopes)

    def lead_to_action(self, slope: Tensor, weight: Tensor, observation: Floats, out: Tensor) -> Tensor:
        """Add to `out` (B, 1) what actions do through attention."""
        return out.addmm_(self._to_questions(slope, weight, observation), self._queries.weight[:, -1:])

    def _to_questions(self, slope: Tensor, weight: Tensor, observation: Floats) -> Tensor:
        room = self._room
        torch.mm(slope, weight[:, : room.found.shape[1]], out=room.found_slopes)
        attend_back(observation, self._places, room.shares, room.found_slopes.numpy(), room.asked_slopes.numpy())
        return room.asked_slopes


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
