"""Forward passes agree with a reference in NumPy, and backward passes with finite differences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

torch = pytest.importorskip("torch", reason="needs seaway[learn]")

from seaway.learning.agents.networks import Actor, Critic  # noqa: E402  # where torch is
from seaway.learning.agents.passes import Passes, flatten_parameters, make_buffers  # noqa: E402
from seaway.learning.settings import DdpgSettings  # noqa: E402
from tests.unit.learning.agents import plain  # noqa: E402

SIZE, BATCH = 12, 9

SETTINGS = [
    pytest.param(DdpgSettings(attention=6, heads=2, hidden=(5, 4)), id="attention"),
    pytest.param(DdpgSettings(attention=0, hidden=(5, 4)), id="plain"),
    pytest.param(DdpgSettings(attention=6, heads=3, hidden=(5,), figures=3), id="other tokens"),
]


def sampled_batch() -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Generate observations, actions and the gradient of the output."""
    rng = np.random.default_rng(0)
    observation, action = rng.random((BATCH, SIZE), np.float32), rng.random((BATCH, 1), np.float32)
    return observation, action, rng.standard_normal((BATCH, 1)).astype(np.float32)


def randomise(network: Actor | Critic) -> None:
    """Set random weights of equal size in all layers; the last one starts close to 0 otherwise."""
    rng = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in network.parameters():
            weight.copy_(torch.randn(weight.shape, generator=rng) * 0.5)


def finite_differences(
    weights: plain.Weights, function: Callable[[plain.Weights], float]
) -> dict[str, NDArray[np.float64]]:
    """Return the gradient of a sum by finite differences of each weight."""
    gradients = {name: np.zeros_like(weight) for name, weight in weights.items()}
    for name, weight in weights.items():
        for at in np.ndindex(weight.shape):
            sums = []
            for change in (1e-6, -1e-6):
                changed = weight.copy()
                changed[at] += change
                sums.append(function({**weights, name: changed}))
            gradients[name][at] = (sums[0] - sums[1]) / 2e-6
    return gradients


@pytest.mark.parametrize("settings", SETTINGS)
def test_gradients_of_the_critic(settings: DdpgSettings) -> None:
    """Gradients of all weights agree with finite differences of the critic's value."""
    critic = Critic(settings, SIZE)
    randomise(critic)
    flatten_parameters(critic)
    passes = Passes(critic, make_buffers(critic, BATCH))
    observation, action, gradient = sampled_batch()

    with torch.no_grad():
        values = passes.forward(observation, torch.from_numpy(action)).numpy().copy()
        passes.backward(torch.from_numpy(gradient), observation)

    weights = plain.weights_of(critic)
    assert np.allclose(values, plain.value(weights, observation, action, settings.figures), atol=1e-4)
    wanted = finite_differences(
        weights, lambda each: float((plain.value(each, observation, action, settings.figures) * gradient).sum())
    )
    for name, weight in critic.named_parameters():
        assert np.allclose(weight.grad.numpy(), wanted[name], rtol=1e-3, atol=1e-3), name


@pytest.mark.parametrize("settings", SETTINGS)
def test_gradients_of_the_actor(settings: DdpgSettings) -> None:
    """Gradients of all weights agree with finite differences of the actor's action."""
    actor = Actor(settings, SIZE)
    randomise(actor)
    flatten_parameters(actor)
    passes = Passes(actor, make_buffers(actor, BATCH))
    observation, _, gradient = sampled_batch()

    with torch.no_grad():
        actions = torch.tanh(passes.forward(observation))
        passes.backward(torch.from_numpy(gradient) * (1.0 - actions * actions), observation)

    weights = plain.weights_of(actor)
    assert np.allclose(actions.numpy(), plain.act(weights, observation, settings.figures), atol=1e-5)
    wanted = finite_differences(
        weights, lambda each: float((plain.act(each, observation, settings.figures) * gradient).sum())
    )
    for name, weight in actor.named_parameters():
        assert np.allclose(weight.grad.numpy(), wanted[name], rtol=1e-3, atol=1e-3), name


@pytest.mark.parametrize("settings", SETTINGS)
def test_gradients_of_actions(settings: DdpgSettings) -> None:
    """The gradient of the action agrees with finite differences of the critic's value."""
    critic = Critic(settings, SIZE)
    randomise(critic)
    flatten_parameters(critic)
    passes = Passes(critic, make_buffers(critic, BATCH))
    observation, action, gradient = sampled_batch()

    with torch.no_grad():
        passes.forward(observation, torch.from_numpy(action))
        gradients = passes.action_gradient(torch.from_numpy(gradient), observation).numpy()

    weights = plain.weights_of(critic)
    up, down = (
        plain.value(weights, observation, action.astype(np.float64) + change, settings.figures)
        for change in (1e-6, -1e-6)
    )
    assert np.allclose(gradients, gradient * (up - down) / 2e-6, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("settings", SETTINGS)
def test_passes_equal_modules(settings: DdpgSettings) -> None:
    """The modules, which are exported, have the same results as the passes that training uses."""
    actor, critic = Actor(settings, SIZE), Critic(settings, SIZE)
    observation, action, _ = sampled_batch()
    with torch.no_grad():
        for network in (actor, critic):
            randomise(network)
            flatten_parameters(network)
        acted = torch.tanh(Passes(actor, make_buffers(actor, BATCH)).forward(observation))
        valued = Passes(critic, make_buffers(critic, BATCH)).forward(observation, torch.from_numpy(action))
        seen = torch.from_numpy(observation)

        assert torch.allclose(actor(seen), acted, atol=1e-5)
        assert torch.allclose(critic(seen, torch.from_numpy(action)), valued, atol=1e-4)
