"""Forward and backward passes of actor and critic into preallocated buffers.

Written out for the one form of these networks, they take half the time of autograd. Batches and networks are small, so
autograd spends most of its time on memory for intermediate results and on bookkeeping.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from seaway.learning.agents.networks import MIN_VALUE, Actor, Attention, Critic, WolpertingerPolicy
from seaway.learning.agents.replay import Floats
from seaway.scheduling.kernels.attention import LANES, attend, attend_backward


def flatten_parameters(network: nn.Module) -> nn.Parameter:
    """Move the weights and gradients of a network into one contiguous vector each, and return it for an optimiser."""
    flat = nn.Parameter(torch.cat([weight.detach().flatten() for weight in network.parameters()]))
    flat.grad = torch.zeros_like(flat)
    start = 0
    for weight in network.parameters():
        part = slice(start, start + weight.numel())
        weight.data = flat.data[part].view_as(weight)
        weight.grad = flat.grad[part].view_as(weight)
        start = part.stop
    return flat


class AttentionBuffers(NamedTuple):
    """Buffers of attention for a batch.

    Attributes
    ----------
    query_input
        Input of the query layer, shape (B, 2F), or (B, 2F + 1) with the action.
    queries, output
        Queries and outputs of all heads, shapes (B, H * D).
    weights
        Softmax weights, in the layout of the kernel.
    output_gradient, queries_gradient
        Gradients of `output` and `queries`.
    """

    query_input: Tensor
    queries: Tensor
    output: Tensor
    weights: Floats
    output_gradient: Tensor
    queries_gradient: Tensor


class Buffers(NamedTuple):
    """Buffers of a network for a batch. Networks of the same form can share them if they do not run concurrently.

    Attributes
    ----------
    attention
        Buffers of attention; None without attention.
    inputs
        Input of the first layer, shape (B, I).
    hidden, hidden_gradients
        Output of each hidden layer and its gradient, shapes (B, width).
    value
        Output of the last layer, shape (B, 1).
    action_gradient
        Gradient of the action, shape (B, 1).
    """

    attention: AttentionBuffers | None
    inputs: Tensor
    hidden: list[Tensor]
    hidden_gradients: list[Tensor]
    value: Tensor
    action_gradient: Tensor


def make_buffers(network: Actor | Critic, batch: int) -> Buffers:
    """Allocate the buffers of a network for one batch size."""
    linear = [layer for layer in network.layers if isinstance(layer, nn.Linear)]
    return Buffers(
        attention=_make_attention(network.attend, batch) if network.attend else None,
        inputs=torch.zeros(batch, linear[0].in_features),
        hidden=[torch.zeros(batch, layer.out_features) for layer in linear[:-1]],
        hidden_gradients=[torch.zeros(batch, layer.out_features) for layer in linear[:-1]],
        value=torch.zeros(batch, 1),
        action_gradient=torch.zeros(batch, 1),
    )


def _make_attention(attend: Attention, batch: int) -> AttentionBuffers:
    of_heads = (batch, attend.heads * attend.width)
    return AttentionBuffers(
        query_input=torch.zeros(batch, attend.queries.in_features),
        queries=torch.zeros(of_heads),
        output=torch.zeros(of_heads),
        weights=np.zeros((-(-batch // LANES), attend.heads, attend.clusters + 1, LANES), np.float32),
        output_gradient=torch.zeros(of_heads),
        queries_gradient=torch.zeros(of_heads),
    )


class LayerViews(NamedTuple):
    """Parameters of a linear layer: weights (out, in), their transpose, bias (out,), and gradients."""

    weight: Tensor
    transposed: Tensor
    bias: Tensor
    weight_gradient: Tensor
    bias_gradient: Tensor


def _views(layer: nn.Linear) -> LayerViews:
    weight = layer.weight.data
    return LayerViews(weight, weight.t(), layer.bias.data, layer.weight.grad, layer.bias.grad)


class Passes:
    """Forward and backward passes of an actor or a critic.

    Parameters
    ----------
    network
        Network with flattened parameters. Passes read its present weights and write its gradients.
    buffers
        Buffers for the batch size. Results are valid until the next pass with the same buffers.
    """

    def __init__(self, network: Actor | Critic, buffers: Buffers) -> None:
        self._buffers = buffers
        self._layers = [_views(layer) for layer in network.layers if isinstance(layer, nn.Linear)]
        self._attention = (
            _AttentionPasses(network.attend, buffers.attention) if network.attend and buffers.attention else None
        )

    def forward(self, observation: Floats, action: Tensor | None = None) -> Tensor:
        """Return the output of the last layer (B, 1), before tanh, for observations (B, O) and actions (B, 1)."""
        inputs = self._buffers.inputs
        features = inputs if action is None else inputs[:, :-1]
        if self._attention:
            self._attention.forward(observation, action, features)
        else:
            features.copy_(torch.from_numpy(observation))
        if action is not None:
            inputs[:, -1:] = action
        for layer, out in zip(self._layers[:-1], self._buffers.hidden, strict=True):
            inputs = torch.addmm(layer.bias, inputs, layer.transposed, out=out).relu_()
        return torch.addmm(self._layers[-1].bias, inputs, self._layers[-1].transposed, out=self._buffers.value)

    def backward(self, gradient: Tensor, observation: Floats) -> None:
        """Write the gradients of all weights, given the gradient (B, 1) of the last output of `forward`."""
        buffers = self._buffers
        for at in range(len(self._layers) - 1, -1, -1):
            layer = self._layers[at]
            torch.mm(gradient.t(), buffers.hidden[at - 1] if at else buffers.inputs, out=layer.weight_gradient)
            torch.sum(gradient, 0, out=layer.bias_gradient)
            if at:
                gradient = self._input_gradient(at, gradient)
        if self._attention:
            self._attention.backward(gradient, self._layers[0].weight, observation)

    def action_gradient(self, gradient: Tensor, observation: Floats) -> Tensor:
        """Return the gradient of the actions (B, 1) only, given the gradient of the last output of `forward`."""
        for at in range(len(self._layers) - 1, 0, -1):
            gradient = self._input_gradient(at, gradient)
        weight = self._layers[0].weight
        out = torch.mm(gradient, weight[:, -1:], out=self._buffers.action_gradient)
        return self._attention.add_action_gradient(gradient, weight, observation, out) if self._attention else out

    def _input_gradient(self, at: int, gradient: Tensor) -> Tensor:
        """Return the gradient of the input of layer `at`, before the ReLU of the previous layer."""
        hidden = self._buffers.hidden[at - 1]
        out = torch.mm(gradient, self._layers[at].weight, out=self._buffers.hidden_gradients[at - 1])
        return torch.ops.aten.threshold_backward.grad_input(out, hidden, 0, grad_input=out)


class _AttentionPasses:
    """Forward and backward passes of attention. Gradients end at the query layer and at the actions."""

    def __init__(self, attend: Attention, buffers: AttentionBuffers) -> None:
        self._buffers = buffers
        self._queries = _views(attend.queries)
        self._positions = attend.positions.numpy()
        self._features = attend.features
        self._clusters = attend.clusters

    def forward(self, observation: Floats, action: Tensor | None, out: Tensor) -> None:
        """Write the outputs of the heads and the features of the job to `out` (B, out_features)."""
        buffers, features, size = self._buffers, self._features, self._clusters * self._features
        tensor = torch.from_numpy(observation)
        job = tensor[:, size:]
        buffers.query_input[:, :features] = job
        clusters = tensor[:, :size].unflatten(1, (self._clusters, features))
        torch.mean(clusters, 1, out=buffers.query_input[:, features : 2 * features])
        if action is not None:
            buffers.query_input[:, -1:] = action
        torch.addmm(self._queries.bias, buffers.query_input, self._queries.transposed, out=buffers.queries)
        attend(observation, self._positions, buffers.queries.numpy(), buffers.weights, buffers.output.numpy())
        out[:, : -self._features] = buffers.output
        out[:, -self._features :] = job

    def backward(self, gradient: Tensor, weight: Tensor, observation: Floats) -> None:
        """Write the gradients of the query layer, given the gradient of the next layer's output and its weights."""
        queries_gradient = self._queries_gradient(gradient, weight, observation)
        torch.mm(queries_gradient.t(), self._buffers.query_input, out=self._queries.weight_gradient)
        torch.sum(queries_gradient, 0, out=self._queries.bias_gradient)

    def add_action_gradient(self, gradient: Tensor, weight: Tensor, observation: Floats, out: Tensor) -> Tensor:
        """Add the gradient of the actions through the queries to `out` (B, 1)."""
        return out.addmm_(self._queries_gradient(gradient, weight, observation), self._queries.weight[:, -1:])

    def _queries_gradient(self, gradient: Tensor, weight: Tensor, observation: Floats) -> Tensor:
        buffers = self._buffers
        torch.mm(gradient, weight[:, : buffers.output.shape[1]], out=buffers.output_gradient)
        attend_backward(
            observation,
            self._positions,
            buffers.weights,
            buffers.output_gradient.numpy(),
            buffers.queries_gradient.numpy(),
        )
        return buffers.queries_gradient


