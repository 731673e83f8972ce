"""Scenarios of the scheduling cycle as data, in `cycle/*.toml`. All that uses the cycle runs each of them.

A file has a table for each scenario, whose name is the sentence that it states. Fields before the first table are the
defaults of all scenarios of the file:

- `nodes`: GPUs of each node of cluster ``a``, a number or a list of models; `clusters` has such lists by name;
- `queues` and `tenants`: tables of their fields by name, with amounts such as ``{ gpus = 2 }``. The first queue is the
  default of jobs;
- `jobs`: tables of the fields of `JobSpec` and of `seaway.testing.plugins.job` by name, in the order of their submits.
  A job has one GPU by default. `at_s` is the time of its submit, 0 by default, and `lasts_s` its duration, by default
  without an end. `count` submits several jobs in one request, and `together` adds a job to the request before it;
- `runs` of a job: ``"0-10 70-"`` runs from 0 s to 10 s, and from 70 s to the end of the scenario. ``"5-9@a/node-0"``
  names nodes. ``"0x4 30x2-90"`` is an elastic job with 4 replicas, and 2 from 30 s on. A last word is the code of the
  reason for which it waits at the end. ``"3* 0-"`` and lists are for jobs of one name, of which the others never run;
- `room_from` of a job: the jobs that end, shrink, or yield a reserved place for it;
- `events`: other events with their times, see `Staged` and `tools.record_cycle`;
- `settings`: those of the control loop;
- `each`: values of other fields, of which each combination gives the same result;
- `except`: users of the cycle that decide otherwise, each with the reason.

The users are the control loop, a dry run before each submit of a job, a what-if question before each submit and each
change, the expected starts after the last event, and a replay.
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Set
from copy import deepcopy
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from seaway.application.changes import Change
from seaway.application.views import DryRun
from seaway.application.whatif.dry_run import DryRuns
from seaway.application.whatif.question import Question
from seaway.application.whatif.queues import QueueChanges
from seaway.bootstrap.policies import policy_of
from seaway.domain.attempt import NS_PER_S
from seaway.domain.job_spec import Checkpoint
from seaway.domain.placement import Placement
from seaway.domain.queues import Queue
from seaway.domain.tenancy import Quota, Tenant
from seaway.scheduling.policies.registry import PolicyOptions
from seaway.scheduling.profile import Profile
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.simulation.stopwatch import Stopwatch
from seaway.simulation.waiting.discipline import Discipline
from seaway.simulation.waiting.queued import Queued
from tests.property.test_cycle import Comparing, Inquirer, Ruled
from tools.record_cycle import Json, fields_of_queue, spec_of

JOB = {"tenant": "default", "priority": 0, "cpu_milli": 1000, "gpus": 1, "expected_duration_s": None}
"""Fields of jobs that name no other value."""

USERS = {"dry_run", "what_if", "expected", "replay"}
"""Users of the cycle beside the control loop."""

AFTER_S = 30
"""Seconds of a scenario after the last time that it names."""

Runs = dict[str, list[str]]
"""Runs of the jobs of each name, sorted."""


# Scenarios.


def scenarios() -> Iterator[Any]:
    """Yield each scenario, with the fields that all of its file have."""
    for file in sorted((Path(__file__).parent / "cycle").glob("*.toml")):
        read = tomllib.loads(file.read_text())
        common: Json = {key: read.pop(key) for key in ("nodes", "queues", "settings", "except") if key in read}
        for rule, fields in read.items():
            left_out = common.get("except", {}) | fields.get("except", {})
            for at, case in enumerate(cases({**common, **fields, "except": left_out})):
                yield pytest.param(case, id=f"{file.stem}: {rule}" + f" ({at})" * bool(at))


def cases(scenario: Json) -> Iterator[Json]:
    """Yield a scenario with each combination of the values of `each`."""
    values = dict(lists_in(scenario.get("each", {})))
    for combination in product(*values.values()):
        case = deepcopy(scenario)
        for path, value in zip(values, combination, strict=True):
            table: Any = case
            for key in path[:-1]:
                table = table[int(key) if key.isdigit() else key]
            table[path[-1]] = value
        yield case


def lists_in(table: Json, *above: str) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    """Yield the lists in a tree of tables, with their paths."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from lists_in(value, *above, key)
        else:
            yield (*above, key), value


