"""The agent implements the published method, reproducibly, also after a restored checkpoint."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs seaway[learn]")

from seaway.learning.agents.eade import EadeDdpg  # noqa: E402  # where torch is
from seaway.learning.settings import DdpgSettings  # noqa: E402
from tests.unit.learning.agents import plain  # noqa: E402

SIZE = 12
SMALL = DdpgSettings(
    attention=16,
    heads=2,
    candidates=2,
    discount=0.5,
    hidden=(8, 8),
    batch=20,
    warm_up=4,
    live_pool=50,
    expert_pool=30,
    soft_update=0.1,
)


def train(agent: EadeDdpg, steps: int, seed: int = 0) -> EadeDdpg:
    """Train an agent for some steps of random observations and rewards."""
    rng = np.random.default_rng(seed)
    for step in range(steps):
        observation, following = rng.random((2, SIZE), np.float32)
        action = agent.act(observation, 0.1)
        agent.add_transition(observation, action, float(rng.normal()), following, step % 5 == 4)
        agent.add_demonstration(observation, -action, float(rng.normal()))
        agent.learn()
    return agent


def all_weights(agent: EadeDdpg) -> Any:  # noqa: ANN401  # a tensor
    """Return all weights of an agent, with those of its target networks."""
    return torch.cat(agent.state()["weights"])


def test_td_targets() -> None:
    """The TD target is the reward and the discounted value of the target networks' next action.

    A demonstration is terminal: its target is the reward.
    """
    settings = replace(SMALL, batch=10, warm_up=1, expert_share=0.3, discount=0.8)
    agent = EadeDdpg(settings, SIZE, seed=3)
    actor, critic = (
        plain.weights_of(agent.actor),
        plain.weights_of(agent.critic),
    )  # also of the targets
    rng = np.random.default_rng(0)
    seen, following = rng.random((2, 2, SIZE), np.float32)
    actions, rewards, going_on = np.array([[0.3], [-0.6]]), np.array([[1.5], [-50.0]]), np.array([[1.0], [0.0]])
    agent.add_transition(seen[0], 0.3, 1.5, following[0], False)
    agent.add_demonstration(seen[1], -0.6, -50.0)

    losses = agent.learn()

    assert losses is not None
    later = plain.value(critic, following, plain.act(actor, following, 4), 4)
    targets = rewards + 0.8 * going_on * later
    off = (plain.value(critic, seen, actions, 4) - targets) ** 2
    assert losses.critic == pytest.approx(float(0.7 * off[0, 0] + 0.3 * off[1, 0]), rel=1e-4)
    stepped = plain.weights_of(agent.critic)
    values = plain.value(stepped, seen, plain.act(actor, seen, 4), 4)
    assert losses.actor == pytest.approx(-float(0.7 * values[0, 0] + 0.3 * values[1, 0]), rel=1e-4)


@pytest.mark.parametrize(
    ("candidates", "discount", "trained"), [(0, 0.0, False), (0, 0.5, True), (2, 0.0, True), (1, 0.0, True)]
)
def test_an_actor_without_influence_is_not_trained(candidates: int, discount: float, trained: bool) -> None:
    """With all bins as candidates and a discount of 0, the weights of the actor are constant; otherwise it learns."""
    settings = replace(SMALL, candidates=candidates, discount=discount)
    before = EadeDdpg(settings, SIZE, seed=0)
    agent = train(EadeDdpg(settings, SIZE, seed=0), 10)

    losses = agent.learn()

    assert losses is not None
    assert (losses.actor is not None) == trained
    assert torch.equal(agent.state()["weights"][0], before.state()["weights"][0]) != trained


def test_soft_updates_of_target_networks() -> None:
    """Each update moves the weights of the target networks by the factor tau towards the trained weights."""
    agent = train(EadeDdpg(SMALL, SIZE, seed=0), 10)
    before = agent.state()["weights"]

    agent.learn()

    after = agent.state()["weights"]
    for weights, was, now in zip(after[:2], before[2:], after[2:], strict=True):
        assert not torch.equal(was, now)
        assert torch.allclose(now, was + 0.1 * (weights - was), atol=1e-7)


def test_no_update_before_warm_up() -> None:
    """No update happens before `warm_up` transitions, whatever the number of demonstrations."""
    agent = EadeDdpg(SMALL, SIZE, seed=0)
    row = np.zeros(SIZE, np.float32)
    for _ in range(10):
        agent.add_demonstration(row, 0.0, 1.0)
    updates = []
    for _ in range(4):
        agent.add_transition(row, 0.0, 1.0, row, False)
        updates.append(agent.learn() is not None)

    assert updates == [False, False, False, True]


def test_same_seed_same_weights() -> None:
    """Equal seeds and transitions give equal weights to the bit; another seed gives others."""
    first, second, other = (all_weights(train(EadeDdpg(SMALL, SIZE, seed), 30)) for seed in (5, 5, 6))

    assert torch.equal(first, second)
    assert not torch.allclose(first, other)


def test_an_agent_leaves_the_global_generator_unchanged() -> None:
    """An agent has a random generator of its own, so the state of torch's does not change."""
    torch.manual_seed(1)
    wanted = torch.rand(3)
    torch.manual_seed(1)

    EadeDdpg(SMALL, SIZE, seed=0)

    assert torch.equal(torch.rand(3), wanted)


