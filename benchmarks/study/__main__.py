"""Command line of the study: `python -m benchmarks.study comparison` and `... effects`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.data import BEST_KNOWN, SEEDS, instance
from benchmarks.record import ROOT, Result, SkippedError, circumstances
from benchmarks.show import show
from benchmarks.study import comparison, effects
from benchmarks.study.published import LEARNED, LITERAL
from benchmarks.study.training import Runner, Training
from seaway.domain.errors import RejectedError

KIND = "placement-16x4"
RESULTS = ROOT / "benchmarks" / "results" / "study"
RUNS = ROOT / "runs"
INTERRUPTED = 130


def main() -> int:
    """Run a study; return the exit code: 1 if a training failed."""
    options = _options()
    try:
        folders = options.instances or [instance(KIND, number) for number in SEEDS]
    except SkippedError as why:
        print(f"error: {why}", file=sys.stderr)
        return 2
    options.keep.mkdir(parents=True, exist_ok=True)
    study = _comparison if options.study == "comparison" else _effects
    try:
        return study(options, folders)
    except KeyboardInterrupt:
        return INTERRUPTED
    except RejectedError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _comparison(options: argparse.Namespace, folders: Sequence[Path]) -> int:
    from seaway.learning.instances.instance import read_best, read_instances

    episodes = options.episodes or 1000
    known = comparison.known_rows(options.known, episodes) if options.known else []
    asked = comparison.Comparison(
        options.runs or RUNS / "study", folders, options.algos, options.seeds, episodes, known
    )
    failed = _train(comparison.trainings(asked), options)
    instances = read_instances(folders, read_best(BEST_KNOWN))
    trials = comparison.measured(asked, instances)
    found = comparison.record(trials)
    show(Result("comparison", found["beside_published"], ["there: as published; ±: 95 % confidence interval"]))
    show(Result("other measures", found["other_measures"]))
    print("\n".join(found["findings"]))
    _keep(options, "comparison", asked.episodes, found)
    if not options.no_pictures:
        from seaway.cli.learning.pictures import draw_all

        pictures = asked.folder / "pictures"
        pictures.mkdir(parents=True, exist_ok=True)
        draw_all(pictures, trials, instances, comparison.learned(asked))
        print(f"pictures in {pictures}")
    return _exit_code(failed)


def _effects(options: argparse.Namespace, folders: Sequence[Path]) -> int:
    asked = effects.Effects(options.runs or RUNS / "study-effects", folders[0], options.seeds, options.episodes or 200)
    failed = _train(effects.trainings(asked), options)
    rows = effects.table(asked)
    show(
        Result("effects", rows, [f"of eade-ddpg on {asked.instance.name}, {asked.episodes} episodes, all else default"])
    )
    _keep(options, "effects", asked.episodes, {"instance": asked.instance.name, "rows": rows})
    if not options.no_pictures:
        from benchmarks.study.picture import draw

        print(f"pictures: {', '.join(map(str, draw(effects.files(asked), asked.folder / 'effects')))}")
    return _exit_code(failed)


def _train(trainings: Sequence[Training], options: argparse.Namespace) -> list[Training]:
    """Run unfinished trainings, unless only a report is requested; return the failed ones."""
    for each in trainings:
        if each.stale:
            raise RejectedError(
                "began with other settings than there are now: remove it, or name other --runs", where=str(each.folder)
            )
    return [] if options.report else Runner(options.jobs).run(trainings)


def _keep(options: argparse.Namespace, name: str, episodes: int, found: dict[str, Any]) -> None:
    """Write the result with its circumstances, atomically."""
    record = {"circumstances": circumstances(options.seeds[0]), "episodes": episodes, "seeds": options.seeds, **found}
    file = options.keep / f"{name}.json"
    beside = file.with_suffix(".new")
    beside.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    beside.replace(file)
    print(f"kept in {file}")


def _exit_code(failed: Sequence[Training]) -> int:
    for each in failed:
        print(f"failed: {each.name}", file=sys.stderr)
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.study",
        description="Do the published study of EADE-DDPG again. Trainings are processes of one thread each. After a "
        "kill or Ctrl-C the same command goes on; finished trainings are kept.",
    )
    parser.add_argument(
        "study",
        choices=("comparison", "effects"),
        help="comparison: the published nine, trained on each instance that they are measured on; effects: expert "
        "share, batch, layers and learning rates of eade-ddpg, on the first instance",
    )
    parser.add_argument("--jobs", type=int, default=2, help="trainings at a time (default 2)")
    parser.add_argument("--episodes", type=int, help="of each training (default 1000; of effects 200)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="of trainings (default 0)")
    parser.add_argument(
        "--algos",
        nargs="+",
        default=[*LEARNED, *LITERAL],
        choices=[*LEARNED, *LITERAL],
        help="to train for comparison; the last two are eade-ddpg without what we read into it",
    )
    parser.add_argument("--instances", type=Path, nargs="+", help=f"folders (default {KIND}-seed0 to seed4)")
    parser.add_argument(
        "--runs", type=Path, help="where to keep runs and pictures (default runs/study or runs/study-effects)"
    )
    parser.add_argument("--keep", type=Path, default=RESULTS, help="where to keep figures (default %(default)s)")
    parser.add_argument(
        "--known",
        type=Path,
        metavar="FILE",
        help="a comparison.json kept before: what was trained for it counts as measured, though its runs are gone",
    )
    parser.add_argument("--report", action="store_true", help="train nothing; tabulate what is finished")
    parser.add_argument("--no-pictures", action="store_true", help="draw nothing")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