def in_thousandths(table: Json) -> Json:
    """Return a table of a queue or a tenant with its amounts as they are stored."""

    def stored(key: str, value: Any) -> Any:  # noqa: ANN401  # of TOML
        if isinstance(value, dict):
            return in_thousandths(value)
        return int(1000 * value) if key.startswith(("gpus", "cpu")) else value

    return {key: stored(key, value) for key, value in table.items()}


def tenant_of(name: str, table: Json) -> Tenant:
    """Return a tenant with a quota."""
    quota = in_thousandths(table)
    return Tenant(name, weight=quota.pop("weight", 1), quotas={"default": Quota(**quota)})


def submits_of(scenario: Json, queue: str) -> list[Json]:
    """Return the submits of a scenario, with the name of each job."""
    submits: list[Json] = []
    for name, fields in scenario["jobs"].items():
        given = {"queue": queue, **JOB, **fields}
        at_s, count, together = (given.pop(key, 0) for key in ("at_s", "count", "together"))
        user, _, _ = given.pop("user", "ada"), given.pop("runs", ""), given.pop("room_from", "")
        if "lasts_s" in given:
            given["expected_duration_s"] = given.pop("lasts_s")
        if "max_replicas" in given:
            given.setdefault("replicas", given["max_replicas"])
        if "checkpoint" in given:
            given["checkpoint"] = Checkpoint(**given["checkpoint"])
        given |= {key: frozenset(value) for key, value in given.items() if isinstance(value, list)}
        if not together:
            submits.append({"at_s": at_s, "user": user, "submit": [], "names": []})
        submits[-1]["submit"] += [given] * (count or 1)
        submits[-1]["names"] += [name] * (count or 1)
    return submits


def wanted_of(runs: str | list[str], count: int) -> list[str]:
    """Return the wanted runs of each of some jobs, sorted."""
    if isinstance(runs, str) and "*" not in runs:
        return [runs] * count
    found: list[str] = []
    for each in [runs] if isinstance(runs, str) else runs:
        times, _, text = each.rpartition("* ")
        found += [text] * int(times or 1)
    return sorted(found + [""] * (count - len(found)))


def history_of(scenario: Json) -> Json:
    """Return a scenario in the form of `tools.record_cycle`, without its tenants."""
    queues = scenario.get("queues", {"default": {}})
    clusters = scenario.get("clusters", {"a": scenario.get("nodes", ())})
    events = [*submits_of(scenario, next(iter(queues))), *scenario.get("events", ())]
    return {
        "seed": 0,
        "batch_size": 64,
        "settings": scenario.get("settings", {}),
        "start_s": 0,
        "clusters": [
            {"name": name, "nodes": [["A100"] * each if isinstance(each, int) else each for each in nodes]}
            for name, nodes in clusters.items()
        ],
        "tenants": {},
        "queues": [{"name": name, **in_thousandths(table)} for name, table in queues.items()],
        "events": sorted(events, key=lambda each: each["at_s"]),
    }


# Users of the cycle.


