"""Assembly of a run from options, or from the configuration of an earlier one."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from seaway.domain.errors import RejectedError
from seaway.learning.algos import Algo, algo_of
from seaway.learning.episodes.episode import EpisodeOptions
from seaway.learning.runs.options import changed, conflicts_in, names_of, unknown
from seaway.learning.settings import Run

MAY_CHANGE = ("episodes", "patience", "checkpoint_every", "checkpoint_s")
"""Settings that may change when a run is resumed."""

PARTS = ("learner", "episode", "settings")
"""Parts of a run with settings."""

Where = Callable[[str], str]


def option(name: str) -> str:
    """Return the option of a setting."""
    return f"--{name.replace('_', '-')}"


def new_run(
    algo: str, instances: Sequence[str], draw: Sequence[str], given: Mapping[str, object], where: Where = option
) -> Run:
    """Return a run of an algorithm with default settings and given ones.

    Parameters
    ----------
    given
        Given settings of the learner, of episodes and of the run, by name.
    where
        Returns the place of a setting for errors.

    Raises
    ------
    RejectedError
        When the algorithm or a setting is unknown or invalid, or there are no instances.
    """
    found = algo_of(algo)
    if not instances and not draw:
        raise RejectedError(
            "nothing to learn on: name folders with nodes.csv and jobs.csv, or generate instances with --draw",
            where="--instances",
        )
    run = Run(algo, found.defaults, tuple(instances), tuple(draw))
    return with_given(run, given, where)


def with_given(run: Run, given: Mapping[str, object], where: Where = option) -> Run:
    """Return a run with given settings, see `new_run`."""
    parts: dict[str, dict[str, object]] = {part: {} for part in PARTS}
    for name, value in given.items():
        _check_name(run, algo_of(run.algo), name, where)
        (part,) = (part for part in PARTS if name in names_of(getattr(run, part)))
        parts[part][name] = value
    made = replace(run, **{part: changed(getattr(run, part), values, where) for part, values in parts.items()})
    _check_together(made, given, where)
    return made


def resumed_run(before: Run, given: Mapping[str, object], where: Where = option) -> Run:
    """Return a resumed run with given settings.

    Raises
    ------
    RejectedError
        When a setting may not change, with all such settings.
    """
    run = with_given(before, given, where)
    wrong = []
    for part in PARTS:
        old, new = asdict(getattr(before, part)), asdict(getattr(run, part))
        for name, value in new.items():
            if value != old[name] and name not in MAY_CHANGE:
                began = f"the run began with {_text(old[name])}, not {_text(value)}"
                text = f"{began}: leave the option out, or begin a new run"
                wrong.append(RejectedError(text, where=where(name)))
    if wrong:
        raise RejectedError(wrong[0].message, where=wrong[0].where, also=tuple(wrong[1:]))
    return run


def command_of(run: Run, folder: Path) -> str:
    """Return the command of a run, with all settings that are not defaults."""
    usual = Run(run.algo, algo_of(run.algo).defaults)
    words = ["seaway", "train", "--algo", run.algo]
    words += ["--instances", *run.instances] if run.instances else []
    words += [word for kind in run.draw for word in ("--draw", kind)]
    for part in PARTS:
        old = asdict(getattr(usual, part))
        words += [
            word
            for name, value in asdict(getattr(run, part)).items()
            if value != old[name]
            for word in ("--set", f"{name}={_text(value)}")
        ]
    return shlex.join([*words, "--out", str(folder)])


def record_of(run: Run) -> dict[str, Any]:
    """Return a run in the form of JSON."""
    return asdict(run)


def run_of(record: Mapping[str, Any]) -> Run:
    """Read a run from the form of `record_of`.

    Raises
    ------
    RejectedError
        When another version with other settings wrote it.
    """
    algo = str(record["algo"])
    run = Run(algo, algo_of(algo).defaults, tuple(record["instances"]), tuple(record["draw"]))
    parts: dict[str, Any] = {}
    for part in PARTS:
        base = getattr(run, part) if part != "episode" else EpisodeOptions()
        for name in record[part]:
            if name not in names_of(base):
                raise RejectedError(f"{name!r} is not a setting of {algo}", where=part)
        parts[part] = changed(base, record[part], lambda name: name)
    return replace(run, **parts)


def _check_name(run: Run, algo: Algo, name: str, where: Where) -> None:
    known = [each for part in PARTS for each in names_of(getattr(run, part))]
    if name in algo.fixed:
        raise RejectedError(f"cannot be set for {run.algo}: {algo.fixed[name]}", where=where(name))
    if name not in known:
        raise unknown(name, [each for each in known if each not in algo.fixed], run.algo, where(name))


def _check_together(run: Run, given: Mapping[str, object], where: Where) -> None:
    """Reject conflicts of settings, with the name of a given setting."""
    wrong = []
    for conflict in conflicts_in(run.learner):
        names = [name for name in conflict.names if name in given]
        wrong += [RejectedError(conflict.message, where=where(name)) for name in names[:1]]
    if wrong:
        raise RejectedError(wrong[0].message, where=wrong[0].where, also=tuple(wrong[1:]))


def _text(value: object) -> str:
    return "-".join(map(str, value)) if isinstance(value, tuple) else str(value)