class PolicyPasses:
    """Forward passes of a policy for single observations.

    Parameters
    ----------
    policy
        Policy with flattened parameters; its present weights are read.
    observation_size
        O.
    """

    def __init__(self, policy: WolpertingerPolicy, observation_size: int) -> None:
        self._policy = policy
        self._midpoints: Floats = policy.midpoints.numpy()
        self._actions = policy.midpoints[:, None]
        self._observations = np.zeros((len(self._midpoints), observation_size), np.float32)
        self._critic = Passes(policy.critic, make_buffers(policy.critic, len(self._midpoints)))
        self._actor = Passes(policy.actor, make_buffers(policy.actor, 1))

    @torch.no_grad()
    def action(self, observation: Floats) -> float:
        """Return the action, -1 to 1, for an observation (O,); NaN if the values are not finite."""
        if self._policy.candidates == 1:
            return self._proto_action(observation)
        self._observations[:] = observation
        values: Floats = self._critic.forward(self._observations, self._actions)[:, 0].numpy()
        if self._policy.uses_actor:
            distances = np.abs(self._midpoints - self._proto_action(observation))
            nearer = (distances < distances[:, np.newaxis]).sum(axis=1)
            values = np.where(nearer < self._policy.candidates, values, MIN_VALUE)
        best = np.argmax(values)
        return float(self._midpoints[best]) if np.isfinite(values[best]) else math.nan

    def _proto_action(self, observation: Floats) -> float:
        return math.tanh(self._actor.forward(observation[np.newaxis]).item())


