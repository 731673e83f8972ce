"""Record the decisions of the control loop, and of all that predict it, as data.

Run it with the sources of any commit, and compare the files of two commits::

    python -m tools.draw_histories build/histories
    PYTHONPATH=OLD/src:OLD python tools/record_cycle.py decisions build/histories before
    python tools/record_cycle.py decisions build/histories after
    python tools/record_cycle.py compare before after
    python tools/record_cycle.py replays build/replays

`decisions` runs the control loop through random histories on a virtual clock. It records each start, resize and end.
After every fifth event it asks for the expected starts, three dry runs and four what-if questions. `replays` records
the starts of logs and traces.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import hashlib
import json
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.progress import track

from benchmarks.data import folder, openb
from seaway.adapters.simulated.backends import SimulatedBackends
from seaway.adapters.simulated.faults import NO_FAULTS, Options
from seaway.application.changes import Change
from seaway.application.control.settings import ControlSettings
from seaway.application.whatif.dry_run import DryRuns
from seaway.application.whatif.question import Question
from seaway.application.whatif.queues import QueueChanges
from seaway.application.whatif.whatif import WhatIf
from seaway.bootstrap.policies import policy_of
from seaway.domain.arrays import TaskArray
from seaway.domain.attempt import Attempt
from seaway.domain.cluster import Fleet
from seaway.domain.errors import ConflictError, RejectedError, UnavailableError
from seaway.domain.job import Job
from seaway.domain.job_spec import JobSpec
from seaway.domain.network import Gateway, Link
from seaway.domain.placement import Placement
from seaway.domain.queues import Backfill, Elastic, Order, Preemption, Preempts, Queue, Reclaim
from seaway.domain.reservations import AdvanceReservation
from seaway.domain.tenancy import Quota, Tenant
from seaway.scheduling.policies.registry import PolicyOptions
from seaway.simulation.table import read_table
from seaway.simulation.timeline import replay_with_departures
from seaway.simulation.waiting.discipline import Discipline
from seaway.testing.clocks import VirtualClock
from seaway.testing.plugins import cluster, fleet, gpu, job, mig_gpu, node
from tests.fakes.control_plane import SmallControlPlane

Json = dict[str, Any]

NS_PER_S = 1_000_000_000

START_S = 2
"""Time that workloads of simulated clusters take to start, seconds."""

LASTS_S = 1800
"""Time after the last event in which decisions are recorded, seconds."""

ELASTIC_LOAD = 1.25
"""GPUs that the jobs of the elastic replays request, as a share of those of the fleet."""

A100, V100, MIG = "NVIDIA A100-SXM4-80GB", "NVIDIA V100-SXM2-32GB", "mig"
MEMORY_MIB = {A100: 81_920, V100: 32_768}

KINDS = {
    "order": Order,
    "backfill": Backfill,
    "preemption": Preemption,
    "preempts": Preempts,
    "reclaim": Reclaim,
    "elastic": Elastic,
}
"""Types of the fields of queues that are not plain values."""


# Decisions.


class Recorder:
    """A control loop on simulated clusters, which goes through a history and records its decisions."""

    def __init__(self, given: Json) -> None:
        self.given = given
        self.clock = VirtualClock()
        self.clusters = SimulatedBackends(
            _fleet(given["clusters"]), self.clock, Options(NO_FAULTS, given.get("start_s", START_S), waits=False)
        )
        settings = ControlSettings(batch_size=given["batch_size"], **given.get("settings", {}))
        self.plane = SmallControlPlane(self.clusters, clock=self.clock, settings=settings)
        tenants = [Tenant(name, quotas={"default": Quota(**quota)}) for name, quota in given["tenants"].items()]
        self.queues = {each["name"]: _queue(each) for each in given["queues"]}
        self.plane.writer.commit([Change(put=[*tenants, *self.queues.values()])])
        self.plane.settle()
        self.begins_ns = self.clock.now_ns()
        self.ids: list[str] = []
        self.rows: list[list[Any]] = []
        self.known: dict[tuple[str, int], tuple[Any, ...]] = {}
        self.answers: list[Json] = []
        self.numbers: dict[str, str] = {}

    def run(self) -> Json:
        """Return the decisions, and the answers to questions between them."""
        for number, event in enumerate(self.given["events"], 1):
            self._advance_to(event["at_s"])
            outcome = self._apply(event)
            self.plane.settle()
            self._record()
            if outcome:
                self.rows.append([event["at_s"], "refused", number, outcome])
            if "asked" in event:
                self.answers.append({"at_s": event["at_s"], **self._asked(event["asked"])})
        self._advance_to(self.given["events"][-1]["at_s"] + self.given.get("lasts_s", LASTS_S))
        states = [self._state(job_id) for job_id in self.ids]
        return {"seed": self.given["seed"], "decisions": self.rows, "states": states, "answers": self.answers}

    @property
    def now_s(self) -> float:
        """Seconds since the begin."""
        return round((self.clock.now_ns() - self.begins_ns) / NS_PER_S, 3)

    def _advance_to(self, at_s: int) -> None:
        while self.now_s < at_s:
            self.clock.advance_s(1)
            self.plane.settle()
            self._record()
            if self._idle():
                return self.clock.advance_s(max(at_s - self.now_s, 0))
        return None

    def _idle(self) -> bool:
        live = self.plane.controller.live
        return not live.jobs and not live.attempts

    def _state(self, job_id: str) -> str:
        row = self.plane.store.job(job_id)
        return row.state.value if row else "deleted"

    def _record(self) -> None:
        """Add a row for each attempt that has begun, changed its size, or ended."""
        rows = self.plane.store.database.rows[Attempt].values()
        for each in sorted(rows, key=lambda row: (self._number(row.job_id), row.number)):
            key = each.job_id, each.number
            now = (each.state.live, _places(each.remaining) if each.state.live else [])
            before = self.known.get(key)
            if now == before:
                continue
            self.known[key] = now
            what = "ends" if not each.state.live else "resizes" if before else "starts"
            reason = str(each.reason) if not each.state.live else ""
            self.rows.append([self.now_s, what, self._number(each.job_id), each.number, now[1] or self._named(reason)])

    def _number(self, job_id: str) -> str:
        """Return the position of a job among those submitted; of a task, that of its array and its index."""
        row = self.plane.store.job(job_id) if job_id not in self.numbers else None
        if row:
            task = f"{self._number(row.array)}_{row.index}" if row.array else ""
            self.numbers[job_id] = task or f"{self.ids.index(job_id):03}"
        return self.numbers.get(job_id, job_id)

    def _named(self, text: str) -> str:
        """Return a text with positions instead of IDs."""
        for job_id in self.ids:
            self._number(job_id)
        for job_id, number in self.numbers.items():
            text = text.replace(job_id, f"job {number}")
        return text

    def _apply(self, event: Json) -> str:
        """Apply an event; return the reason if it was refused."""
        try:
            self._applied(event)
        except (RejectedError, ConflictError, UnavailableError) as error:
            return type(error).__name__
        return ""

    def _applied(self, event: Json) -> None:
        plane = self.plane
        if "submit" in event:
            specs = [plane.admission.with_template_traits(spec_of("work", each)) for each in event["submit"]]
            jobs, _ = asyncio.run(plane.jobs.submit(specs, event["user"]))
            self.ids += [each.id for each in jobs]
        elif "cancel" in event:
            plane.jobs.cancel(self.ids[event["cancel"] % len(self.ids)], "ada")
        elif "reprioritize" in event:
            job_id = self.ids[event["reprioritize"] % len(self.ids)]
            plane.jobs.change(job_id, replace(plane.job(job_id).spec, priority=event["priority"]), "ada")
        elif "cordon" in event:
            place = event["cordon"], event["node"]
            if any((each.cluster, each.node) == place for each in plane.controller.live.fleet.cordons()):
                plane.operations.uncordon(*place, "ada")
            else:
                plane.operations.cordon(*place, "ada", "test", drain=event["drain"])
        elif "cut" in event:
            self.clusters.cluster(event["cut"]).disconnect(event["seconds"])
        elif "limit" in event:
            at = self.queues[event["limit"]]
            gpus = {"gpus": event["gpus"]} if event["gpus"] else {}
            limit = {**{name: value for name, value in at.limit.items() if name != "gpus"}, **gpus}
            self.queues[at.name] = replace(at, limit=limit)
            plane.writer.commit([Change(put=[self.queues[at.name]])])
        else:
            starts_ns = self.clock.now_ns() + event["in_s"] * NS_PER_S
            reservation = AdvanceReservation(
                event["reserve"],
                starts_ns,
                starts_ns + event["for_s"] * NS_PER_S,
                tenant=event["tenant"],
                gpus=event["gpus"],
                clusters=frozenset({event["cluster"]} - {""}),
            )
            plane.writer.commit([Change(put=[reservation])])

    def _asked(self, asked: Sequence[Json]) -> Json:
        """Return the plan, three dry runs, and what-if without a change and with a lost cluster."""
        controller = self.plane.controller
        jobs = [spec_of("asked", each) for each in asked]
        what_if = WhatIf(controller, self.plane.admission, self.plane.store)
        lost = self.given["clusters"][-1]["name"]
        return {
            "plan": _answer(self._plan),
            "dry_runs": [_answer(partial(self._dry_run, each)) for each in jobs],
            "what_if": [
                _answer(lambda: self._consequences(what_if, Question())),
                _answer(lambda: self._consequences(what_if, Question(drain=(lost,)))),
                _answer(lambda: self._consequences(what_if, Question(jobs=tuple(jobs[:2])))),
                _answer(lambda: self._consequences(what_if, Question(changes=self._weighted()))),
            ],
        }

    def _weighted(self) -> QueueChanges:
        """Return a change of the weights of every second queue."""
        return QueueChanges(
            queues=tuple((name, {"weight": 1 + 2 * (at % 2)}) for at, name in enumerate(sorted(self.queues)))
        )

    def _plan(self) -> list[list[Any]]:
        planned = self.plane.controller.forecast.plan()
        found = sorted((each.rank, self._number(job_id), each.starts_ns) for job_id, each in planned.items())
        return [[number, self._seconds(starts_ns)] for _, number, starts_ns in found]

    def _seconds(self, at_ns: int | None) -> float | None:
        return None if at_ns is None else round((at_ns - self.begins_ns) / NS_PER_S, 3)

    def _dry_run(self, spec: JobSpec) -> Json:
        found = DryRuns(self.plane.controller).dry_run(spec, "ada")
        return {"fits": found.fits, "places": _places(found.placements), "message": self._named(str(found.message))}

    def _consequences(self, what_if: WhatIf, question: Question) -> Json:
        found = what_if.ask(question)
        moves = {
            name: sorted(
                [self._number(each.job_id), list(each.before), list(each.after)] for each in getattr(found, name)
            )
            for name in ("moved", "started", "stopped", "shrunk", "waiting")
        }
        starts = sorted([self._number(each.job_id), self._seconds(each.starts_ns)] for each in found.waiting)
        return {**moves, "starts": starts}


def _answer(ask: Callable[[], Any]) -> Any:  # noqa: ANN401  # JSON
    """Return an answer, or the name of its error."""
    try:
        return ask()
    except (RejectedError, ConflictError, UnavailableError) as error:
        return {"error": f"{type(error).__name__}: {error}"}


def _fleet(clusters: Sequence[Json]) -> Fleet:
    ties = [Link("door-0", f"door-{at}", 2_000_000 * at, bandwidth_mbps=200) for at in range(1, len(clusters))]
    made = [
        cluster(*[_node(models) for models in each["nodes"]], name=each["name"], gateway=f"door-{at}")
        for at, each in enumerate(clusters)
    ]
    return fleet(*made, links=ties, gateways=[Gateway("door-0")])


def _node(models: Sequence[str]) -> Any:  # noqa: ANN401  # a node
    devices = [
        mig_gpu() if each == MIG else gpu(model=each, memory_mib=MEMORY_MIB.get(each, MEMORY_MIB[A100]))
        for each in models
    ]
    return node(*devices, cpu_milli=32_000)


def _queue(given: Json) -> Queue:
    return Queue(**fields_of_queue(given))


def fields_of_queue(given: Json) -> Json:
    """Return fields of a queue from their values in a history."""
    return {key: KINDS[key](value) if key in KINDS else value for key, value in given.items()}


def spec_of(name: str, given: Json) -> JobSpec:
    """Return a job from its fields in a history."""
    own = {key: value for key, value in given.items() if key in JobSpec.__dataclass_fields__}
    demand = {key: value for key, value in given.items() if key not in own}
    if demand.get("gpus") and "gpu_memory_mib" not in demand:
        demand |= {"gpu_memory_percent": 100, "gpu_milli": 1000}
    if "models" in demand:
        demand["models"] = {*demand["models"]}
    if array := own.pop("array", None):
        own["array"] = TaskArray(f"0-{array['last']}", array["limit"] or 0)
    return replace(JobSpec(name, job(**demand).demand), **own)


def _places(placements: Sequence[Placement]) -> list[list[Any]]:
    """Return number, cluster, node and devices of each replica."""
    return [
        [each.replica, each.cluster, each.node, [str(one.uuid) for one in each.slices]]
        for each in sorted(placements, key=lambda one: one.replica)
    ]


# Commands.


def write(path: Path, data: object) -> None:
    """Write compressed JSON. Equal data gives equal bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(data, separators=(",", ":"), sort_keys=True)
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def read(path: Path) -> Any:  # noqa: ANN401  # JSON
    """Return the data of a file of `write`."""
    return json.loads(gzip.decompress(path.read_bytes()))


