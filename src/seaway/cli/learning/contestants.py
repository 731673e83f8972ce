"""Arguments of `seaway evaluate`: policies by name, file or run, and seeds."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

from seaway.bootstrap.policies import SUFFIX as PROFILE
from seaway.bootstrap.policies import own_files, policy_of
from seaway.bootstrap.trained_policies import own_library
from seaway.cli.errors import note
from seaway.cli.learning.replay import policy_list
from seaway.domain.errors import RejectedError
from seaway.learning.evaluation.contestants import Contestant, heuristic, heuristics, joint_training_set
from seaway.learning.evaluation.trained import from_file, from_run, from_runs, is_run
from seaway.learning.policies.check import read_policy
from seaway.learning.policies.file import SUFFIX as TRAINED
from seaway.learning.policies.library import ShippedLibrary
from seaway.scheduling.policies.registry import Level, policy_names

POLICY, SEEDS = "--policy", "--seeds"
LEVELS = ("node", "cluster")
MAX_SEEDS = 10_000


def contestants(text: str | None, level: Level) -> list[Contestant]:
    """Return the policies to evaluate, in the order of their names; without a text, all available ones.

    Raises
    ------
    RejectedError
        When a policy is unknown or unusable. The error names the policy.
    """
    if text is None:
        return [*heuristics(), *_shipped()]
    try:
        found = [each for name in policy_list(text) for each in _named(name, level)]
    except RejectedError as error:
        raise RejectedError(error.message, where=error.where or POLICY) from None
    _check_in_subprocess(found)
    return found


def _shipped() -> list[Contestant]:
    """Return the built-in trained policies. If they cannot run on this machine, print a note and return none."""
    library, found = ShippedLibrary(), []
    for name in library.names():
        try:
            found.append(from_file(library.load(name)))
        except RejectedError as error:
            note(f"without the trained policy {name}: {error.message}")
    return found


def _named(text: str, level: Level) -> list[Contestant]:
    path = Path(text)
    if path.is_dir():
        return [from_run(path)] if is_run(path) else _from_folder(path)
    if text.endswith(TRAINED):
        return [replace(from_file(read_policy(path)), name=path.name.removesuffix(TRAINED))]
    name, at, asked = text.rpartition("@")
    if at and asked not in LEVELS:
        raise RejectedError(f"{text!r}: level {asked!r} not found; available: {', '.join(LEVELS)}")
    if not at:
        return [_of_engine(text, level)]
    found = _of_engine(name, cast("Level", asked))
    if found.level != asked:
        raise RejectedError(f"{text!r}: {name} chooses at level {found.level}; leave the level out")
    return [found]


def _from_folder(path: Path) -> list[Contestant]:
    found = from_runs(path, note)
    if not found:
        raise RejectedError(
            "is not a run of seaway train, and no run in it has made a policy that can be used", where=str(path)
        )
    return found


def _of_engine(name: str, level: Level) -> Contestant:
    if name.endswith(PROFILE):
        made = heuristic(Path(name).stem, level, partial(policy_of, name))
        return replace(made, trained_on=joint_training_set([each.manifest.config for each in own_files(Path(name))]))
    library = own_library()
    if name in policy_names():
        return heuristic(name, level)
    if name in library.names():
        return from_file(library.load(name))
    known = ", ".join([*policy_names(), *library.names()])
    raise RejectedError(
        f"unknown policy {name!r}; available: {known}; or name a .policy or .toml file, or a run's folder"
    )


def _check_in_subprocess(found: list[Contestant]) -> None:
    """Reject duplicate names, because their rows could not be distinguished."""
    names = [(each.name, each.level) for each in found if not each.own_only]
    runs = {(each.name, each.level) for each in found if each.own_only}
    for name, level in names:
        if names.count((name, level)) > 1 or (name, level) in runs:
            raise RejectedError(
                f"two policies are called {name!r} at level {level}; rename a file or folder", where=POLICY
            )


def seed_list(text: str) -> list[int]:
    """Parse a number of seeds, or a list of seeds.

    Raises
    ------
    RejectedError
        When it is neither.
    """
    parts = [part.strip() for part in text.split(",")]
    try:
        numbers = [int(part) for part in parts if part]
    except ValueError:
        numbers = []
    if not numbers or any(number < 0 or number >= 2**63 for number in numbers):
        raise RejectedError(f"{text!r} is neither how many seeds, like 5, nor which, like 0,1,2", where=SEEDS)
    if len(parts) > 1:
        return list(dict.fromkeys(numbers))
    if not 1 <= numbers[0] <= MAX_SEEDS:
        raise RejectedError(f"{text} is not from 1 to {MAX_SEEDS}; write {text}, for seed {text} alone", where=SEEDS)
    return list(range(numbers[0]))
