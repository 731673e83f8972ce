"""Command line of `script/bench`, which runs benchmark cases and prints their figures."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict

from rich.console import Console

from benchmarks import engine, quality
from benchmarks.api.cases import api
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
from benchmarks.record import Result, SkippedError, circumstances
from benchmarks.scrape import scrape
from benchmarks.show import show
from benchmarks.web.cases import web

CASES: dict[str, Callable[[int], Result]] = {
    "engine": engine.engine,
    "engine-100k": engine.engine_100k,
    "start": engine.start,
    "quality": quality.quality,
    "unseen": quality.unseen,
    "placement": quality.placement,
    "network": network,
    "decide-learned": decide_learned,
    "queues": queues,
    "loop": loop,
    "scrape": scrape,
    "api": api,
    "fleet": fleet,
    "deploy": deploy,
    "kill": kill,
    "probe": probe,
    "agents": agents,
    "lab": lab,
    "learn": learn,
    "web": web,
}


def main() -> int:
    """Run the requested cases, by default all; return the exit code: 1 if a bound was missed."""
    options = _options()
    unknown = [case for case in options.cases if case not in CASES]
    if unknown:
        print(f"error: unknown case {unknown[0]!r}; available: {', '.join(CASES)}", file=sys.stderr)
        return 2
    where = circumstances(options.seed)
    results = []
    for case in options.cases or CASES:
        try:
            results.append(CASES[case](options.seed))
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


def _options() -> argparse.Namespace:
    cases = "\n".join(
        f"  {name:12} {run.__doc__.splitlines()[0] if run.__doc__ else ''}" for name, run in CASES.items()
    )
    parser = argparse.ArgumentParser(
        prog="script/bench",
        description=f"Measure Seaway.\n\ncases:\n{cases}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("cases", nargs="*", metavar="CASE", help="which cases to run; all without one")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="how to print figures")
    parser.add_argument("--seed", type=int, default=0, help="seed of random choices (default 0)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
