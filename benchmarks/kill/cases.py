"""Case of `script/bench kill`."""

from __future__ import annotations

import signal
import sys
from itertools import takewhile
from threading import Event

from rich.console import Console
from rich.progress import Progress

from benchmarks.kill.harness import kill_over_and_over, random_steps
from benchmarks.record import Result

KILLS = 1000


def kill(seed: int) -> Result:
    """Kill the control plane 1,000 times while jobs are displaced and resized; none may be lost or duplicated.

    SIGTERM ends it early, and the kills so far are checked.
    """
    stopping = Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    steps = takewhile(lambda _: not stopping.is_set(), random_steps(KILLS, seed))
    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("Kills", total=KILLS)
        after = kill_over_and_over(steps, seed=seed, progress=lambda done: bar.update(task, completed=done))
    row = {
        "kills": after.kills,
        "accepted": after.accepted,
        "displaced": after.displaced,
        "displaced_again": after.again,
        "resized": after.resized,
        "kills_while_reserved": after.reserved,
        "lost": len(after.lost),
        "doubled": len(after.duplicated),
        "broken": len(after.broken),
    }
    notes = [f"{count} x {step}" for step, count in after.steps.items()]
    return Result("kill", [row], [*after.lost, *after.duplicated, *after.broken, *notes])
