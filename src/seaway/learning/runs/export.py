"""Export of the best policy of a run as a policy file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from seaway.learning.algos import algo_of
from seaway.learning.instances.wide import family_of
from seaway.learning.policies.file import Manifest, Point, write_policy
from seaway.learning.runs.assemble import command_of, record_of
from seaway.learning.runs.instances import MIX
from seaway.learning.settings import Run
from seaway.learning.training.learner import TrainedActor
from seaway.learning.training.listener import Evaluation

LONGEST_NAME = 63

MAX_POINTS = 200
"""Maximum number of points of the training curve in a policy file."""

MAX_DIGESTS = 500
"""Maximum number of folders with digests in a policy file, about 50 kB; with more, it contains none."""


def export(
    path: Path,
    trained_actor: TrainedActor,
    run: Run,
    digests: Mapping[str, str],
    found: Evaluation,
    curve: tuple[Point, ...],
) -> None:
    """Write a policy file with the results of its training.

    Parameters
    ----------
    digests
        Digests of all instances by name.
    curve
        Results by number of episodes.

    Raises
    ------
    RejectedError
        When it cannot be exported.
    """
    from seaway.learning.exporting import export_actor  # it needs torch, whose absence is reported before

    manifest = Manifest(
        name=policy_name(path.parent.resolve().name, run.algo),
        algo=run.algo,
        level=trained_actor.level,
        features=trained_actor.features,
        model_sha256="",
        clusters=trained_actor.clusters,
        network=trained_actor.network,
        fitting=trained_actor.fitting,
        says=f"{algo_of(run.algo).says}, seed {run.settings.seed}",
        made_by=command_of(run, path.parent),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        config=record_of(run) | learned_on(run, digests),
        figures=figures_of(found, apart=trained_actor.apart),
        curve=curve,
    )
    write_policy(path, export_actor(trained_actor.actor, manifest, trained_actor.trials))


def curve_of(rows: Sequence[Mapping[str, str]]) -> tuple[Point, ...]:
    """Return the evaluations in the table of a run, evenly thinned out, with the first and the last.

    Parameters
    ----------
    rows
        Rows of `EpisodeTable`, in order; rows without numbers are ignored.
    """
    points = list(_points(rows))
    if len(points) <= MAX_POINTS:
        return tuple(points)
    step = (len(points) - 1) / (MAX_POINTS - 1)
    return tuple(points[round(at * step)] for at in range(MAX_POINTS))


def _points(rows: Sequence[Mapping[str, str]]) -> Iterator[Point]:
    for row in rows:
        try:
            yield Point(
                int(row["episode"]),
                int(row["evaluated_placed"]),
                int(row["evaluated_refused"]),
                float(row["evaluated_gpu_load_variance"]),
                float(row["evaluated_reward"]),
            )
        except ValueError:  # not evaluated after this one
            continue


def learned_on(run: Run, digests: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the digests of the folders of a run; generated instances follow from its settings."""
    families = tuple(family_of(kind, run.settings.draw_seed) for kind in run.draw)
    folders = {name: digest for name, digest in digests.items() if not name.startswith((MIX, *families))}
    return {"digests": folders} if len(folders) <= MAX_DIGESTS else {}


def policy_name(folder: str, algo: str) -> str:
    """Return a policy name from the folder of a run: lower-case letters, digits and dashes."""
    plain = re.sub(r"[^a-z0-9]+", "-", folder.lower())[:LONGEST_NAME].strip("-")
    return plain or algo


def figures_of(found: Evaluation, *, apart: bool) -> Mapping[str, float]:
    """Return the results by name, on the training instances or on reserved ones."""
    where = "kept_apart" if apart else "trained_on"
    return {f"{where}_{name}": float(value) for name, value in asdict(found).items()}