class Adam:
    """Adam for one tensor.

    The result equals that of `torch.optim.Adam`, whose bookkeeping takes four times as long as the computation for a
    small tensor.

    Parameters
    ----------
    weights
        Parameter to update by its `grad`.
    rate
        Learning rate.

    References
    ----------
    Kingma and Ba, Adam: A Method for Stochastic Optimization, 2014, algorithm 1. doi:10.48550/arXiv.1412.6980
    """

    BETA1 = 0.9
    BETA2 = 0.999
    EPSILON = 1e-8

    def __init__(self, weights: Tensor, rate: float) -> None:
        self._weights = weights
        self._rate = rate
        self._first_moment = torch.zeros_like(weights)
        self._second_moment = torch.zeros_like(weights)
        self._steps = torch.zeros(())

    def step(self) -> None:
        """Update the weights once."""
        self._steps += 1
        torch._fused_adam_(
            [self._weights],
            [self._weights.grad],
            [self._first_moment],
            [self._second_moment],
            [],
            [self._steps],
            lr=self._rate,
            beta1=self.BETA1,
            beta2=self.BETA2,
            weight_decay=0.0,
            eps=self.EPSILON,
            amsgrad=False,
            maximize=False,
        )

    def state(self) -> dict[str, Any]:
        """Return copies of the moments and the number of steps."""
        return {
            "first": self._first_moment.clone(),
            "second": self._second_moment.clone(),
            "taken": self._steps.clone(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a result of `state`."""
        self._first_moment.copy_(state["first"])
        self._second_moment.copy_(state["second"])
        self._steps.copy_(state["taken"])