def _recorded(source: Path, target: Path) -> str:
    write(target / source.name, Recorder(read(source)).run())
    return source.name


def decisions(sources: Sequence[Path], target: Path, processes: int) -> None:
    """Record the decisions of each history that has no file in the target yet."""
    sources = [each for each in sources if not (target / each.name).exists()]
    with ProcessPoolExecutor(processes) as pool:
        for _ in track(pool.map(partial(_recorded, target=target), sources), "Recording", len(sources)):
            pass


def differences(before: Path, after: Path) -> Iterator[Json]:
    """Yield what differs between two recordings of a history. Texts do not count."""
    for path in sorted(before.glob("*.json.gz")):
        one, other = read(path), read(after / path.name)
        found: Json = {}
        if one["decisions"] != other["decisions"]:
            pairs = zip([*one["decisions"], None], [*other["decisions"], None], strict=False)
            found["first"] = next([a, b] for a, b in pairs if a != b)
            starts = [{(row[2], row[0]) for row in each["decisions"] if row[1] == "starts"} for each in (one, other)]
            found["starts"] = len(starts[0] ^ starts[1])
        for name in ("plan", "dry_runs", "what_if"):
            answers = zip(one["answers"], other["answers"], strict=True)
            if count := sum(_decided(a[name]) != _decided(b[name]) for a, b in answers):
                found[name] = count
        if found:
            yield {"history": path.name, **found}


