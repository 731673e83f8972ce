"""Anything that pages make of a job: its steps, its log, and why which cluster does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from babel.core import Locale

from seaway.domain.errors import RejectedError
from seaway.web import words as figures
from seaway.web.pages.jobs.compare import Side, asked_of, flat, groups_of
from seaway.web.pages.jobs.history import parameter_of, topology_of
from seaway.web.pages.jobs.log import MAX_LINES, News, added, news
from seaway.web.reasons import by_cluster, remedy_texts, steps
from seaway.web.words import Words
from seaway.wire.events import EventOut
from seaway.wire.explanations import ExplanationOut, FilteredOut, RemedyOut
from seaway.wire.job_out import AttemptOut, JobOut, PlacementOut, SliceOut
from seaway.wire.message import CodedOut, CodeOut
from tests.fakes import records as make

BEGAN = datetime(2026, 11, 22, 10, 0, tzinfo=UTC)


def event(at_s: int, state: str, kind: str = "state") -> EventOut:
    """Make an event."""
    at = (BEGAN + timedelta(seconds=at_s)).isoformat()
    rest = {
        "message": "",
        "reason": {"code": "", "params": {}},
        "actor": "a",
        "tenant": "",
        "job_id": "j",
        "attempt": 0,
    }
    return EventOut.model_validate({"id": at_s, "at": at, "kind": kind, "state": state, **rest})


def test_steps_last_until_the_next_and_fill_the_line() -> None:
    """Each state lasts until the next, the last until now; other events are no steps; widths add up to all."""
    shown = [event(0, "pending"), event(1, "queued"), event(5, "", "updated"), event(60, "running")]
    made = steps(shown, BEGAN + timedelta(seconds=90))
    assert [(each.state, each.lasted_s, each.now) for each in made] == [
        ("pending", 1, False),
        ("queued", 59, False),
        ("running", 30, True),
    ]
    assert sum(each.percent for each in made) == 100
    assert min(each.percent for each in made) > 1


def test_a_job_that_is_over_stays_so_for_good() -> None:
    """The last state of a job that ended takes no time, however long ago it was."""
    made = steps([event(0, "running"), event(9, "failed")], BEGAN + timedelta(days=9))
    assert [each.lasted_s for each in made] == [9, None]
    assert made[0].percent > 90
    assert steps([]) == []


def test_only_new_lines_are_added_to_a_log() -> None:
    """Anything that was there is not written again, also where lines are alike; what does not join is written again."""
    assert added([], ["a"]) == ["a"]
    assert added(["a", "a", "b"], ["a", "b", "c"]) == ["c"]
    assert added(["a", "a"], ["a", "a", "a"], whole=True) == ["a"]
    assert added(["a", "b"], ["a", "b"]) == []
    assert added(["a", "b"], ["x", "y"]) is None
    assert added(["a"], []) is None
    assert added(["b", "c"], ["a", "b", "c", "d"]) == ["d"]


def test_what_is_left_out_of_a_log_is_counted() -> None:
    """However fast it grows: a page knows how many lines it does not show, or that it does not know of all of them."""
    many = [str(number) for number in range(MAX_LINES + 7)]
    assert news(["x"], ["x", *many], whole=False) == News(many[7:], left_out=7)
    assert news(["x"], many, whole=False) == News(many[7:], left_out=7, joins=False)
    assert news(["x"], ["a"], whole=False) == News(["a"], joins=False)


def test_a_log_that_began_again_takes_the_place_of_the_one_before() -> None:
    """Where all of a log is known and none of it was there before, another attempt writes it."""
    assert news(["x", "y"], ["a"], whole=True) == News(["a"], restart=True)
    assert news([], ["a"], whole=True) == News(["a"])


def test_clusters_say_how_many_nodes_fit_and_why_others_do_not() -> None:
    """Those where most fit come first; reasons keep the order of the explanation."""
    no = CodeOut(code="", params={})
    explanation = ExplanationOut(
        nodes=10,
        filtered=[
            FilteredOut(plugin="P", message="full", reason=no, nodes=3, clusters={"a": 1, "b": 2}),
            FilteredOut(plugin="Q", message="far", reason=no, nodes=4, clusters={"a": 4}),
        ],
        candidates=[],
        remedies=[RemedyOut(field="gpu_memory_mib", requested=204_800, admits=81_920, cluster="a", node="n")],
        links=[],
        data=None,
    )
    rows = by_cluster(explanation, {"a": 5, "b": 3, "c": 2})
    assert [
        (each.cluster, each.fits, each.nodes, [(refused.message, count) for refused, count in each.refusals])
        for each in rows
    ] == [
        ("c", 2, 2, []),
        ("b", 1, 3, [("full", 2)]),
        ("a", 0, 5, [("full", 1), ("far", 4)]),
    ]
    (mend,) = remedy_texts(explanation.remedies, {})
    assert (mend.word, mend.asked, mend.admits, mend.path) == ("gpu_memory", "200Gi", "80Gi", "resources.gpu_memory")


def test_a_smaller_number_of_replicas_can_be_applied_unless_the_job_is_elastic() -> None:
    """A time limit and a number of replicas are fields of a job; an elastic job has bounds instead of a number."""
    limit = RemedyOut(field="time_limit_s", requested=0, admits=360, cluster="a", node="n")
    fewer = RemedyOut(field="replicas", requested=9, admits=4, cluster="a", node="n")
    fixed, elastic = (remedy_texts([limit, fewer], {"replicas": each}) for each in (9, {"min": 9, "max": 12}))
    assert [(each.path, each.admits) for each in fixed] == [("time_limit", "6m"), ("replicas", "4")]
    assert [each.path for each in elastic] == ["time_limit", ""]


def test_all_and_nothing_are_reported_of_nothing_else() -> None:
    """A percentage is never rounded up to 100 where a little is left, nor down to 0 where something is."""
    given = (0, 0.04, 0.44, 9.96, 50.4, 99.4, 99.6, 99.97, 100, 100.4)
    said = ["0 %", "<0.1 %", "0.4 %", "10 %", "50 %", "99 %", "99.6 %", ">99.9 %", "100 %", "100 %"]
    assert [figures.percent(number, Locale.parse("en")) for number in given] == said


def test_figures_are_written_for_people() -> None:
    """Times and moments have their unit, and as many digits as say something."""
    english = Locale.parse("en")
    assert [figures.span(s, english) for s in (0.4, 59, 3661, 200_000)] == ["0 s", "59 s", "1 h 1 min", "2 d 7 h"]
    assert figures.span(3661, Locale.parse("zh")) == "1小时 1分钟"
    assert "2026-11-22 10:00:00 UTC" in figures.clock("2026-11-22T11:00:00.5+01:00")
    euros = Words(currency="EUR")
    assert (Words().money("1234.5"), euros.money("1234.5")) == ("1,234.50", "1,234.50 EUR")
    assert (euros.money("0.375", exact=True), euros.priced("Price")) == ("0.375 EUR", "Price (EUR)")


def test_two_jobs_or_two_attempts_are_compared() -> None:
    """The address names two jobs, or one job and two attempts; everything else is rejected."""
    assert asked_of({"jobs": "a,b"}, Words()) == [("a", 0), ("b", 0)]
    assert asked_of({"jobs": "a", "attempts": "1,3"}, Words()) == [("a", 1), ("a", 3)]
    for query in (
        {},
        {"jobs": "a"},
        {"jobs": "a,b,c"},
        {"jobs": "a", "attempts": "1,x"},
        {"jobs": "a,b", "attempts": "1,2"},
    ):
        with pytest.raises(RejectedError, match="Choose two jobs"):
            asked_of(query, Words())


def test_a_comparison_has_the_fields_that_differ() -> None:
    """Equal fields of a specification are counted; lists of objects are compared entry by entry."""
    assert flat({"a": {"b": 1, "c": [1, 2]}, "d": [{"e": "x"}], "f": {}}) == {
        "a.b": "1",
        "a.c": "1 2",
        "d[0].e": "x",
        "f": "{}",
    }
    one, other = (
        Side(JobOut.of(make.job_record(spec=make.spec(name, priority=3))), None, None, None, whole=True)
        for name in ("one", "two")
    )
    (title, rows, same), *_ = groups_of(one, other, Words())
    assert (title, [(row.name, row.values) for row in rows]) == ("Specification", [("name", ("one", "two"))])
    assert same > 0


def test_a_comparison_of_attempts_has_the_specifications_that_they_ran_with() -> None:
    """They can differ from the present one of the job."""
    job = JobOut.of(make.job_record(spec=make.spec("one", priority=3)))
    placed = {"number": 1, "state": "ended", "policy": "", "placement_reason": None, "message": "", "placements": []}
    placed |= {"reason": {"code": "", "params": {}}, "created_at": "", "running_at": None, "ended_at": None}
    one, other = (
        Side(job, AttemptOut.model_validate({**placed, "spec": {"gpus": gpus}}), None, None, whole=False)
        for gpus in (1, 2)
    )
    (title, rows, same), *_ = groups_of(one, other, Words())
    assert (title, [(row.name, row.values) for row in rows], same) == ("Specification", [("gpus", ("1", "2"))], 0)


def test_replicas_are_grouped_by_cluster_node_and_device() -> None:
    """A device has all its replicas, and a node the replicas without a device."""

    def placed(replica: int, cluster: str, node: str, *uuids: str) -> PlacementOut:
        slices = [SliceOut(uuid=uuid, memory_mib=1, core_milli=1) for uuid in uuids]
        return PlacementOut(replica=replica, cluster=cluster, node=node, slices=slices)

    placements = [
        placed(0, "a", "n", "g", "h"),
        placed(1, "a", "n", "g"),
        placed(2, "b", "m"),
        placed(3, "a", "o", "i"),
    ]
    assert topology_of(placements) == [
        ("a", [("n", [("g", [0, 1]), ("h", [0])]), ("o", [("i", [3])])]),
        ("b", [("m", [("", [2])])]),
    ]


def test_the_exit_code_is_found_within_a_reason() -> None:
    """Reasons of failures are within others, which may list them."""
    exited = CodedOut(code="container_exited", params={"container": "main", "exit_code": 3}, message="")
    outer = CodeOut(code="", params={"attempts": 2, "causes": [CodedOut(code="x", params={"why": exited}, message="")]})
    assert (parameter_of(outer, "exit_code"), parameter_of(outer, "container")) == (3, "main")
    assert parameter_of(outer, "signal") is None


def test_the_timeline_has_the_resizes_of_an_elastic_job() -> None:
    """A resize is a step of its own in the state that the job has, with its time and reason."""
    resized = event(20, "running").model_copy(update={"kind": "resized", "state": ""})
    made = steps([event(0, "queued"), event(9, "running"), resized], BEGAN + timedelta(seconds=90))
    assert [(each.state, each.lasted_s, each.event.kind, each.now) for each in made] == [
        ("queued", 9.0, "state", False),
        ("running", 11.0, "state", False),
        ("running", 70.0, "resized", True),
    ]