class Staged(Ruled):
    """A control loop that goes through a scenario."""

    def __init__(self, scenario: Json) -> None:
        given = history_of(scenario)
        self.names = [name for each in given["events"] for name in each.get("names", ())]
        self.wanted: Runs = {}
        for name, fields in scenario["jobs"].items():
            self.wanted[name] = wanted_of(fields.get("runs", ""), self.names.count(name))
        self.room_from = {name: each["room_from"] for name, each in scenario["jobs"].items() if "room_from" in each}
        last_s = given["events"][-1]["at_s"]
        text = " ".join(each for runs in self.wanted.values() for each in runs)
        times = re.findall(r"(?:^|[ -])(\d+)", re.sub(r"@\S+", "", text))
        self.until_s = max(map(int, [*times, last_s])) + AFTER_S
        given["lasts_s"] = self.until_s - last_s
        super().__init__(given)
        tenants: Json = {each["tenant"]: {} for each in scenario["jobs"].values() if "tenant" in each}
        self._put(*(tenant_of(name, table) for name, table in (tenants | scenario.get("tenants", {})).items()))
        self.reasons = DryRuns(self.plane.controller)

    def _put(self, *records: Any) -> None:  # noqa: ANN401  # queues and tenants
        self.plane.writer.commit([Change(put=[*records])])
        self.plane.settle()

    def _apply(self, event: Json) -> str:
        self._expire()
        return super()._apply(event)

    def _expire(self) -> None:
        """Let cached plans and divisions of models expire, as they do in about a second."""
        controller = self.plane.controller
        controller.forecast._until_ns = controller.scheduler.cycle._model_shares._until_ns = 0  # noqa: SLF001

    def _applied(self, event: Json) -> None:
        """Apply an event that names a job or changes the fields of a queue, or one of a history."""
        match event:
            case {"cancel": str(name)}:
                super()._applied({**event, "cancel": self.names.index(name)})
            case {"reprioritize": str(name)}:
                super()._applied({**event, "reprioritize": self.names.index(name)})
            case {"reserve": _}:
                super()._applied({"in_s": 0, "tenant": "", "gpus": 0, "cluster": "", **event})
            case {"cordon": _}:
                super()._applied({"node": "", "drain": False, **event})
            case {"queue": name, "set": fields}:
                self.queues[name] = replace(self.queues[name], **fields_of_queue(in_thousandths(fields)))
                self._put(self.queues[name])
            case _:
                super()._applied(event)

    def runs(self) -> Runs:
        """Return the runs of the jobs, with the reasons for which they wait."""
        whys = [
            "" if row is None or row.state.placed or row.state.final else self.reasons.reason(row, None).code
            for row in map(self.plane.store.job, self.ids)
        ]
        return self.texts(self.rows, whys)

    def texts(self, rows: Iterable[list[Any]], whys: Iterable[str]) -> Runs:
        """Return the runs of the jobs as text, with as much as is wanted.

        Parameters
        ----------
        rows
            Time, kind of change, number of the job, number of its attempt, and places of its replicas; see `Recorder`.
        whys
            The reason for which each job waits at the end; empty for none.
        """
        runs = [list[list[str]]() for _ in self.names]
        for at_s, what, number, _, places in rows:
            found, like = runs[int(number)], " ".join(self.wanted[self.names[int(number)]])
            sized, placed = re.search(r"\dx\d", like), "@" in like
            if what == "ends":
                found[-1][1] += f"{at_s:g}"
            elif what == "starts" or sized or placed:
                if what == "resizes":
                    found[-1][1] = ""
                nodes = "+".join(sorted({f"{cluster}/{node}" for _, cluster, node, *_ in places}))
                found.append([f"{at_s:g}" + f"x{len(places)}" * bool(sized), "-", f"@{nodes}" * placed])
        found_of: Runs = {name: [] for name in self.names}
        for name, found, why in zip(self.names, runs, whys, strict=True):
            reasons = [why] if re.search(r"(^| )[a-z]", " ".join(self.wanted[name])) else []
            found_of[name].append(" ".join(filter(None, [*map("".join, found), *reasons])))
        return {name: sorted(texts) for name, texts in found_of.items()}

    def makers(self) -> dict[str, str]:
        """Return the names of the jobs that made room for others."""
        names, found = dict(zip(self.ids, self.names, strict=True)), defaultdict[str, set[str]](set)
        for job_id, claim in self.claims.items():
            makers = [*(each.job_key[0] for each in claim.victims), *claim.losers]
            found[names[job_id]].update(names[each] for each in makers)
        return {winner: " ".join(sorted(makers)) for winner, makers in found.items()}


