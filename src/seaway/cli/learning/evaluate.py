"""`seaway evaluate`: comparison of policies on a set of instances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seaway.cli import INTERRUPTED
from seaway.cli.errors import FAILED
from seaway.cli.learning.replay import Level
from seaway.domain.errors import RejectedError

if TYPE_CHECKING:
    from seaway.learning.evaluation.measure import Trial
    from seaway.learning.instances.instance import Instance

ON, WHO, OUT, MANY = "What on", "The policies", "Output", "At once"


class Output(StrEnum):
    """Output format."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


def evaluate(
    more: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[DIR ...]", help="Further folders.", show_default=False),
    ] = None,
    instances: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR [DIR ...]",
            help=(
                "Folders with nodes.csv and jobs.csv (and links.csv), or folders of such. Policies that "
                "learn from past jobs learn from the other instances, never from the instance itself."
            ),
            rich_help_panel=ON,
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[
        str,
        typer.Option(
            metavar="N or N,N,...",
            help="Number of seeds for random policies, or a list: [bold]7,[/bold] is seed 7 alone.",
            rich_help_panel=ON,
        ),
    ] = "5",
    best: Annotated[
        Path | None,
        typer.Option(
            metavar="CSV",
            help="Best known packings: instance, placed. Default: best.csv beside the instances' folders.",
            rich_help_panel=ON,
        ),
    ] = None,
    pack: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help=(
                "Search the best packing of each instance, with all jobs known, for about this long. The "
                "search counts tries, so every machine finds the same. Needs the extra learn."
            ),
            rich_help_panel=ON,
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help=(
                "Names ([bold]bestfit[/bold], [bold]bestfit@cluster[/bold]), profile files (.toml), "
                "trained policies (.policy), runs of [bold]seaway train[/bold], or a folder of runs. "
                "Such a run is evaluated on its training instances under its algorithm's name. Default: the "
                "published heuristics at the level of clusters, all policies at the level of nodes, and "
                "the built-in trained ones."
            ),
            rich_help_panel=WHO,
            show_default=False,
        ),
    ] = None,
    level: Annotated[
        Level,
        typer.Option(help="Level of names without [bold]@[/bold].", rich_help_panel=WHO),
    ] = Level.NODE,
    output: Annotated[
        Output,
        typer.Option(
            "--output",
            "-o",
            help="[bold]csv[/bold] and [bold]json[/bold]: one row per policy, instance and seed.",
            rich_help_panel=OUT,
        ),
    ] = Output.TABLE,
    summary: Annotated[
        bool,
        typer.Option(
            "--summary",
            help="With csv and json: one row per policy, with deviations and intervals.",
            rich_help_panel=OUT,
        ),
    ] = False,
    offers: Annotated[
        int,
        typer.Option(
            metavar="N",
            help=(
                "How often a deferred job is offered in total: on arrival, and again after the last "
                "arrival. [bold]1[/bold]: no job waits, as in published replays of traces."
            ),
            rich_help_panel=ON,
        ),
    ] = 2,
    plots: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder for charts as PNG and SVG: comparison, utilization by cluster, learning curves.",
            rich_help_panel=OUT,
        ),
    ] = None,
    workers: Annotated[
        int,
        typer.Option(
            "--workers",
            "--jobs",
            metavar="N",
            help="Number of processes; decision times are most accurate with 1.",
            rich_help_panel=MANY,
        ),
    ] = 1,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help=(
                "Spread trials over the machines of a Ray cluster, like head:6379, which all need the same "
                "folders; [bold]local[/bold]: over --workers processors of this machine."
            ),
            rich_help_panel=MANY,
        ),
    ] = None,
) -> None:
    """Compare policies on instances: placed jobs, fragmentation, balance, utilization, decision time.

    A job counts as [italic]refused[/italic] if no node could hold it.
    If a node could, an unplaced job counts as [italic]failed[/italic].
    [italic]right[/italic] is placed plus refused. [italic]ratio[/italic] is placed divided by the best known packing.
    Policies decide jobs in order and do not see later jobs. A deferred job is offered once more after the last arrival.
    Trained policies of the published kind run as published: an illegal choice loses the job.

    [bold]Examples[/bold]

    [cyan]seaway evaluate --instances placement-16x4-seed*[/cyan]

    A run on its training instance and on another, with two heuristics:

    [cyan]seaway evaluate --instances seed0 seed1 --policy runs/eade,seaway,bestfit@cluster -o csv[/cyan]

    Many runs, one per algorithm and instance, with charts:

    [cyan]seaway evaluate --instances placement-16x4-seed* --policy runs,utilization@cluster --plots pictures[/cyan]
    """
    from seaway.cli.errors import note
    from seaway.cli.learning.contestants import contestants, seed_list
    from seaway.cli.learning.tables import Shown, watched
    from seaway.learning.evaluation.measure import measure, tasks
    from seaway.learning.parallel import choose_spread

    which = seed_list(seeds)
    who = contestants(policy, level.value)
    spread = choose_spread(workers, ray, note)
    if offers < 1:
        raise RejectedError(f"{offers} is not at least 1", where="--offers")
    if plots:
        make_folder(plots)
    on = read([*(instances or []), *(more or [])], best, pack)
    work = tasks(who, on, which, offers)
    if not work:
        raise RejectedError("none of the runs was trained on any of the instances", where="--policy")
    shown = Shown(output.value, summary=summary)
    ended: dict[int, Trial] = {}
    try:
        for at, trial in watched(measure(work, spread), len(work)):
            ended[at] = trial
            shown.take(at, trial.row)
    except KeyboardInterrupt:
        note(f"stopped after {len(ended)} of {len(work)} trials: the figures below are of those")
    finally:
        shown.end()
    trials = [ended[at] for at in sorted(ended)]
    if plots:
        from seaway.cli.learning.pictures import draw_all

        draw_all(plots, trials, on, who)
    if len(trials) < len(work):
        raise typer.Exit(INTERRUPTED)
    if all(trial.row.placed is None for trial in trials):
        raise typer.Exit(FAILED)


def read(paths: Sequence[Path], best: Path | None, pack_s: float | None) -> list[Instance]:
    """Read the instances and their best known packings."""
    from seaway.learning.instances.instance import read_best, read_instances

    if not paths:
        raise RejectedError("name folders with nodes.csv and jobs.csv", where="--instances")
    if best and not best.is_file():
        raise RejectedError(f"file {str(best)!r} not found", where="--best")
    found = read_instances(paths, read_best(best) if best else None)
    return found if pack_s is None else packed(found, pack_s)


def packed(instances: Sequence[Instance], seconds: float) -> list[Instance]:
    """Search for the best packing of each instance; keep a known packing that is better."""
    from seaway.cli.learning.tables import watched
    from seaway.learning.packing.search import best_packing

    if not 0 < seconds < inf:
        raise RejectedError(f"{seconds} is not more than 0", where="--pack")
    counts = [best_packing(each, seconds).count for each in watched(iter(instances), len(instances), "packing")]
    return [
        replace(each, best_known=max(count, each.best_known or 0))
        for each, count in zip(instances, counts, strict=True)
    ]


def make_folder(path: Path) -> None:
    """Create the folder of charts before the first measurement."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RejectedError(f"{str(path)!r} cannot be made: {error.strerror}", where="--plots") from None