def _decided(answer: Any) -> Any:  # noqa: ANN401  # JSON
    """Return an answer without its texts."""
    if isinstance(answer, dict):
        return {key: _decided(value) for key, value in answer.items() if key not in ("message", "error")}
    return [_decided(each) for each in answer] if isinstance(answer, list) else answer


def replays(target: Path) -> None:
    """Record the starts of logs and traces: all starts where queues decide, a digest where a reference is known."""
    from benchmarks.queues import cases, classes, elastic  # they need data outside the repository

    for name, processors in track(cases.PROCESSORS.items(), "Logs"):
        table = read_table(folder() / "traces" / "queues" / f"{name}.csv", ["submit_s", "run_s", "size"])
        lines = [(row.whole("submit_s"), row.whole("run_s"), row.whole("size")) for row in table]
        log = cases._log(name, lines, processors)  # noqa: SLF001  # the log of the benchmark
        leaves = [queue.name for queue in cases.TREE if queue.parent]
        mixed = [
            replace(job, queue=leaves[at % len(leaves)], tenant=f"user-{at % cases.USERS}")
            for at, job in enumerate(log.jobs)
        ]
        for kind, discipline in cases.DISCIPLINES.items():
            starts_s = _replayed(log.fleet, log.jobs, discipline)
            write(target / f"{name}-{kind}.json.gz", {"jobs": len(starts_s), "digest": digest(starts_s)})
        write(target / f"{name}-tree.json.gz", {"starts_s": _replayed(log.fleet, mixed, Discipline(queues=cases.TREE))})
    trace = openb()
    jobs = [each for each in trace.jobs if each.demand.request.gpus]
    jobs = [replace(each, tenant=classes.LATENCY_SENSITIVE if each.priority else classes.BEST_EFFORT) for each in jobs]
    window = classes.window_of(jobs)
    requested = sum(classes.gpu_seconds(each, window) for each in jobs) / (window[1] - window[0])
    fleet = classes.cut(trace.fleet, requested / classes.LOAD)
    fitting = classes.fitting(jobs, fleet)
    for kind, queue in track(classes.QUEUES.items(), "Classes"):
        name = kind.replace(" + ", "-")
        write(target / f"classes-{name}.json.gz", {"starts_s": _replayed(fleet, fitting, Discipline(queues=(queue,)))})
    in_time = sorted(jobs, key=lambda job: job.arrives_s)
    loaded = elastic._loaded(trace.fleet, in_time, requested / ELASTIC_LOAD, 0)  # noqa: SLF001
    for form in track(elastic.FORMS, "Elastic"):
        course, _ = elastic._timed(loaded, form)  # noqa: SLF001
        starts_s, ends_s = ([round(each) for each in times] for times in (course.starts_s, course.ends_s))
        write(target / f"elastic-{form}.json.gz", {"starts_s": starts_s, "ends_s": ends_s, "resizes": course.resizes})


