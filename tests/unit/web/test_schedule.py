"""The time axis of running and planned jobs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from seaway.web.fragment import written
from seaway.web.pages.queues.schedule import EDGE, FILTERS, MAX_MARKS, SPANS_S, Axis, Bar, Look, bars_of, drawing
from seaway.web.words import words_of
from seaway.wire.queues import ScheduledJobOut, ScheduleGroupOut, ScheduleOut
from seaway.wire.reservations import ReservationOut

NOW = datetime(2026, 11, 21, 10, 7, tzinfo=UTC)


def at(minutes: float) -> str:
    """Return a time, in minutes from now."""
    return (NOW + timedelta(minutes=minutes)).isoformat()


def job(name: str, start: float, end: float | None, *, planned: bool = False) -> ScheduledJobOut:
    """Make a job; its start and end are minutes from now."""
    return ScheduledJobOut(
        id=name,
        name=name,
        tenant="default",
        queue="default",
        clusters=["a"],
        planned=planned,
        start=at(start),
        end=None if end is None else at(end),
        gpus=1,
    )


ALL = dict.fromkeys(FILTERS, "")


def reservation(name: str, starts: float, ends: float, **more: object) -> ReservationOut:
    """Make a reservation; its begin and end are minutes from now."""
    fields: dict[str, object] = {"tenant": "", "queue": "", "gpus": 0, "gpu_model": "", "clusters": [], "nodes": []}
    fields |= {
        "state": "planned",
        "drain": False,
        "description": "",
        "gpus_reserved": 8,
        "gpus_ready": 6,
        "version": "",
    }
    fields |= {"name": name, "starts": at(starts), "ends": at(ends)} | more
    return ReservationOut.model_validate({**fields, "maintenance": not (fields["tenant"] or fields["queue"])})


def drawn(reservations: Sequence[ReservationOut], by: str = "cluster", **wanted: str) -> dict[str, dict[str, Bar]]:
    """Return the bars of an hour with one running job in cluster a and queue default, by group and name."""
    group = ScheduleGroupOut(name="a" if by == "cluster" else "default", running=1, planned=0, jobs=[job("j", 0, None)])
    schedule = ScheduleOut(at=at(0), groups=[group], unplanned=0)
    groups = drawing(schedule, reservations, Look(by, "1h", {**ALL, **wanted}))["groups"]
    return {each["name"]: {bar.what.name: bar for bar in each["bars"]} for each in groups}


def test_bars_are_cut_at_the_edges_and_share_lanes() -> None:
    """A job of before the range starts at its edge, one without an end lasts to the other, and lanes are shared.

    A name has room up to the next bar.
    """
    jobs = [job("a", -600, 15), job("b", -5, None), job("c", 15, 600, planned=True)]
    bars = {bar.what.name: (bar.left, bar.right, bar.lane, bar.kinds) for bar in bars_of(jobs, Axis(NOW, 3600))}
    assert bars == {
        "a": (0, 50, 0, "bar-running"),
        "b": (pytest.approx(100 / 6), 100, 1, "bar-running bar-open"),
        "c": (50, 100, 0, "bar-planned"),
    }


def test_bars_of_a_lane_do_not_overlap() -> None:
    """Whatever the starts and ends, at most one bar of a lane is at each position."""
    jobs = [job(str(number), number * 7 % 40, number * 7 % 40 + 1 + number % 9) for number in range(60)]
    bars = bars_of(jobs, Axis(NOW, 3600))
    for lane in {bar.lane for bar in bars}:
        line = sorted((bar.left, bar.right, bar.room) for bar in bars if bar.lane == lane)
        assert all(end <= start == room for (_, end, room), (start, *_) in pairwise(line))


@pytest.mark.parametrize("span_s", SPANS_S.values())
def test_marks_are_at_round_times(span_s: int) -> None:
    """An axis has 4 to 9 marks within it. Days have dates, and no label is cut off at an edge."""
    marks = list(Axis(NOW, span_s).marks())
    assert 4 <= len(marks) <= MAX_MARKS + 1
    assert all(0 <= position <= 100 for position, _, _ in marks)
    assert all(datetime.fromisoformat(label).minute % 10 == 0 for _, label, _ in marks if label)
    assert all(EDGE < position < 100 - EDGE for position, label, _ in marks if label)
    assert {form for _, _, form in marks} == {"day" if span_s > 86_400 else "minute"}


def test_groups_say_how_many_bars_are_left_out() -> None:
    """Bars beyond the limit are counted for the group and in total."""
    group = ScheduleGroupOut(name="a", running=9000, planned=1000, jobs=[job("a", 0, None)])
    made = drawing(ScheduleOut(at=at(0), groups=[group], unplanned=7), [], Look("cluster", "1h", ALL))
    assert (made["left"], made["groups"][0]["left"], made["unplanned"]) == (9999, 9999, 7)


def test_owners_have_colours_tasks_numbers_and_lost_clusters_rows() -> None:
    """Bars of an owner have its colour; a task has its number; a cluster that does not answer has a row by itself."""
    tasks = [job("vc", 0, None).model_copy(update={"task": index, "tenant": "bio"}) for index in (3, 17)]
    group = ScheduleGroupOut(name="a", running=3, planned=0, jobs=[*tasks, job("k", 0, None)])
    schedule = ScheduleOut(at=at(0), groups=[group], unplanned=0)
    made = drawing(schedule, [], Look("cluster", "1h", ALL, lost={"sgp": "lost"}))
    first, lost = made["groups"]
    assert {bar.name for bar in first["bars"]} == {"vc #3", "vc #17", "k"}
    classes = {bar.name: bar.kinds.split()[-1] for bar in first["bars"]}
    assert classes["vc #3"] == classes["vc #17"] != classes["k"]
    assert (lost["name"], lost["state"], lost["bars"]) == ("sgp", "lost", [])
    by_queue = drawing(schedule, [], Look("queue", "1h", ALL, lost={"b": "lost"}))
    assert [each["name"] for each in by_queue["groups"]] == ["a"]


def test_reservations_are_above_the_jobs_of_their_clusters() -> None:
    """A reservation has a bar in each of its clusters, above the jobs. One without clusters has a group of its own."""
    down, held = reservation("down", 10, 20, clusters=["a", "b"]), reservation("held", 5, 99, tenant="x", gpus=8)
    found = drawn([down, held])
    assert {name: [*bars] for name, bars in found.items()} == {"a": ["down", "j"], "b": ["down"], "": ["held"]}
    assert (found["a"]["down"].lane, found["a"]["j"].lane) == (0, 1)
    assert (found["b"]["down"].kinds, found[""]["held"].kinds) == ("bar-maintenance", "bar-reserved")
    assert found[""]["held"].left == pytest.approx(100 / 3)
    assert found[""]["held"].right == 100


def test_reservations_are_filtered_as_the_jobs_whom_they_concern() -> None:
    """A tenant's reservation and maintenance concern each queue; what is of others or beyond the axis is left out."""
    there = [
        reservation("late", 100, 200, clusters=["a"]),
        reservation("over", -200, -100, clusters=["a"]),
        reservation("down", -5, 5, clusters=["a", "b"]),
        reservation("x", 0, 5, tenant="x", gpus=1),
        reservation("q", 0, 5, queue="q", gpus=1),
    ]
    assert [*drawn(there, "queue")] == ["default", "q", ""]
    assert {*drawn(there, "queue", queue="default", tenant="y")[""]} == {"down"}
    assert {name: {*bars} for name, bars in drawn(there, cluster="b", queue="r").items()} == {
        "a": {"j"},
        "b": {"down"},
        "": {"x"},
    }


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", "night: maintenance, moves running jobs, n1, 6 of 8 GPUs ready, 1 &lt; 2"),
        ("zh", "night: 维护\uff0c迁移运行中的作业, n1, 8 块 GPU 中 6 块就绪, 1 &lt; 2"),
    ],
)
def test_the_tooltip_of_a_reservation_says_what_when_and_for_whom(language: str, said: str) -> None:
    """It has the name, the holder, the place, the GPUs, the times and the description, and leads to its row."""
    night = reservation("night", 0, 5, clusters=["a"], nodes=["n1"], drain=True, description="1 < 2")
    schedule = ScheduleOut(at=at(0), groups=[], unplanned=0)
    html = written("schedule", words_of(language), **drawing(schedule, [night], Look("cluster", "1h", ALL)))
    title = html.partition('href="#reservation-night" title="')[2].partition('"')[0]
    times = title.split(", ")[-2]
    assert title.replace(f"{times}, ", "") == said
    assert "10:07" in times
    assert "10:12" in times
