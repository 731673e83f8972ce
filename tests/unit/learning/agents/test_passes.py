"""Passes through actor and critic give what plain NumPy gives, and gradients what small changes give."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

torch = pytest.importorskip("torch", reason="needs seaway[learn]")

from seaway.learning.agents.networks import Actor, Critic  # noqa: E402  # where torch is
from seaway.learning.agents.passes import Passes, lay_flat, make_room  # noqa: E402
from seaway.learning.settings import DdpgSettings  # noqa: E402
from tests.unit.learning.agents import plain  # noqa: E402

SIZE, BATCH = 12, 9

SETTINGS = [
    pytest.param(DdpgSettings(attention=6, heads=2, hidden=(5, 4)), id="attention"),
    pytest.param(DdpgSettings(attention=0, hidden=(5, 4)), id="plain"),
    pytest.param(DdpgSettings(attention=6, heads=3, hidden=(5,), figures=3), id="other tokens"),
]


def sampled_batch() -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Draw observations, actions and the gradient of what comes of them."""
    rng = np.random.default_rng(0)
    observation, action = rng.random((BATCH, SIZE), np.float32), rng.random((BATCH, 1), np.float32)
    return observation, action, rng.standard_normal((BATCH, 1)).astype(np.float32)


def spread(network: Actor | Critic) -> None:
    """Make weights so large that every layer matters: the last one begins next to 0."""
    rng = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in network.parameters():
            weight.copy_(torch.randn(weight.shape, generator=rng) * 0.5)


def slopes_by_change(weights: plain.Weights, total: Callable[[plain.Weights], float]) -> dict[str, NDArray[np.float64]]:
    """Work out the gradient of a sum by changing one weight at a time."""
    slopes = {name: np.zeros_like(weight) for name, weight in weights.items()}
    for name, weight in weights.items():
        for at in np.ndindex(weight.shape):
            sums = []
            for change in (1e-6, -1e-6):
                changed = weight.copy()
                changed[at] += change
                sums.append(total({**weights, name: changed}))
            slopes[name][at] = (sums[0] - sums[1]) / 2e-6
    return slopes


@pytest.mark.parametrize("settings", SETTINGS)
def test_gradients_of_the_critic(settings: DdpgSettings) -> None:
    """Every weight's gradient is what plain NumPy's value changes by when the weight is changed a little."""
    critic = Critic(settings, SIZE)
    spread(critic)
    lay_flat(critic)
    passes = Passes(critic, make_room(critic, BATCH))
    observation, action, slope = sampled_batch()

    with torch.no_grad():
        values = passes.run(observation, torch.from_numpy(action)).numpy().copy()
        passes.lead_back(torch.from_numpy(slope), observation)

    weights = plain.weights_of(critic)
    assert np.allclose(values, plain.value(weights, observation, action, settings.figures), atol=1e-4)
    wanted = slopes_by_change(
        weights, lambda each: float((plain.value(each, observation, action, settings.figures) * slope).sum())
    )
    for name, weight in critic.named_parameters():
        assert np.allclose(weight.grad.numpy(), wanted[name], rtol=1e-3, atol=1e-3), name


@pytest.mark.parametrize("settings", SETTINGS)
def test_gradients_of_the_actor(settings: DdpgSettings) -> None:
    """Every weight's gradient is what plain NumPy's action changes by when the weight is changed a little."""
    actor = Actor(settings, SIZE)
    spread(actor)
    lay_flat(actor)
    passes = Passes(actor, make_room(actor, BATCH))
    observation, _, slope = sampled_batch()

    with torch.no_grad():
        actions = torch.tanh(passes.run(observation))
        passes.lead_back(torch.from_numpy(slope) * (1.0 - actions * actions), observation)

    weights = plain.weights_of(actor)
    assert np.allclose(actions.numpy(), plain.act(weights, observation, settings.figures), atol=1e-5)
    wanted = slopes_by_change(
        weights, lambda each: float((plain.act(each, observation, settings.figures) * slope).sum())
    )
    for name, weight in actor.named_parameters():
        assert np.allclose(weight.grad.numpy(), wanted[name], rtol=1e-3, atol=1e-3), name


@pytest.mark.parametrize("settings", SETTINGS)
def test_gradients_of_actions(settings: DdpgSettings) -> None:
    """An action's gradient is what plain NumPy's value changes by when the action is changed a little."""
    critic = Critic(settings, SIZE)
    spread(critic)
    lay_flat(critic)
    passes = Passes(critic, make_room(critic, BATCH))
    observation, action, slope = sampled_batch()

    with torch.no_grad():
        passes.run(observation, torch.from_numpy(action))
        slopes = passes.lead_to_action(torch.from_numpy(slope), observation).numpy()

    weights = plain.weights_of(critic)
    up, down = (
        plain.value(weights, observation, action.astype(np.float64) + change, settings.figures)
        for change in (1e-6, -1e-6)
    )
    assert np.allclose(slopes, slope * (up - down) / 2e-6, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("settings", SETTINGS)
def test_modules_are_what_passes_run(settings: DdpgSettings) -> None:
    """Anything that is exported and shown is what was trained: module and passes give the same."""
    actor, critic = Actor(settings, SIZE), Critic(settings, SIZE)
    observation, action, _ = sampled_batch()
    with torch.no_grad():
        for network in (actor, critic):
            spread(network)
            lay_flat(network)
        acted = torch.tanh(Passes(actor, make_room(actor, BATCH)).run(observation))
        valued = Passes(critic, make_room(critic, BATCH)).run(observation, torch.from_numpy(action))
        seen = torch.from_numpy(observation)

        assert torch.allclose(actor(seen), acted, atol=1e-5)
        assert torch.allclose(critic(seen, torch.from_numpy(action)), valued, atol=1e-4)
