"""Queue disciplines: the suite for all of them, and the order of the default one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from seaway.domain.errors import RejectedError
from seaway.domain.job import Job
from seaway.scheduling.queueing.discipline import QueueDiscipline
from seaway.scheduling.queueing.registry import BUILT_IN, Priority, make_queue_discipline, queue_discipline_names
from seaway.testing.plugins import check_queue_discipline, job
from tests.unit.scheduling.test_registry import offer


class Forgetful(Priority):
    """A discipline that chooses another tenant each time it is asked."""

    def next_tenant(self, tenants: Sequence[str]) -> str:
        """Move on without a job."""
        self._last_tenant = super().next_tenant(tenants)
        return self._last_tenant


class Elsewhere(Priority):
    """A discipline that chooses a tenant without jobs."""

    def next_tenant(self, tenants: Sequence[str]) -> str:
        """Ignore the tenants."""
        return "elsewhere"


class Counting(Priority):
    """A discipline whose keys depend on how often it was asked."""

    asked = 0

    def key(self, job: Job, submitted_ns: int) -> tuple[int | float | str, ...]:
        """Count the call."""
        self.asked += 1
        return self.asked, job.name


@pytest.mark.parametrize("name", BUILT_IN)
def test_each_built_in_discipline_passes_the_suite(name: str) -> None:
    """A discipline goes by its own name, and keeps the rules that the control loop relies on."""
    assert make_queue_discipline(name).name == name
    check_queue_discipline(lambda: make_queue_discipline(name))


@pytest.mark.parametrize(
    ("make", "rule"),
    [(Forgetful, "the same until a job is taken"), (Elsewhere, "one of the tenants"), (Counting, "depends on the job")],
)
def test_the_suite_finds_what_breaks_a_rule(make: Callable[[], QueueDiscipline], rule: str) -> None:
    """A discipline that would confuse the control loop fails the suite, which names the rule."""
    with pytest.raises(AssertionError, match=rule):
        check_queue_discipline(make)


def test_priority_then_submission_then_id() -> None:
    """High priorities go first; among equals the earlier submission does, then the smaller ID."""
    discipline = Priority()
    asked = [("a", 0, 2), ("b", 0, 1), ("c", 5, 9), ("d", 0, 1), ("e", -1, 0)]
    keys = {name: discipline.key(replace(job(name=name), priority=priority), at) for name, priority, at in asked}
    assert sorted(keys, key=lambda name: keys[name]) == ["c", "b", "d", "a", "e"]


def test_tenants_take_rounds_by_name() -> None:
    """The next tenant is the one after the last, also when that one has no jobs left."""
    discipline = Priority()
    order = []
    for tenants in (["a", "b", "c"], ["a", "b", "c"], ["a", "c"], ["a", "c"], ["a", "c"]):
        order.append(discipline.next_tenant(tenants))
        discipline.taken(replace(job(), tenant=order[-1]))
    assert order == ["a", "b", "c", "a", "c"]


def test_disciplines_of_other_packages_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package adds a discipline by an entry point; an unknown name is rejected with the known ones."""
    offer(tmp_path, "other", queue_disciplines="mine = seaway.scheduling.queueing.registry:Priority")
    monkeypatch.syspath_prepend(tmp_path)
    assert queue_discipline_names() == ["priority", "mine"]
    assert isinstance(make_queue_discipline("mine"), Priority)
    with pytest.raises(RejectedError, match="queue discipline 'fair' not found; available: priority, mine"):
        make_queue_discipline("fair")