def _replayed(fleet: Fleet, jobs: Sequence[Job], discipline: Discipline) -> list[int]:
    """Return the start of each job in the order of arrival, seconds."""
    outcome = replay_with_departures(fleet, jobs, partial(policy_of, "bestfit", PolicyOptions()), discipline=discipline)
    assert outcome.starts_s is not None
    return [int(each) for each in outcome.starts_s]


def digest(values: Sequence[int]) -> str:
    """Return a SHA-256 digest of numbers."""
    return hashlib.sha256(",".join(map(str, values)).encode()).hexdigest()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("decisions", help="record the decisions of histories")
    run.add_argument("source", type=Path)
    run.add_argument("target", type=Path)
    run.add_argument("--processes", type=int, default=2)
    replay = commands.add_parser("replays", help="record the starts of logs and traces")
    replay.add_argument("target", type=Path)
    compare = commands.add_parser("compare", help="list the differences of two recordings")
    compare.add_argument("before", type=Path)
    compare.add_argument("after", type=Path)
    given = parser.parse_args(arguments)
    logging.disable()  # clusters that are cut
    if given.command == "decisions":
        decisions(sorted(given.source.glob("*.json.gz")), given.target, given.processes)
    elif given.command == "replays":
        replays(given.target)
    else:
        found = list(differences(given.before, given.after))
        print(*map(json.dumps, found), sep="\n")  # the output
        return bool(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
