"""Registry of algorithms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from seaway.domain.errors import RejectedError
from seaway.learning.instances.instance import Instance
from seaway.learning.settings import (
    DdpgBaselineSettings,
    DdpgSettings,
    PilotSettings,
    PpoSettings,
    Run,
    SacSettings,
    Td3Settings,
)
from seaway.learning.training.learner import Learner

OURS = "seaway.learning.training.ddpg"
BASELINES = "seaway.learning.baselines"

NEEDED = ("gymnasium", "onnx", "onnxruntime", "onnxscript", "tensorboard", "torch")
"""Packages of seaway[learn] that every algorithm needs."""

SEEN = "the observation of a cluster is derived from the instances"
TWICE = "it learns where jobs stay, and those that wait are offered twice"
NODES = "it is shown nodes, of which all fit"
PLAIN = "only eade-ddpg has it"


@dataclass(frozen=True, slots=True)
class Algo:
    """An algorithm.

    Attributes
    ----------
    says
        Description, one clause.
    module
        Module with ``make(run, instances) -> Learner``, imported on demand because it may need torch.
    defaults
        Default settings, a frozen dataclass.
    fixed
        Settings that cannot be changed, with the reason.
    mixed
        Whether it also learns from the past jobs of instances.
    needs
        Required packages.
    """

    says: str
    module: str
    defaults: Any
    fixed: Mapping[str, str] = field(default_factory=dict)
    mixed: bool = False
    needs: Sequence[str] = NEEDED


def baseline(says: str, defaults: Any) -> Algo:  # noqa: ANN401  # settings of any algorithm
    """Return the entry of an algorithm of Stable-Baselines3."""
    return Algo(f"{says} of Stable-Baselines3", BASELINES, defaults, needs=(*NEEDED, "stable_baselines3"))


ALGOS: Mapping[str, Algo] = {
    "eade-ddpg": Algo(
        "Actor and critic with attention that also learns from an expert (EADE-DDPG)",
        OURS,
        DdpgSettings(),
        {"figures": SEEN},
    ),
    "ddpg": Algo(
        "the same without attention and expert",
        OURS,
        replace(DdpgSettings(), attention=0, expert_share=0.0),
        {"figures": SEEN, **dict.fromkeys(("attention", "expert_share", "expert_pool"), PLAIN)},
    ),
    "td3": baseline("TD3", Td3Settings()),
    "sac": baseline("SAC", SacSettings()),
    "ppo": baseline("PPO", PpoSettings()),
    "pilot": Algo(
        "our own: attention over a shortlist of nodes, for fleets of any size",
        "seaway.learning.pilot.train",
        PilotSettings(),
        dict.fromkeys(("departures", "offers"), TWICE) | {"fitting": NODES},
        mixed=True,
    ),
    "sb3-ddpg": baseline("DDPG", DdpgBaselineSettings()),
}


def algo_of(name: str) -> Algo:
    """Return an algorithm by name.

    Raises
    ------
    RejectedError
        When it does not exist.
    """
    if name not in ALGOS:
        near = get_close_matches(name, ALGOS, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"available: {', '.join(ALGOS)}"
        raise RejectedError(f"{name!r} not found; {hint}", where="--algo")
    return ALGOS[name]


def check_installed(name: str) -> None:
    """Check that the packages of an algorithm are installed.

    Raises
    ------
    RejectedError
        When a package is missing, or the algorithm does not exist.
    """
    missing = [each for each in algo_of(name).needs if find_spec(each) is None]
    if missing:
        raise RejectedError(f"training needs {', '.join(missing)}: pip install 'seaway[learn]'")


def make_learner(run: Run, instances: Sequence[Instance]) -> Learner:
    """Return the learner of a run.

    Raises
    ------
    RejectedError
        When it cannot learn on these instances.
    """
    learner: Learner = import_module(algo_of(run.algo).module).make(run, instances)
    return learner
