"""Property tests: what is asked of the scheduling cycle is what the control loop does, over random histories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from seaway.application.control.scheduler import forecast
from seaway.application.views import DryRun
from seaway.application.whatif.dry_run import DryRuns
from seaway.application.whatif.question import Question
from seaway.application.whatif.queues import QueueChanges
from seaway.application.whatif.trial import ASKED, Trial
from seaway.application.whatif.waits import Side
from seaway.application.whatif.whatif import WhatIf
from seaway.domain.attempt import NS_PER_S, Attempt
from seaway.domain.errors import RejectedError
from seaway.domain.queues import Backfill
from seaway.scheduling.cycle.displace import Claim
from seaway.scheduling.cycle.jobs import Entry
from tools import record_cycle
from tools.draw_histories import history
from tools.record_cycle import Json, Recorder, spec_of


@pytest.mark.parametrize("seed", [25])
def test_the_size_of_batches_has_no_effect(seed: int) -> None:
    """Every start, resize and end of a history is the same, to the second, with batches of 1 and 512 jobs."""
    drawn = history(seed)
    for event in drawn["events"]:
        event.pop("asked", None)
    one, all_at_once = (Recorder({**drawn, "batch_size": size}).run()["decisions"] for size in (1, 512))
    assert one == all_at_once
    assert any(what == "starts" for _, what, *_ in one)


class _Comparing(Recorder):
    """Asks for a dry run before each submit of a single job, and compares it with what the control loop does then."""

    def __init__(self, given: Json) -> None:
        super().__init__(given)
        self.dry_runs = DryRuns(self.plane.controller)
        self.results = Counter[str]()
        self.claims = dict[str, Claim]()
        preemptor = self.plane.controller.scheduler.preemptor
        settle = preemptor.settle

        def noting(claims: Sequence[Claim], stored: Sequence[bool]) -> None:
            self.claims.update((each.entry.id, each) for each in claims)
            settle(claims, stored)

        preemptor.settle = noting  # type: ignore[method-assign]

    def _applied(self, event: Json) -> None:
        one = event["submit"][0] if len(event.get("submit", ())) == 1 else {"array": True}
        if "array" in one or self.queues[one["queue"]].backfill is Backfill.CONSERVATIVE:  # see docs/limits.md
            return super()._applied(event)
        spec = self.plane.admission.with_template_traits(spec_of("work", one))
        found = self.dry_runs.dry_run(spec, event["user"])
        super()._applied(event)
        self.plane.settle()
        job_id = self.ids[-1]
        said, done = self._said(found), self._done(job_id)
        assert said == done, f"job {job_id} at {event['at_s']} s: {event}"
        self.results[said[0]] += 1
        return None

    def _said(self, found: DryRun) -> tuple[Any, ...]:
        if not found.placements:
            return ("waits",)
        makers = sorted((each.job_id, each.replicas) for each in found.room_from)
        return "displaces" if makers else "starts", _places(found.placements), makers

    def _done(self, job_id: str) -> tuple[Any, ...]:
        """Return what the job got. Victims may be gone by now, so that it has started."""
        controller = self.plane.controller
        place = controller.live.latest(job_id) or controller.scheduler.reservations.of_claim(job_id)
        if place is None:
            return ("waits",)
        if claim := self.claims.get(job_id):
            shrinks = Counter(each.job_key[0] for each in claim.victims if each.whole)
            makers = sorted([*shrinks.items(), *((each.key[0], 0) for each in claim.ends)])
            return "displaces", _places(place.placements), makers
        return "starts", _places(place.placements), []


def _places(placements: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401
    return sorted(
        (each.replica, each.cluster, each.node, tuple(one.uuid for one in each.slices)) for each in placements
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_a_dry_run_says_what_the_submit_then_does(seed: int) -> None:
    """It names the nodes and devices of a start, and the jobs that end or shrink for it."""
    drawn = history(seed)
    for event in drawn["events"]:
        event.pop("asked", None)
    comparing = _Comparing(drawn)
    comparing.run()
    assert comparing.results["starts"]
    assert comparing.results["waits"]


def _without_plans(drawn: Json) -> Json:
    """Return a history without conservative backfill, whose plans count amounts; see docs/limits.md."""
    for queue in drawn["queues"]:
        if queue.get("backfill") == Backfill.CONSERVATIVE.value:
            queue["backfill"] = Backfill.EASY.value
    return drawn


class _Inquirer(Recorder):
    """Asks a what-if question before jobs are submitted, a limit changes or a node is drained, and compares."""

    def __init__(self, given: Json, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(given)
        self.what_if = WhatIf(self.plane.controller, self.plane.admission, self.plane.store)
        self.results = Counter[str]()
        self.said: dict[str, list[tuple[Any, ...]]] = {}
        sides = Trial.sides

        def noted(trial: Trial, started: Sequence[Entry]) -> tuple[Side, Side]:
            self.said = {job_id: _places(trial.placements(job_id)) for job_id in trial.fork.jobs}
            return sides(trial, started)

        monkeypatch.setattr(Trial, "sides", noted)
        monkeypatch.setattr(forecast, "MAX_FOLLOWED", 0)  # the time after the change is not compared here

    def _applied(self, event: Json) -> None:
        question, first = self._question(event), len(self.ids)
        try:
            answer = self.what_if.ask(question) if question else None
        except RejectedError:
            answer = None  # a submit of it is rejected, too
        super()._applied(event)
        self.plane.settle()
        if answer is None:
            return
        names = {f"{ASKED}{at}": job_id for at, job_id in enumerate(self.ids[first:])}
        said = {names.get(job_id, job_id): places for job_id, places in self.said.items()}
        now = {job_id: self._now(job_id) for job_id in said}
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

    def _now(self, job_id: str) -> list[tuple[Any, ...]]:
        live = self.plane.controller.live
        job, attempt = live.jobs.get(job_id), live.latest(job_id)
        if job is None or attempt is None or not job.state.placed:
            return []
        return _places(attempt.remaining)


@pytest.mark.parametrize("seed", [1, 4])
def test_a_what_if_answer_is_what_the_control_loop_does_after_the_change(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All jobs are where it says, with victims, shrunk and grown jobs. Victims are gone at once on these clusters."""
    drawn = _without_plans(history(seed))
    for event in drawn["events"]:
        event.pop("asked", None)
    inquirer = _Inquirer(drawn, monkeypatch)
    inquirer.run()
    assert inquirer.results["started"]
    assert inquirer.results["stopped"] + inquirer.results["moved"] + inquirer.results["shrunk"]


@pytest.mark.parametrize("seed", [1, 3])
def test_jobs_start_when_they_are_expected(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With exact durations and no later arrivals, each job starts within a second of its expected start by nodes."""
    monkeypatch.setattr(record_cycle, "START_S", 0)
    drawn = _without_plans(history(seed))
    submits = [each for each in drawn["events"] if "submit" in each][:14]
    recorder = Recorder({**drawn, "events": submits})
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
