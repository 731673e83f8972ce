"""Replays of logs with reference start times, and their speed beside a loop over plain numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any, TypeVar

from benchmarks.data import existing, folder
from benchmarks.queues.plain import Row, easy_starts
from benchmarks.record import Result
from seaway.bootstrap.policies import policy_of
from seaway.domain.queues import Backfill, Order, Queue
from seaway.scheduling.arrays import Int64
from seaway.scheduling.policies.registry import PolicyOptions
from seaway.simulation.swf import Log, read_swf
from seaway.simulation.table import read_table
from seaway.simulation.timeline import replay_with_departures
from seaway.simulation.waiting.discipline import Discipline

T = TypeVar("T")

PROCESSORS = {"lublin256": 256, "nasa128-double": 128}

DISCIPLINES = {
    "fcfs": Discipline(Order.FIFO, Backfill.NONE),
    "easy": Discipline(Order.FIFO, Backfill.EASY),
    "conservative": Discipline(Order.FIFO, Backfill.CONSERVATIVE),
    "sjf": Discipline(Order.SHORTEST, Backfill.NONE),
}
"""Disciplines by the name of the column with their start times."""

MOST_S = 5.0
"""Bound on the CPU time of a replay, seconds."""

TREE = (
    Queue("lab", guarantee={"gpus": 20_000}),
    Queue("campus"),
    *(Queue(f"{parent}-{n}", parent=parent, weight=1 + n % 3) for parent in ("lab", "campus") for n in range(4)),
)
"""Queues of the default order and backfill, which users share, with a guarantee that is taken back."""

USERS = 20

MOST_TREE_S = 60.0
"""Bound on the CPU time of a replay with `TREE`, seconds."""

NOTES = [
    "10,000 jobs of the Lublin-Feitelson model on 256 processors, and 18,066 jobs of the NASA iPSC log on 128",
    "differ: jobs that start at another second than the reference; each replica is placed on a node by the engine",
    "seconds: CPU time of the replay on one core; plain_s: of EASY backfill over plain numbers, measured in turn",
]


def queues(seed: int) -> Result:
    """Replay the logs under each discipline; compare the starts with the reference."""
    rows: list[dict[str, Any]] = []
    for name, processors in PROCESSORS.items():
        source = existing(folder() / "traces" / "queues" / f"{name}.csv", "its reference schedules are not public")
        table = read_table(source, ["job", "submit_s", "run_s", "size", *(f"{each}_start_s" for each in DISCIPLINES)])
        lines = [(row.whole("submit_s"), row.whole("run_s"), row.whole("size")) for row in table]
        log = _log(name, lines, processors)
        for column, discipline in DISCIPLINES.items():
            reference = [row.whole(f"{column}_start_s") for row in table]
            row = _replayed(log, discipline, seed, reference)
            plain_s = _seconds(partial(easy_starts, lines, processors))[0]
            more = {"plain_s": round(plain_s, 2), "ratio": round(row["seconds"] / plain_s, 2)}
            rows.append({"log": name, "discipline": column, **row, **more})
        rows.append({"log": name, "discipline": "tree", **_replayed_in_tree(log, seed)})
    wrong = [f"{row['log']} {row['discipline']}: {row['differ']} jobs differ" for row in rows if row.get("differ")]
    most_s = {"tree": MOST_TREE_S}
    slow = [
        f"{row['log']} {row['discipline']}: {row['seconds']} s"
        for row in rows
        if row["seconds"] > most_s.get(row["discipline"], MOST_S)
    ]
    return Result("queues", rows, NOTES, wrong + slow)


def _replayed(log: Log, discipline: Discipline, seed: int, reference: Sequence[int]) -> dict[str, Any]:
    """Replay a log; return its measures, and how many jobs start at another second than in the reference."""
    row, starts_s = _measured(log, discipline, seed)
    return {"differ": int((starts_s != reference).sum()), **row}


def _replayed_in_tree(log: Log, seed: int) -> dict[str, Any]:
    """Replay a log with its jobs in `TREE` in turn; return its measures."""
    leaves = [queue.name for queue in TREE if queue.parent]
    jobs = (
        replace(job, queue=leaves[at % len(leaves)], tenant=f"user-{at % USERS}") for at, job in enumerate(log.jobs)
    )
    return _measured(replace(log, jobs=tuple(jobs)), Discipline(queues=TREE), seed)[0]


def _measured(log: Log, discipline: Discipline, seed: int) -> tuple[dict[str, Any], Int64]:
    """Replay a log; return its measures and starts."""
    run = partial(replay_with_departures, log.fleet, discipline=discipline)
    make = partial(policy_of, "bestfit", PolicyOptions(seed=seed))
    run(log.jobs[:100], make)  # compiles
    took_s, outcome = _seconds(partial(run, log.jobs, make))
    assert outcome.starts_s is not None
    record = outcome.record()
    measures = {name: round(float(record[name] or 0), 1) for name in ("queue_wait_mean_s", "bounded_slowdown_mean")}
    return {**measures, "seconds": round(took_s, 2)}, outcome.starts_s


def _seconds(run: Callable[[], T]) -> tuple[float, T]:
    """Return the CPU time of a call, seconds, and its result."""
    begun = process_time()
    result = run()
    return process_time() - begun, result


def _log(name: str, lines: Sequence[Row], processors: int) -> Log:
    """Write the jobs in the Standard Workload Format, and read them."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / f"{name}.swf"
        text = (
            f"{number} {submit_s} -1 {lasts_s} {size} -1 -1 {size} {lasts_s} -1 1 -1 -1 -1 -1 -1 -1 -1\n"
            for number, (submit_s, lasts_s, size) in enumerate(lines, 1)
        )
        file.write_text("".join(text))
        return read_swf(file, processors)
