"""Command line of `script/bench`, which runs benchmark cases and prints their figures."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from benchmarks import engine, quality
from benchmarks.alerts import alerts, explanations
from benchmarks.api.cases import api
from benchmarks.arrays import arrays
from benchmarks.balanced import balanced
from benchmarks.clusters.deploy import deploy
from benchmarks.clusters.fleet import fleet
from benchmarks.decide_learned import decide_learned
from benchmarks.kill.cases import kill
from benchmarks.lab.cases import lab
from benchmarks.learn.cases import learn
from benchmarks.loop import loop
from benchmarks.network import network
from benchmarks.probe.cases import agents, probe
from benchmarks.queues.cases import queues
from benchmarks.queues.classes import queue_classes
from benchmarks.queues.elastic import elastic
from benchmarks.queues.estimates import queue_estimates
from benchmarks.queues.rounds import queue_rounds
from benchmarks.queues.victims import queue_victims
from benchmarks.record import Result, RunOptions, SkippedError, circumstances
from benchmarks.restart import restart
from benchmarks.scrape import scrape
from benchmarks.show import show
from benchmarks.siege.attackers import ATTACKS
from benchmarks.siege.cases import siege
from benchmarks.soak.cases import soak
from benchmarks.web.cases import web
from benchmarks.web.lists import lists, viewers

CASES: dict[str, Callable[[int], Result]] = {
    "engine": engine.engine,
    "engine-100k": engine.engine_100k,
    "start": engine.start,
    "restart": restart,
    "quality": quality.quality,
    "unseen": quality.unseen,
    "placement": quality.placement,
    "balanced": balanced,
    "network": network,
    "decide-learned": decide_learned,
    "queues": queues,
    "queue-estimates": queue_estimates,
    "queue-rounds": queue_rounds,
    "queue-victims": queue_victims,
    "loop": loop,
    "arrays": arrays,
    "scrape": scrape,
    "alerts": alerts,
    "explain": explanations,
    "api": api,
    "fleet": fleet,
    "deploy": deploy,
    "kill": kill,
    "probe": probe,
    "agents": agents,
    "lab": lab,
    "learn": learn,
    "web": web,
    "lists": lists,
    "viewers": viewers,
}

DRAWN: dict[str, Callable[[int, Path | None], Result]] = {
    "queue-classes": queue_classes,
    "elastic": elastic,
}
"""Cases that can draw a picture."""

TIMED: dict[str, tuple[Callable[[int, RunOptions], Result], float]] = {"siege": (siege, 2), "soak": (soak, 5)}
"""Cases that run for a given time, with their default minutes."""


def main() -> int:
    """Run the requested cases, by default all; return the exit code: 1 if a bound was missed."""
    options = _options()
    unknown = [case for case in options.cases if case not in {**CASES, **DRAWN, **TIMED}]
    if unknown:
        print(f"error: unknown case {unknown[0]!r}; available: {', '.join([*CASES, *DRAWN, *TIMED])}", file=sys.stderr)
        return 2
    where = circumstances(options.seed)
    results = []
    for case in options.cases or [*CASES, *DRAWN]:
        try:
            results.append(_run(case, options))
        except SkippedError as why:
            print(f"{case} skipped: {why}", file=sys.stderr)
            continue
        if options.output == "table":
            show(results[-1])
    if options.output == "json":
        print(json.dumps({"circumstances": where, "results": [asdict(result) for result in results]}, indent=1))
    else:
        Console().print(", ".join(f"{key} {value}" for key, value in where.items()), style="dim")
    missed = [f"{result.case}: {what}" for result in results for what in result.missed]
    for each in missed:
        print(f"missed: {each}", file=sys.stderr)
    return 0 if results and not missed else 1


def _run(case: str, options: argparse.Namespace) -> Result:
    if case in CASES:
        return CASES[case](options.seed)
    if case in DRAWN:
        return DRAWN[case](options.seed, options.plot)
    run, minutes = TIMED[case]
    return run(options.seed, RunOptions(options.minutes or minutes, tuple(options.attack), options.plot))


def _options() -> argparse.Namespace:
    runs = {**CASES, **DRAWN, **{name: run for name, (run, _) in TIMED.items()}}
    cases = "\n".join(f"  {name:14} {run.__doc__.splitlines()[0] if run.__doc__ else ''}" for name, run in runs.items())
    parser = argparse.ArgumentParser(
        prog="script/bench",
        description=f"Measure Seaway.\n\ncases:\n{cases}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "cases", nargs="*", metavar="CASE", help=f"which cases to run; without one, all but {' and '.join(TIMED)}"
    )
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="how to print figures")
    parser.add_argument("--seed", type=int, default=0, help="seed of random choices (default 0)")
    parser.add_argument("--minutes", type=float, help="duration of siege (default 2) or soak (default 5)")
    parser.add_argument(
        "--attack",
        choices=[each.name for each in ATTACKS],
        default=[],
        action="append",
        help="only this attack; repeatable",
    )
    parser.add_argument("--plot", type=Path, help="file for a picture of queue-classes, elastic or soak, without .png")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
