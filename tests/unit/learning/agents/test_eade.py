"""The agent learns as the method says, the same each time, and goes on as if never stopped."""

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


def lived(agent: EadeDdpg, steps: int, seed: int = 0) -> EadeDdpg:
    """Let an agent live and learn for some steps of a world without sense."""
    rng = np.random.default_rng(seed)
    for step in range(steps):
        observation, following = rng.random((2, SIZE), np.float32)
        action = agent.act(observation, 0.1)
        agent.remember(observation, action, float(rng.normal()), following, step % 5 == 4)
        agent.teach(observation, -action, float(rng.normal()))
        agent.learn()
    return agent


def all_weights(agent: EadeDdpg) -> Any:  # noqa: ANN401  # a tensor
    """Return all weights of an agent, its targets' besides."""
    return torch.cat(agent.state()["weights"])


def test_values_step_towards_what_targets_expect() -> None:
    """The critic's goal is the reward and, of what was lived, what the targets' next action is worth.

    Of an expert's choice nothing is known but its reward.
    """
    settings = replace(SMALL, batch=10, warm_up=1, expert_share=0.3, discount=0.8)
    agent = EadeDdpg(settings, SIZE, seed=3)
    actor, critic = plain.weights_of(agent.actor), plain.weights_of(agent.critic)  # targets begin as the same
    rng = np.random.default_rng(0)
    seen, following = rng.random((2, 2, SIZE), np.float32)
    actions, rewards, going_on = np.array([[0.3], [-0.6]]), np.array([[1.5], [-50.0]]), np.array([[1.0], [0.0]])
    agent.remember(seen[0], 0.3, 1.5, following[0], False)
    agent.teach(seen[1], -0.6, -50.0)

    losses = agent.learn()

    assert losses is not None
    later = plain.value(critic, following, plain.act(actor, following, 4), 4)
    goals = rewards + 0.8 * going_on * later
    off = (plain.value(critic, seen, actions, 4) - goals) ** 2
    assert losses.critic == pytest.approx(float(0.7 * off[0, 0] + 0.3 * off[1, 0]), rel=1e-4)
    stepped = plain.weights_of(agent.critic)
    values = plain.value(stepped, seen, plain.act(actor, seen, 4), 4)
    assert losses.actor == pytest.approx(-float(0.7 * values[0, 0] + 0.3 * values[1, 0]), rel=1e-4)


@pytest.mark.parametrize(
    ("candidates", "discount", "trained"), [(0, 0.0, False), (0, 0.5, True), (2, 0.0, True), (1, 0.0, True)]
)
def test_an_actor_that_is_asked_for_nothing_is_not_trained(candidates: int, discount: float, trained: bool) -> None:
    """Where all bins are candidates and no future counts, its weights stay; otherwise it learns."""
    settings = replace(SMALL, candidates=candidates, discount=discount)
    before = EadeDdpg(settings, SIZE, seed=0)
    agent = lived(EadeDdpg(settings, SIZE, seed=0), 10)

    losses = agent.learn()

    assert losses is not None
    assert (losses.actor is not None) == trained
    assert torch.equal(agent.state()["weights"][0], before.state()["weights"][0]) != trained


def test_targets_follow_softly() -> None:
    """After each update targets are what they were, moved by tau towards the weights."""
    agent = lived(EadeDdpg(SMALL, SIZE, seed=0), 10)
    before = agent.state()["weights"]

    agent.learn()

    after = agent.state()["weights"]
    for weights, was, now in zip(after[:2], before[2:], after[2:], strict=True):
        assert not torch.equal(was, now)
        assert torch.allclose(now, was + 0.1 * (weights - was), atol=1e-7)


def test_no_update_before_warm_up() -> None:
    """Until `warm_up` transitions are remembered nothing is learnt, however much was taught."""
    agent = EadeDdpg(SMALL, SIZE, seed=0)
    row = np.zeros(SIZE, np.float32)
    for _ in range(10):
        agent.teach(row, 0.0, 1.0)
    updates = []
    for _ in range(4):
        agent.remember(row, 0.0, 1.0, row, False)
        updates.append(agent.learn() is not None)

    assert updates == [False, False, False, True]


def test_same_seed_same_weights() -> None:
    """Two of the same seed that live the same have the same weights to the bit; of another seed, others."""
    first, second, other = (all_weights(lived(EadeDdpg(SMALL, SIZE, seed), 30)) for seed in (5, 5, 6))

    assert torch.equal(first, second)
    assert not torch.allclose(first, other)


def test_making_an_agent_leaves_torchs_own_lot() -> None:
    """An agent draws from a generator of its own: others that draw from torch's see no difference."""
    torch.manual_seed(1)
    wanted = torch.rand(3)
    torch.manual_seed(1)

    EadeDdpg(SMALL, SIZE, seed=0)

    assert torch.equal(torch.rand(3), wanted)


