"""`seaway train`: training of policies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seaway.cli.errors import FAILED
from seaway.domain.errors import RejectedError

if TYPE_CHECKING:
    from seaway.cli.learning.runs import TrainingRequest

WHAT, LEARNING, RUN, MANY = "Algorithm", "The algorithm", "The run", "Several runs"


def train(
    more: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[DIR ...]", help="Further folders.", show_default=False),
    ] = None,
    algo: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Seaway's own: pilot. Published: eade-ddpg. Baselines: ddpg, td3, sac, ppo, sb3-ddpg.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    instances: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR [DIR ...]",
            help="Folders with nodes.csv and jobs.csv (and links.csv), or folders of such, to learn on.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    draw: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND",
            help="Learn on random instances: placement, network, trace or any; their number: --set draws=8.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    episodes: Annotated[
        int | None, typer.Option(metavar="N", help="Maximum number of episodes; default 1000.", rich_help_panel=RUN)
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Seed of all random choices; default 0.", rich_help_panel=RUN)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the run; default runs/ALGO-INSTANCE-seedN.", rich_help_panel=RUN),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue the run in --out, if there is one.", rich_help_panel=RUN),
    ] = False,
    evaluate_every: Annotated[
        int | None,
        typer.Option(metavar="N", help="Episodes between evaluations without noise; default 5.", rich_help_panel=RUN),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Stop after so many evaluations without improvement; 0 plays all episodes.",
            rich_help_panel=RUN,
        ),
    ] = None,
    hidden: Annotated[
        str | None,
        typer.Option(metavar="N-N", help="Sizes of the hidden layers; default 128-64.", rich_help_panel=LEARNING),
    ] = None,
    attention: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Width of the attention layer of eade-ddpg; default 128.", rich_help_panel=LEARNING
        ),
    ] = None,
    expert_share: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Share of each batch that comes from the expert's history (eade-ddpg).",
            rich_help_panel=LEARNING,
        ),
    ] = None,
    batch: Annotated[
        int | None, typer.Option(metavar="N", help="Transitions per update.", rich_help_panel=LEARNING)
    ] = None,
    actor_rate: Annotated[
        float | None,
        typer.Option(metavar="RATE", help="Learning rate of the actor (eade-ddpg, ddpg).", rich_help_panel=LEARNING),
    ] = None,
    critic_rate: Annotated[
        float | None,
        typer.Option(metavar="RATE", help="Learning rate of the critic (eade-ddpg, ddpg).", rich_help_panel=LEARNING),
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option(
            metavar="N or N,N,...",
            help=(
                "One run per seed: a number, or a list; [bold]7,[/bold] is seed 7 alone. --out is "
                "the parent folder of all runs, also with --each and with several algorithms."
            ),
            rich_help_panel=MANY,
        ),
    ] = None,
    each: Annotated[
        bool, typer.Option("--each", help="One run per instance instead of one for all.", rich_help_panel=MANY)
    ] = False,
    workers: Annotated[int, typer.Option(metavar="N", help="Number of concurrent runs.", rich_help_panel=MANY)] = 1,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help=(
                "Spread runs over the machines of a Ray cluster, like head:6379, which all need the same "
                "folders; [bold]local[/bold]: over --workers processors of this machine."
            ),
            rich_help_panel=MANY,
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Other setting of the algorithm or the run. Repeatable. An unknown name lists them all.",
            rich_help_panel=LEARNING,
        ),
    ] = None,
) -> None:
    """Train a policy with an algorithm.

    A run is a folder with its settings, checkpoints, a table of episodes, TensorBoard curves, and the best policy as a
    file. The best policy placed most jobs in an evaluation without noise. On a tie, the lowest GPU load variance wins.

    Ctrl-C stops the run. [bold]--resume[/bold] continues it from the last checkpoint, also after a kill. With one
    thread, the default, the result equals that of an uninterrupted run.

    [bold]Examples[/bold]

    [cyan]seaway train --algo eade-ddpg --instances instances/toy-0 --episodes 1000 --out runs/first[/cyan]

    [cyan]seaway train --out runs/first --resume[/cyan]

    [cyan]seaway train --algo td3 --instances instances/toy-0 --seed 3 --set discount=0.99[/cyan]

    Two algorithms, separate runs per instance, three seeds, four concurrent runs:

    [cyan]seaway train --algo eade-ddpg,ddpg --instances instances --each --seeds 3 --workers 4 --out runs/all[/cyan]
    """
    from seaway.cli.errors import note
    from seaway.cli.learning.runs import TrainingRequest, begin, go_on
    from seaway.cli.learning.watch import Ended, RunWatch, announce, ended_by_signals
    from seaway.learning.runs.options import read_pairs

    named = {
        "episodes": episodes,
        "seed": seed,
        "evaluate_every": evaluate_every,
        "patience": patience,
        "hidden": hidden,
        "attention": attention,
        "expert_share": expert_share,
        "batch": batch,
        "actor_rate": actor_rate,
        "critic_rate": critic_rate,
    }
    asked = TrainingRequest(
        algo,
        tuple(str(folder) for folder in [*(instances or []), *(more or [])]),
        tuple(draw or []),
        {name: value for name, value in named.items() if value is not None},
        read_pairs(settings or [], "--set"),
        out,
    )
    if seeds or each or "," in (algo or ""):
        raise typer.Exit(several(asked, seeds, resume=resume, each=each, workers=workers, ray=ray))
    if workers != 1 or ray:
        raise RejectedError("is for several runs: add --seeds or --each", where="--ray" if ray else "--workers")
    ended = Ended()
    with ended_by_signals(ended), RunWatch(ended) as watch:
        folder, reached = (go_on if resume else begin)(asked, watch, note)
    announce(folder, reached)
    if reached.unfinished:
        raise typer.Exit(128 + ended.signal)


def several(
    asked: TrainingRequest, seeds: str | None, *, resume: bool, each: bool, workers: int, ray: str | None
) -> int:
    """Train several runs; return the exit code."""
    from seaway.cli.errors import note
    from seaway.cli.learning.contestants import seed_list
    from seaway.cli.learning.runs import announce_all, run_tasks, sweep
    from seaway.learning.parallel import choose_spread

    spread = choose_spread(workers, ray, note)
    unfinished = sweep(run_tasks(asked, seed_list(seeds) if seeds else None, each=each, resume=resume), spread)
    announce_all(asked, unfinished)
    return FAILED if unfinished else 0
