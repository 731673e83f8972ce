"""Networks in torch as policy files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seaway.domain.errors import RejectedError
from seaway.learning.policies.check import read_policy
from seaway.learning.policies.file import Level, Manifest, write_policy
from seaway.learning.policies.session import JOB_FEATURES, NODE_FEATURES, Session

pytest.importorskip("torch", reason="needs seaway[learn]")
pytest.importorskip("onnxscript", reason="needs seaway[learn]")

import torch

from seaway.learning.exporting import export_actor

pytestmark = pytest.mark.slow

CLUSTER = Manifest("tiny", "td3", Level.CLUSTER, 1, "", clusters=2, made_by="a test")
NODE = Manifest("tiny", "pilot", Level.NODE, 1, "")
RANDOM = np.random.default_rng(7)


def observations(count: int) -> list[dict[str, Any]]:
    """Draw what a policy of two clusters is shown."""
    return [{"observation": RANDOM.random((1, 12), np.float32)} for _ in range(count)]


def fleets(*sizes: int) -> list[dict[str, Any]]:
    """Draw what a policy is shown of fleets of so many nodes."""
    return [
        {"nodes": RANDOM.random((size, NODE_FEATURES), np.float32), "job": RANDOM.random(JOB_FEATURES, np.float32)}
        for size in sizes
    ]


def small_actor() -> Any:  # noqa: ANN401
    """Make an actor of the published kind, with dropout, which counts in training alone."""
    torch.manual_seed(1)
    layers = (torch.nn.Linear(12, 8), torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1), torch.nn.Tanh())
    return torch.nn.Sequential(*layers)


class Attending(torch.nn.Module):
    """Scores nodes by attention over all of them."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.nodes = torch.nn.Linear(NODE_FEATURES, 16)
        self.job = torch.nn.Linear(JOB_FEATURES, 16)
        self.attention = torch.nn.MultiheadAttention(16, 2, batch_first=True)
        self.norm = torch.nn.LayerNorm(16)
        self.score = torch.nn.Linear(16, 1)

    def forward(self, nodes: Any, job: Any) -> Any:  # noqa: ANN401
        """Return scores, and what waiting is worth."""
        shown = torch.relu(self.nodes(nodes) + self.job(job)).unsqueeze(0)
        met = self.norm(shown + self.attention(shown, shown, shown, need_weights=False)[0])
        return self.score(met).reshape(-1), met.mean(dim=(0, 1)).sum().reshape(1)


def test_a_file_decides_as_what_was_trained(tmp_path: Path) -> None:
    """Written, read and run without torch, it answers what it was never asked before as the network does."""
    actor = small_actor().train()
    file = export_actor(actor, CLUSTER, observations(3))
    assert actor.training
    actor.eval()
    write_policy(tmp_path / "tiny.policy", file)
    session = Session(read_policy(tmp_path / "tiny.policy"))
    for asked in observations(50):
        with torch.inference_mode():
            meant = actor(torch.from_numpy(asked["observation"])).numpy()
        np.testing.assert_allclose(session.run(asked)["action"], meant, atol=1e-6)


def test_a_network_is_written_the_same_each_time_and_says_nothing_of_a_user_who_wrote_it() -> None:
    """Equal weights give equal bytes; neither paths of this machine nor lines of its code are in them."""
    actor, shown = small_actor(), observations(2)
    one, other = (export_actor(actor, CLUSTER, shown) for _ in range(2))
    assert (one.head, one.model) == (other.head, other.model)
    for text in (b".py", b"stack", b"torch", b"forward"):
        assert text not in one.model


def test_a_network_over_nodes_takes_any_number_of_them() -> None:
    """It answers for one node and for hundreds, whatever it was recorded with, and order does not matter to it."""
    actor = Attending().eval()
    session = Session(export_actor(actor, NODE, fleets(1, 7)))
    for asked in fleets(1, 2, 50, 700):
        with torch.inference_mode():
            scores, wait = actor(torch.from_numpy(asked["nodes"]), torch.from_numpy(asked["job"]))
        given = session.run(asked)
        np.testing.assert_allclose(given["scores"], scores.numpy(), atol=1e-4)
        np.testing.assert_allclose(given["wait"], wait.numpy(), atol=1e-4)
        turned = session.run({**asked, "nodes": asked["nodes"][::-1].copy()})
        np.testing.assert_allclose(turned["scores"][::-1], given["scores"], atol=1e-4)


class Masked(torch.nn.Module):
    """Adds minus infinity."""

    def __init__(self) -> None:
        super().__init__()
        self.mask = torch.nn.Parameter(torch.full((1, 12), float("-inf")))

    def forward(self, observation: Any) -> Any:  # noqa: ANN401
        """Return what is left."""
        return torch.exp(observation + self.mask).sum(dim=1, keepdim=True)


class Choosing(torch.nn.Module):
    """Decides by an if, which no graph of plain operators says."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(12, 1))

    def forward(self, observation: Any) -> Any:  # noqa: ANN401
        """Return one thing or another."""
        if observation.sum() > 1:
            return observation @ self.weight
        return observation[:, :1]


@pytest.mark.parametrize(
    ("actor", "trials", "says"),
    [
        (Masked(), 1, "NaN or infinity"),
        (Choosing(), 1, "cannot be written"),
        (Attending(), 1, "does not accept the inputs"),
        (small_actor(), 0, "1 to 16 trials"),
    ],
)
def test_what_could_not_be_loaded_is_not_written(actor: Any, trials: int, says: str) -> None:  # noqa: ANN401
    """A user who exports observes of it then, not who imports."""
    with pytest.raises(RejectedError, match=says):
        export_actor(actor, CLUSTER, observations(trials))