@pytest.mark.parametrize("settings", [SMALL, replace(SMALL, attention=0, expert_share=0.0)], ids=["eade", "ddpg"])
def test_training_continues_from_a_restored_state(settings: DdpgSettings) -> None:
    """An agent that loads a state with `weights_only=True` later has the same weights to the bit."""
    agent = train(EadeDdpg(settings, SIZE, seed=0), 70)
    file = io.BytesIO()
    torch.save(agent.state(), file)
    file.seek(0)
    other = EadeDdpg(settings, SIZE, seed=9)

    other.restore(torch.load(file, weights_only=True))

    for each in (agent, other):
        train(each, 20, seed=1)
    assert torch.equal(all_weights(agent), all_weights(other))


def test_a_state_is_a_copy() -> None:
    """Further training does not change a state."""
    agent = train(EadeDdpg(SMALL, SIZE, seed=0), 20)
    state, wanted = agent.state(), EadeDdpg(SMALL, SIZE, seed=0)
    train(agent, 20, seed=1)

    wanted.restore(state)

    assert torch.equal(all_weights(train(wanted, 20, seed=1)), all_weights(agent))


@pytest.mark.parametrize("candidates", [0, 1, 2])
def test_acts_as_its_policy(candidates: int) -> None:
    """Without noise, actions are those of the policy module, which is exported."""
    agent = train(EadeDdpg(replace(SMALL, candidates=candidates), SIZE, seed=0), 30)
    observations = np.random.default_rng(2).random((20, SIZE), np.float32)

    with torch.no_grad():
        wanted = [agent.policy(torch.from_numpy(each[None])).item() for each in observations]

    assert [agent.act(each) for each in observations] == pytest.approx(wanted, abs=1e-6)


def test_acts_with_loaded_weights() -> None:
    """Actions use weights that were loaded into the policy."""
    agent, other = (train(EadeDdpg(SMALL, SIZE, seed), 30) for seed in (0, 1))
    row = np.full(SIZE, 0.4, np.float32)

    agent.policy.load_state_dict(other.policy.state_dict())

    assert agent.act(row) == other.act(row)


def test_diverged_weights_give_nan() -> None:
    """With infinite values the action is NaN."""
    agent = train(EadeDdpg(replace(SMALL, candidates=0), SIZE, seed=0), 30)
    row = np.full(SIZE, 0.4, np.float32)
    with torch.no_grad():
        for weight in agent.critic.parameters():
            weight.fill_(3e38)

        assert agent.policy(torch.from_numpy(row[None])).isnan().all()
    with np.errstate(over="ignore", invalid="ignore"):
        assert np.isnan(agent.act(row))


def test_the_critic_selects_among_the_nearest_bins() -> None:
    """With one candidate, the actor's action is the result; with several, the nearest bin with the highest value."""
    agent = train(EadeDdpg(SMALL, SIZE, seed=0), 60)
    row = np.random.default_rng(4).random(SIZE, np.float32)
    actor, critic = plain.weights_of(agent.actor), plain.weights_of(agent.critic)
    proto_action = plain.act(actor, row[None], 4).item()
    middles = [-2 / 3, 0.0, 2 / 3]
    values = {each: plain.value(critic, row[None], np.array([[each]]), 4).item() for each in middles}
    nearest = sorted(middles, key=lambda each: abs(each - proto_action))

    for candidates, wanted in (
        (1, proto_action),
        (2, max(nearest[:2], key=values.__getitem__)),
        (0, max(middles, key=values.__getitem__)),
    ):
        other = EadeDdpg(replace(SMALL, candidates=candidates), SIZE, seed=0)
        other.restore(agent.state())
        assert other.act(row) == pytest.approx(wanted, abs=1e-6)


def test_exploration_noise() -> None:
    """Actions are uniformly random before warm-up, then have Gaussian noise, and are clipped to the range."""
    agent = EadeDdpg(SMALL, SIZE, seed=0)
    row = np.zeros(SIZE, np.float32)
    uniform = [agent.act(row, 0.1) for _ in range(500)]
    for _ in range(4):
        agent.add_transition(row, 0.0, 0.0, row, False)
    noise = np.array([agent.act(row, 0.1) for _ in range(500)]) - agent.act(row)

    assert min(uniform) < -0.95
    assert max(uniform) > 0.95
    assert 0.08 < noise.std() < 0.12
    assert max(abs(agent.act(row, 5.0)) for _ in range(50)) == 1.0