@pytest.mark.parametrize("settings", [SMALL, replace(SMALL, attention=0, expert_share=0.0)], ids=["eade", "ddpg"])
def test_goes_on_as_if_never_stopped(settings: DdpgSettings) -> None:
    """Saved, and loaded as weights only into a new agent, it has the same weights to the bit from then on."""
    agent = lived(EadeDdpg(settings, SIZE, seed=0), 70)
    file = io.BytesIO()
    torch.save(agent.state(), file)
    file.seek(0)
    other = EadeDdpg(settings, SIZE, seed=9)

    other.restore(torch.load(file, weights_only=True))

    for each in (agent, other):
        lived(each, 20, seed=1)
    assert torch.equal(all_weights(agent), all_weights(other))


def test_a_state_is_stored_as_it_was() -> None:
    """Anything that `state` gave does not change when the agent goes on."""
    agent = lived(EadeDdpg(SMALL, SIZE, seed=0), 20)
    state, wanted = agent.state(), EadeDdpg(SMALL, SIZE, seed=0)
    lived(agent, 20, seed=1)

    wanted.restore(state)

    assert torch.equal(all_weights(lived(wanted, 20, seed=1)), all_weights(agent))


@pytest.mark.parametrize("candidates", [0, 1, 2])
def test_acts_as_its_chooser(candidates: int) -> None:
    """Without noise an action is what the chooser gives; its export therefore decides as training did."""
    agent = lived(EadeDdpg(replace(SMALL, candidates=candidates), SIZE, seed=0), 30)
    observations = np.random.default_rng(2).random((20, SIZE), np.float32)

    with torch.no_grad():
        wanted = [agent.chooser(torch.from_numpy(each[None])).item() for each in observations]

    assert [agent.act(each) for each in observations] == pytest.approx(wanted, abs=1e-6)


def test_acts_as_the_weights_that_its_chooser_wears() -> None:
    """Weights that are loaded into the chooser decide at once."""
    agent, other = (lived(EadeDdpg(SMALL, SIZE, seed), 30) for seed in (0, 1))
    row = np.full(SIZE, 0.4, np.float32)

    agent.chooser.load_state_dict(other.chooser.state_dict())

    assert agent.act(row) == other.act(row)


def test_values_that_are_no_numbers_choose_nothing() -> None:
    """Weights that have grown beyond all bounds give no action, and none that could be taken for one."""
    agent = lived(EadeDdpg(replace(SMALL, candidates=0), SIZE, seed=0), 30)
    row = np.full(SIZE, 0.4, np.float32)
    with torch.no_grad():
        for weight in agent.critic.parameters():
            weight.fill_(3e38)

        assert agent.chooser(torch.from_numpy(row[None])).isnan().all()
    with np.errstate(over="ignore", invalid="ignore"):
        assert np.isnan(agent.act(row))


def test_critic_has_the_last_word_among_the_nearest() -> None:
    """With one candidate the actor's action counts; with some, the one that the critic values most of the nearest bins.

    With all, the one that it values most of all.
    """
    agent = lived(EadeDdpg(SMALL, SIZE, seed=0), 60)
    row = np.random.default_rng(4).random(SIZE, np.float32)
    actor, critic = plain.weights_of(agent.actor), plain.weights_of(agent.critic)
    proposed = plain.act(actor, row[None], 4).item()
    middles = [-2 / 3, 0.0, 2 / 3]
    values = {each: plain.value(critic, row[None], np.array([[each]]), 4).item() for each in middles}
    nearest = sorted(middles, key=lambda each: abs(each - proposed))

    for candidates, wanted in (
        (1, proposed),
        (2, max(nearest[:2], key=values.__getitem__)),
        (0, max(middles, key=values.__getitem__)),
    ):
        other = EadeDdpg(replace(SMALL, candidates=candidates), SIZE, seed=0)
        other.restore(agent.state())
        assert other.act(row) == pytest.approx(wanted, abs=1e-6)


def test_orphans_as_reported() -> None:
    """Actions are by lot over the whole range before warm-up, then near the actor's, and never out of range."""
    agent = EadeDdpg(SMALL, SIZE, seed=0)
    row = np.zeros(SIZE, np.float32)
    by_lot = [agent.act(row, 0.1) for _ in range(500)]
    for _ in range(4):
        agent.remember(row, 0.0, 0.0, row, False)
    orphaned = np.array([agent.act(row, 0.1) for _ in range(500)]) - agent.act(row)

    assert min(by_lot) < -0.95
    assert max(by_lot) > 0.95
    assert 0.08 < orphaned.std() < 0.12
    assert max(abs(agent.act(row, 5.0)) for _ in range(50)) == 1.0
