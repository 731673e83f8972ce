"""Which algorithms there are, and where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from seaway.domain.errors import RejectedError
from seaway.learning.agents.settings import DdpgSettings
from seaway.learning.instances.instance import Instance
from seaway.learning.pilot.settings import PilotSettings
from seaway.learning.rivals.settings import DdpgRivalSettings, PpoSettings, SacSettings, Td3Settings
from seaway.learning.training.learner import Learner
from seaway.learning.training.settings import Run

OURS = "seaway.learning.training.ddpg"
RIVALS = "seaway.learning.rivals.learner"

INSTALL = "pip install 'seaway[learn]'"

SEEN = "what is seen of a cluster follows from the instances"
TWICE = "it learns where jobs stay, and those that wait are offered twice"
PLAIN = "that is what eade-ddpg has and ddpg has not"


@dataclass(frozen=True, slots=True)
class Algo:
    """An algorithm.

    Attributes
    ----------
    says
        What it is, one clause.
    module
        Has ``make(run, instances) -> Learner``, and is imported when it is asked for: it may need torch.
    defaults
        Its settings, a frozen dataclass.
    fixed
        Settings that cannot be changed, and why.
    mixed
        Whether it learns from the past jobs of instances too.
    """

    says: str
    module: str
    defaults: Any
    fixed: Mapping[str, str] = field(default_factory=dict)
    mixed: bool = False


ALGOS: Mapping[str, Algo] = {
    "eade-ddpg": Algo(
        "DDPG with attention and an expert's history, the published method", OURS, DdpgSettings(), {"figures": SEEN}
    ),
    "ddpg": Algo(
        "the same without attention and expert",
        OURS,
        replace(DdpgSettings(), attention=0, expert_share=0.0),
        {"figures": SEEN, **dict.fromkeys(("attention", "expert_share", "expert_pool"), PLAIN)},
    ),
    "td3": Algo("TD3 of Stable-Baselines3", RIVALS, Td3Settings()),
    "sac": Algo("SAC of Stable-Baselines3", RIVALS, SacSettings()),
    "ppo": Algo("PPO of Stable-Baselines3", RIVALS, PpoSettings()),
    "pilot": Algo(
        "our own: attention over a shortlist of nodes, for fleets of any size",
        "seaway.learning.pilot.train",
        PilotSettings(),
        dict.fromkeys(("departures", "offers"), TWICE),
        mixed=True,
    ),
    "sb3-ddpg": Algo("DDPG of Stable-Baselines3", RIVALS, DdpgRivalSettings()),
}


def algo_of(name: str) -> Algo:
    """Find an algorithm.

    Raises
    ------
    RejectedError
        When there is none of that name.
    """
    if name not in ALGOS:
        near = get_close_matches(name, ALGOS, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(ALGOS)}"
        raise RejectedError(f"there is no {name!r}; {hint}", where="--algo")
    return ALGOS[name]


def make_learner(run: Run, instances: Sequence[Instance]) -> Learner:
    """Make what learns in a run.

    Raises
    ------
    RejectedError
        When something is missing that it needs, or it cannot learn on these instances.
    """
    try:
        learner: Learner = import_module(algo_of(run.algo).module).make(run, instances)
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("seaway"):
            raise
        raise RejectedError(f"{error.name} is not installed; training needs seaway[learn]: {INSTALL}") from None
    return learner
