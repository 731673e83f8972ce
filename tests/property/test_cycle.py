"""Property tests: what is asked of the scheduling cycle is what the control loop does, over random histories.

Predictions share the code of the loop, so they would agree with a fault. `Ruled` checks what the loop itself does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import product
from math import inf
from typing import Any

import pytest

from seaway.application.control.settings import ControlSettings
from seaway.application.views import DryRun
from seaway.application.whatif import trial as trials
from seaway.application.whatif.dry_run import DryRuns
from seaway.application.whatif.question import Consequences, Question
from seaway.application.whatif.queues import QueueChanges
from seaway.application.whatif.trial import ASKED, Trial
from seaway.application.whatif.waits import Side
from seaway.application.whatif.whatif import WhatIf
from seaway.domain.attempt import NS_PER_S, Attempt
from seaway.domain.errors import RejectedError
from seaway.domain.job_spec import JobSpec
from seaway.domain.placement import Placement
from seaway.domain.queues import Backfill, Order, Queue, Reclaim
from seaway.scheduling.allocations import Allocation
from seaway.scheduling.columns import PLAN_NODE, PLAN_REPLICA, PLAN_SLICE_END, PLAN_SLICE_FIRST, SLICE_DEVICE
from seaway.scheduling.cycle.displace import Claim, Preemptor
from seaway.scheduling.cycle.jobs import Entry
from seaway.scheduling.snapshot.snapshot import Snapshot
from tools import record_cycle
from tools.draw_histories import TENANTS, USERS, history
from tools.record_cycle import Json, Recorder, spec_of


class Ruled(Recorder):
    """Checks the rules of queues for each start and each displaced job."""

    def __init__(self, given: Json) -> None:
        super().__init__(given)
        self.claims = dict[str, Claim]()
        self.checks = Counter[str]()
        self.taken = set[tuple[str, str]]()
        self.submitted: list[tuple[int, Json]] = []
        self.changed = set[int]()
        self.closed: list[tuple[str, int, int]] = []
        preemptor = self.plane.controller.scheduler.preemptor
        noted = self._noted

        class Noting(Preemptor):
            def settle(self, claims: Sequence[Claim], stored: Sequence[bool]) -> None:
                if self is preemptor:  # not a copy
                    noted(claims, stored)
                super().settle(claims, stored)

        preemptor.__class__ = Noting

    def _noted(self, claims: Sequence[Claim], stored: Sequence[bool]) -> None:
        self.claims.update((each.entry.id, each) for each in claims)
        for claim, is_stored in zip(claims, stored, strict=True):
            if is_stored:
                self._check_victims(claim)

    def run(self) -> Json:
        """Return the decisions after the checks that need all of them."""
        found = super().run()
        starts = [row for row in found["decisions"] if row[1] == "starts"]
        self._check_order(starts)
        self._check_maintenance(starts)
        return found

    def _applied(self, event: Json) -> None:
        super()._applied(event)
        if "submit" in event:
            self.submitted += [(event["at_s"], each) for each in event["submit"]]
        elif "reprioritize" in event:
            self.changed.add(event["reprioritize"] % len(self.ids))
        elif event.get("cluster") and not event["tenant"]:
            self.closed.append((event["cluster"], event["at_s"], event["at_s"] + event["in_s"] + event["for_s"]))

    def _check_victims(self, claim: Claim) -> None:
        """Check minimum run times, priorities and protected jobs. By shares, no job displaces one twice."""
        live, winner = self.plane.controller.live, claim.entry
        mine = self.queues[winner.queue]
        for victim in claim.ends:
            attempt, loser = live.attempts[victim.key], live.jobs[victim.key[0]]
            theirs = self.queues[attempt.spec.queue]
            assert attempt.spec.preemptible is not False
            if attempt.running_ns is not None:
                assert self.clock.now_ns() - attempt.running_ns >= theirs.min_runtime_s * NS_PER_S
            if victim not in claim.lower:
                assert mine.reclaim is not Reclaim.NEVER
                assert mine.name != theirs.name
            elif not mine.ageing_s and not theirs.ageing_s:
                assert loser.spec.priority < winner.spec.priority
            pair = winner.id, loser.id
            assert mine.guarantee or victim in claim.lower or pair not in self.taken
            self.taken.add(pair)
            self.checks["victims"] += 1

    def _check_order(self, starts: Sequence[Any]) -> None:
        """Check that no job passes an equal one, and in queues without backfill none that goes first.

        Jobs for which others have ended may pass.
        """
        firsts = [int(number) for _, _, number, attempt, _ in starts if attempt == 1 and number.isdigit()]
        firsts = [at for at in firsts if self.ids[at] not in self.claims and at not in self.changed]
        for at, number in enumerate(firsts):
            submit_s, one = self.submitted[number]
            for other in (each for each in firsts[at + 1 :] if each < number):
                earlier_s, before = self.submitted[other]
                if before == one and earlier_s == submit_s:
                    raise AssertionError(f"job {number} passed the equal job {other}")
                queue = self.queues[one["queue"]]
                turns = queue.order is Order.FAIR and before["tenant"] != one["tenant"]  # shares decide
                if before["queue"] == one["queue"] and queue.backfill is Backfill.NONE and not turns:
                    assert _key(queue, before) > _key(queue, one), f"job {number} passed job {other}"
        self.checks["order"] += len(firsts)

    def _check_maintenance(self, starts: Sequence[Any]) -> None:
        """Check that no job without a time limit starts in a cluster from the announcement of its maintenance on."""
        for cluster, from_s, until_s in self.closed:
            for at_s, _, number, _, places in starts:
                if from_s < at_s < until_s and "time_limit_s" not in self.submitted[int(number[:3])][1]:
                    assert all(each[1] != cluster for each in places), f"job {number} at {at_s} s"
                    self.checks["maintenance"] += 1


def _key(queue: Queue, job: Json) -> float:
    """Return the position of a job in its queue, before the time of its submit."""
    if queue.order is Order.SHORTEST:
        return job["expected_duration_s"] or inf
    return 0 if queue.order is Order.FIFO else -job["priority"]


@pytest.mark.parametrize("seed", [25])
def test_the_size_of_batches_has_no_effect(seed: int) -> None:
    """Every start, resize and end of a history is the same, to the second, with batches of 1 and 512 jobs."""
    drawn = history(seed)
    for event in drawn["events"]:
        event.pop("asked", None)
    one, all_at_once = (Ruled({**drawn, "batch_size": size}).run()["decisions"] for size in (1, 512))
    assert one == all_at_once
    assert any(what == "starts" for _, what, *_ in one)


@pytest.mark.parametrize("seed", [19, 35, 130])
def test_each_decision_follows_the_rules(seed: int) -> None:
    """No job passes an equal one, displaces one that is protected, or starts where maintenance is announced."""
    drawn = history(seed)
    for event in drawn["events"]:
        event.pop("asked", None)
    ruled = Ruled(drawn)
    ruled.run()
    assert ruled.checks["victims"] > 5
    assert ruled.checks["order"] > 20


class Comparing(Ruled):
    """Asks for a dry run before each submit of a single job, and compares it with what the control loop does then."""

    def __init__(self, given: Json) -> None:
        super().__init__(given)
        self.dry_runs = DryRuns(self.plane.controller)
        self.results = Counter[str]()

    def _applied(self, event: Json) -> None:
        found = self._asked_before(event)
        super()._applied(event)
        if found is None:
            return
        self.plane.settle()
        job_id = self.ids[-1]
        said, done = self._said(found), self._done(job_id)
        assert said == done, f"job {job_id} at {event['at_s']} s: {event}"
        self.results[said[0]] += 1

    def _asked_before(self, event: Json) -> DryRun | None:
        """Return the dry run of the only job that an event submits; None for other events."""
        one = event["submit"][0] if len(event.get("submit", ())) == 1 else {"array": True}
        if "array" in one:
            return None
        spec = self.plane.admission.with_template_traits(spec_of("work", one))
        return self.dry_runs.dry_run(spec, event["user"])

    def _said(self, found: DryRun) -> tuple[Any, ...]:
        if not found.placements:
            return ("waits",)
        makers = sorted((each.job_id, each.replicas) for each in found.room_from)
        return "displaces" if makers else "starts", _places(found.placements), makers

    def _done(self, job_id: str) -> tuple[Any, ...]:
        """Return what the job got. Victims may be gone by now, so that it has started."""
        controller = self.plane.controller
        started, reserved = controller.live.latest(job_id), controller.scheduler.reservations.of_claim(job_id)
        if started:
            places = _places(_begun(started))
        elif reserved and reserved.booking:
            places = _reserved(reserved.booking, controller.live.fleet.snapshot)
        else:
            return ("waits",)
        if claim := self.claims.get(job_id):
            shrinks = Counter(each.job_key[0] for each in claim.victims if each.whole)
            makers = sorted([*shrinks.items(), *((each.key[0], 0) for each in claim.ends)])
            return "displaces", places, makers
        return "starts", places, []


def _begun(attempt: Attempt) -> list[Placement]:
    """Return the places of a new attempt, without replicas by which an elastic job has grown since."""
    spec = attempt.spec
    return [each for each in attempt.placements if not spec.elastic or each.replica < spec.least_replicas]


def _places(placements: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401
    return sorted(
        (each.replica, each.cluster, each.node, tuple(one.uuid for one in each.slices)) for each in placements
    )


def _reserved(booking: Allocation, snapshot: Snapshot) -> list[tuple[Any, ...]]:
    lines = booking.decisions[:, [PLAN_REPLICA, PLAN_NODE, PLAN_SLICE_FIRST, PLAN_SLICE_END]].tolist()
    return sorted(
        (
            replica,
            *snapshot.node_name(n),
            tuple(snapshot.devices[d].uuid for d in booking.slices[first:end, SLICE_DEVICE].tolist()),
        )
        for replica, n, first, end in lines
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_a_dry_run_says_what_the_submit_then_does(seed: int) -> None:
    """It names the nodes and devices of a start, and the jobs that end or shrink for it."""
    drawn = history(seed)
    for event in drawn["events"]:
        event.pop("asked", None)
    comparing = Comparing(drawn)
    comparing.run()
    assert comparing.results["starts"]
    assert comparing.results["waits"]


def _without_plans(drawn: Json) -> Json:
    """Return a history without conservative backfill, whose plans count amounts; see docs/limits.md."""
    for queue in drawn["queues"]:
        if queue.get("backfill") == Backfill.CONSERVATIVE.value:
            queue["backfill"] = Backfill.EASY.value
    return drawn


class Inquirer(Ruled):
    """Asks a what-if question before jobs are submitted, a limit changes or a node is drained, and compares."""

    def __init__(self, given: Json) -> None:
        super().__init__(given)
        self.what_if = WhatIf(self.plane.controller, self.plane.admission, self.plane.store)
        self.results = Counter[str]()
        self.said: dict[str, list[tuple[Any, ...]]] = {}

    def _ask(self, question: Question) -> Consequences:
        """Return an answer, and note all places of jobs after the change."""
        sides = Trial.sides

        def noted(trial: Trial, started: Sequence[Entry]) -> tuple[Side, Side]:
            self.said = {job_id: _places(trial.placements(job_id)) for job_id in trial.fork.jobs}
            return sides(trial, started)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Trial, "sides", noted)
            patched.setattr(trials, "MAX_FOLLOWED", 0)  # the time after the change is not compared here
            return self.what_if.ask(question)

    def _applied(self, event: Json) -> None:
        question, first = self._question(event), len(self.ids)
        try:
            answer = self._ask(question) if question else None
        except RejectedError:
            answer = None  # a submit of it is rejected, too
        super()._applied(event)
        self.plane.settle()
        if answer is None:
            return
        names = {f"{ASKED}{at}": job_id for at, job_id in enumerate(self.ids[first:])}
        said = {names.get(job_id, job_id): places for job_id, places in self.said.items()}
        now = {job_id: self._now(job_id, begins=job_id in names.values()) for job_id in said}
        assert said == now, f"at {event['at_s']} s: {event}"
        for name in ("started", "moved", "stopped", "shrunk", "grown"):
            self.results[name] += len(getattr(answer, name))

    def _question(self, event: Json) -> Question | None:
        if "submit" in event and not any("array" in each for each in event["submit"]):
            named = (spec_of("work", each) for each in event["submit"])
            return Question(jobs=tuple(map(self.plane.admission.with_template_traits, named)))
        if "limit" in event:
            limit = {**self.queues[event["limit"]].limit, "gpus": event["gpus"]}
            fields = {"limit": {name: amount for name, amount in limit.items() if amount}}
            return Question(changes=QueueChanges(queues=((event["limit"], fields),)))
        if event.get("drain") and event["node"]:
            place = event["cordon"], event["node"]
            cordons = self.plane.controller.live.fleet.cordons()
            if all((each.cluster, each.node) != place for each in cordons):
                return Question(drain=("/".join(place),))
        return None

    def _now(self, job_id: str, *, begins: bool) -> list[tuple[Any, ...]]:
        live = self.plane.controller.live
        job, attempt = live.jobs.get(job_id), live.latest(job_id)
        if job is None or attempt is None or not job.state.placed:
            return []
        return _places(_begun(attempt) if begins else attempt.remaining)


@pytest.mark.parametrize("seed", [1, 4])
def test_a_what_if_answer_is_what_the_control_loop_does_after_the_change(seed: int) -> None:
    """All jobs are where it says, with victims, shrunk and grown jobs. Victims are gone at once on these clusters."""
    drawn = _without_plans(history(seed))
    for event in drawn["events"]:
        event.pop("asked", None)
    inquirer = Inquirer(drawn)
    inquirer.run()
    assert inquirer.results["started"]
    assert inquirer.results["stopped"] + inquirer.results["moved"] + inquirer.results["shrunk"]


def _learning(drawn: Json, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """Return a recorder of a control plane that knows only past runs, which last equally long for each tenant.

    No job displaces others; see docs/limits.md.
    """
    lasts = {name: {"expected_duration_s": 40 * (1 + at)} for at, name in enumerate(TENANTS)}  # in simulated clusters
    for queue in drawn["queues"]:
        queue.update({"preemption": "Never", "reclaim": "Never"} if "order" in queue else {})
    for event in drawn["events"]:
        elastic = "min_replicas", "max_replicas", "one_by_one"
        event["submit"] = [
            {k: each[k] for k in each if k not in elastic} | lasts[each["tenant"]] for each in event["submit"]
        ]
    monkeypatch.setattr(JobSpec, "max_duration_s", None)
    monkeypatch.setattr(record_cycle, "ControlSettings", partial(ControlSettings, learn_durations=True))
    recorder = Recorder(drawn)
    for user, tenant in product(USERS, TENANTS):
        recorder._apply({"user": user, "submit": [{"tenant": tenant, "cpu_milli": 1000, **lasts[tenant]}]})  # noqa: SLF001
    recorder.plane.settle()
    recorder._advance_to(90)  # noqa: SLF001
    return recorder


@pytest.mark.parametrize(("seed", "learns"), [(1, False), (3, False), (1, True)])
def test_jobs_start_when_they_are_expected(seed: int, learns: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With exact durations and no later arrivals, each job starts within a second of its expected start by nodes."""
    monkeypatch.setattr(record_cycle, "START_S", 0)
    drawn = _without_plans(history(seed))
    submits = [each for each in drawn["events"] if "submit" in each][:14]
    drawn = {**drawn, "events": submits}
    recorder = _learning(drawn, monkeypatch) if learns else Recorder(drawn)
    for event in submits:
        recorder._apply(event)  # noqa: SLF001  # one event at a time
        recorder.clock.advance_s(1)
        recorder.plane.settle()
    recorder.clock.advance_s(30)
    recorder.plane.settle()
    now_ns, plan = recorder.clock.now_ns(), recorder.plane.controller.forecast.plan()
    assert not any(each.by_amounts for each in plan.values())
    expected = {job_id: each.starts_ns for job_id, each in plan.items() if each.starts_ns is not None}
    assert len(expected) > 8
    began: dict[str, int] = {}
    while expected.keys() - began.keys() and recorder.clock.now_ns() < now_ns + 4000 * NS_PER_S:
        recorder.clock.advance_s(1)
        recorder.plane.settle()
        for attempt in recorder.plane.store.database.rows[Attempt].values():
            if attempt.created_ns >= now_ns:
                began.setdefault(attempt.job_id, attempt.created_ns)
    for job_id, at_ns in expected.items():
        assert began[job_id] == pytest.approx(at_ns, abs=NS_PER_S), job_id
