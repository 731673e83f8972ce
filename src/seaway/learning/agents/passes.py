"""Passes through a network, there and back, written out: each number has its place in memory before the first.

What autograd does in general is done here for the one form that actor and critic have. It takes half the time: batches
and networks are small, so that most of it went into new memory for each intermediate result and into book-keeping.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from seaway.learning.agents.networks import Actor, Critic
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


class Room(NamedTuple):
    """Memory for a batch on its way through a network; networks of one form that run in turn may share it.

    Attributes
    ----------
    attended, shares
        What attention makes of the observations, shape (B, O), and what its kernel keeps for the way back.
    taken
        What the first layer takes, shape (B, I): O, or O + 1 with the action.
    hidden, hidden_slopes
        What each hidden layer gives, and the gradient of that, shapes (B, width).
    value
        What the last layer gives, shape (B, 1).
    attended_slopes
        Gradient of `attended`.
    action_slopes
        Gradient of the action, shape (B, 1).
    """

    attended: Floats
    shares: Floats
    taken: Tensor
    hidden: list[Tensor]
    hidden_slopes: list[Tensor]
    value: Tensor
    attended_slopes: Tensor
    action_slopes: Tensor


def make_room(network: Actor | Critic, observation_size: int, batch: int) -> Room:
    """Allocate what passes of one batch size need."""
    linear = [layer for layer in network.layers if isinstance(layer, nn.Linear)]
    tokens = observation_size // network.attend.figures if network.attend else 0
    return Room(
        attended=np.zeros((batch, observation_size), np.float32),
        shares=np.zeros((-(-batch // LANES), tokens, tokens, LANES), np.float32),
        taken=torch.zeros(batch, linear[0].in_features),
        hidden=[torch.zeros(batch, layer.out_features) for layer in linear[:-1]],
        hidden_slopes=[torch.zeros(batch, layer.out_features) for layer in linear[:-1]],
        value=torch.zeros(batch, 1),
        attended_slopes=torch.zeros(batch, observation_size),
        action_slopes=torch.zeros(batch, 1),
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
        self._size = room.attended.shape[1]
        self._layers = [_views(layer) for layer in network.layers if isinstance(layer, nn.Linear)]
        made = _views(network.attend.made) if network.attend else None
        self._made: tuple[Floats, Floats] | None = made and (made.weight.numpy(), made.bias.numpy())
        self._made_slopes: tuple[Floats, Floats] | None = made and (
            made.weight_slopes.numpy(),
            made.bias_slopes.numpy(),
        )

    def run(self, observation: Floats, action: Tensor | None = None) -> Tensor:
        """Return what the last layer gives (B, 1), before any tanh, for observations (B, O) and actions (B, 1)."""
        room = self._room
        if self._made:
            attend(observation, *self._made, room.shares, room.attended)
            observation = room.attended
        room.taken[:, : self._size] = torch.from_numpy(observation)
        if action is not None:
            room.taken[:, self._size :] = action
        taken = room.taken
        for layer, out in zip(self._layers[:-1], room.hidden, strict=True):
            taken = torch.addmm(layer.bias, taken, layer.turned, out=out).relu_()
        return torch.addmm(self._layers[-1].bias, taken, self._layers[-1].turned, out=room.value)

    def lead_back(self, slope: Tensor, observation: Floats) -> None:
        """Write the gradients of all weights, where `slope` (B, 1) is that of what the last `run` gave."""
        room = self._room
        for at in range(len(self._layers) - 1, -1, -1):
            layer = self._layers[at]
            torch.mm(slope.t(), room.hidden[at - 1] if at else room.taken, out=layer.weight_slopes)
            torch.sum(slope, 0, out=layer.bias_slopes)
            if at:
                slope = self._through(at, slope)
        if self._made and self._made_slopes:
            torch.mm(slope, self._layers[0].weight[:, : self._size], out=room.attended_slopes)
            attend_back(observation, *self._made, room.shares, room.attended_slopes.numpy(), *self._made_slopes)

    def lead_to_action(self, slope: Tensor) -> Tensor:
        """Return the gradient of the actions (B, 1) alone, where `slope` is that of what the last `run` gave."""
        for at in range(len(self._layers) - 1, 0, -1):
            slope = self._through(at, slope)
        return torch.mm(slope, self._layers[0].weight[:, self._size :], out=self._room.action_slopes)

    def _through(self, at: int, slope: Tensor) -> Tensor:
        """Return the gradient of what layer `at` took, before the rectifier in front of it."""
        out = torch.mm(slope, self._layers[at].weight, out=self._room.hidden_slopes[at - 1])
        return torch.ops.aten.threshold_backward.grad_input(out, self._room.hidden[at - 1], 0, grad_input=out)
