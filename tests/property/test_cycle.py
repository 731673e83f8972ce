"""Property tests: what is asked of the scheduling cycle is what the control loop does, over random histories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from seaway.application.views import DryRun
from seaway.application.whatif.dry_run import DryRuns
from seaway.domain.queues import Backfill
from seaway.scheduling.cycle.displace import Claim
from tools.draw_histories import history
from tools.record_cycle import Json, Recorder, spec_of


@pytest.mark.parametrize("seed", [0, 25])
def test_the_size_of_batches_has_no_effect(seed: int) -> None:
    """Every start, resize and end of a history is the same, to the second, with batches of 1, 4 and 512 jobs."""
    drawn = history(seed)
    for event in drawn["events"]:
        event.pop("asked", None)
    one, four, all_at_once = (Recorder({**drawn, "batch_size": size}).run()["decisions"] for size in (1, 4, 512))
    assert one == four == all_at_once
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