class Compared(Inquirer, Comparing, Staged):
    """Asks users of the cycle before each event, and compares what they say with what follows.

    Parameters
    ----------
    users
        Users of the cycle.
    """

    def __init__(self, scenario: Json, users: Set[str]) -> None:
        super().__init__(scenario)
        self.users = users
        self.expected: dict[str, float | None] = {}

    def _asked_before(self, event: Json) -> DryRun | None:
        return super()._asked_before(event) if "dry_run" in self.users else None

    def _question(self, event: Json) -> Question | None:
        if "what_if" not in self.users:
            return None
        match event:
            case {"queue": name, "set": fields}:
                changed = fields_of_queue(in_thousandths(fields))
                return Question(changes=QueueChanges(queues=((name, changed),)))
            case _:
                return super()._question(event)

    def _applied(self, event: Json) -> None:
        super()._applied(event)
        if event is self.given["events"][-1] and "expected" in self.users:
            self.plane.settle()
            self._expire()
            plan = self.plane.controller.forecast.plan()
            self.expected = {
                job_id: None if each.starts_ns is None else (each.starts_ns - self.begins_ns) / NS_PER_S
                for job_id, each in plan.items()
            }

    def check_expected(self) -> None:
        """Check that jobs that waited after the last event have started as expected then."""
        last_s = self.given["events"][-1]["at_s"]
        began = [(row[0], self.ids[int(row[2])]) for row in self.rows if row[1] == "starts" and row[0] > last_s]
        for job_id, start_s in self.expected.items():
            found = next((at_s for at_s, started in began if started == job_id), None)
            assert found == (start_s if start_s and start_s <= self.until_s else None), job_id


def replayed(staged: Staged) -> Runs:
    """Return the runs of the jobs of a scenario in a replay."""
    jobs = [
        replace(spec.job(""), arrives_s=event["at_s"], max_replicas=spec.max_replicas)
        for event in staged.given["events"]
        for spec in (spec_of("work", each) for each in event.get("submit", ()))
    ]
    discipline = Discipline(
        queues=tuple(Queue(**fields_of_queue(each)) for each in staged.given["queues"]),
        tenants=tuple(staged.plane.controller.names.tenants.values()),
        gpu_weights=staged.plane.settings.weights(),
    )
    snapshot, policy = Snapshot(staged.plane.controller.live.fleet.fleet()), policy_of("bestfit", PolicyOptions())
    assert isinstance(policy, Profile)
    run = Queued(snapshot, jobs, policy, Stopwatch(snapshot, policy), discipline)
    rows: list[list[Any]] = []
    known: dict[tuple[str, int], tuple[Placement, ...]] = {}
    for now_s in run.moments():
        if now_s > staged.until_s:
            break
        now = {key: each.placements for key, each in run._state.attempts.items()}  # noqa: SLF001  # it has no events
        rows += [[now_s, "ends", *key, ()] for key in known.keys() - now.keys()]
        for key, each in now.items():
            if known.get(key) != each:
                places = [(one.replica, one.cluster, one.node) for one in each]
                rows.append([now_s, "resizes" if key in known else "starts", *key, places])
        known = now
    return staged.texts(rows, [""] * len(staged.names))


def check(scenario: Json, users: Set[str]) -> None:
    """Check a scenario, and that users of the cycle decide as the control loop does."""
    staged = Compared(scenario, users)
    staged.run()
    assert staged.runs() == staged.wanted
    assert staged.makers() == staged.room_from
    staged.check_expected()
    if "replay" in users:
        without = {name: [re.sub(r"(^| )[a-z_]+$", "", each) for each in runs] for name, runs in staged.wanted.items()}
        assert replayed(staged) == {name: sorted(runs) for name, runs in without.items()}


@pytest.mark.parametrize("scenario", list(scenarios()))
def test_scenario(scenario: Json) -> None:
    """Jobs run as the scenario states, and all users of the cycle decide alike, except those that are left out."""
    left_out = scenario["except"].keys()
    check(scenario, USERS - left_out)
    for user in left_out:
        with pytest.raises(AssertionError):
            check(scenario, {user} & USERS)
