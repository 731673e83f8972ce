"""Questions as they are filled in, and their answers as they are drawn."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import MagicMock

import pytest

from seaway.application.views import Amount
from seaway.application.whatif.clusters import ClusterChange, ClusterSums
from seaway.application.whatif.question import Move, Sums, consequences
from seaway.application.whatif.waits import WaitChange, WaitChanges, Waits
from seaway.client.call import Paged
from seaway.domain.errors import RejectedError
from seaway.domain.reasons import Reason
from seaway.web.fragment import written
from seaway.web.latest import Latest
from seaway.web.pages.whatif.answer import variables_of
from seaway.web.pages.whatif.drawing import MAX_BOXES, draw, flows_of
from seaway.web.pages.whatif.question import MAX_BURST, asked, field_of, trace_of_file, wrong
from seaway.web.pages.whatif.whatif import _WhatIf, nodes_like, partition_known
from seaway.web.visit import Visit
from seaway.web.words import Words, words_of
from seaway.wire.fleet import AmountOut
from seaway.wire.message import CodeOut, with_message
from seaway.wire.whatif import (
    ClusterChangeOut,
    ClusterSumsOut,
    MoveOut,
    ShiftOut,
    SumsOut,
    TraceOut,
    TraceSideOut,
    WaitChangeOut,
    WaitChangesOut,
    WaitsOut,
    WhatIfOut,
    consequences_fields,
)


def sums(nodes: int, jobs: int) -> ClusterSumsOut:
    """Make a cluster of nodes of two GPUs, of which each job holds one."""
    total = nodes * 2000
    amount = AmountOut(total=total, used=jobs * 1000, free=total - jobs * 1000)
    return ClusterSumsOut(nodes=nodes, jobs=jobs, gpu_milli=amount, gpu_memory_mib=amount)


def change(name: str, before: tuple[int, int], after: tuple[int, int]) -> ClusterChangeOut:
    """Make a cluster with its nodes and jobs, before and after."""
    return ClusterChangeOut(name=name, before=sums(*before), after=sums(*after))


def move(before: list[str], after: list[str]) -> MoveOut:
    """Make a job that moves."""
    return MoveOut(id="a", name="a", before=before, after=after, message="", reason=CodeOut(code="", params={}))


def answer(clusters: list[ClusterChangeOut], moved: list[MoveOut]) -> WhatIfOut:
    """Make an answer."""
    fleet = SumsOut(placed=0, waiting=0, allocation_percent=None, fragmentation=None)
    none: list[MoveOut] = []
    moves = {"moved": moved, "started": none, "stopped": none, "waiting": none}
    return WhatIfOut.model_validate(
        {**with_message(""), "before": fleet, "after": fleet, "clusters": clusters, **moves}
    )


def test_what_is_left_empty_is_not_asked() -> None:
    """Only what is filled in is in the question; a policy says more than that everything is placed again."""
    assert asked({"count": "4", "gpus": "1", "cluster": "a"}) == {}
    assert asked({"lose": "a", "nodes": "b/n1, b/n2"}) == {"drain": ["a", "b/n1", "b/n2"]}
    added = asked({"cluster": "a", "like": "n", "count": "3"})
    assert added == {"add_nodes": [{"cluster": "a", "like": "n", "count": 3}]}
    assert asked({"again": "1"}) == {"replay": True}
    assert asked({"again": "1", "policy": "fgd"}) == {"policy": "fgd"}


def test_a_changed_queue_and_tenant_are_asked_as_the_api_has_them() -> None:
    """Amounts are split by resource, weights are numbers, and jobs move to the changed queue."""
    given = {"changed_queue": "q", "weight": "2", "guarantee": "gpus=16, memory=2TB", "backfill": "none", "moved": "p"}
    assert asked({**given, "window": "1d"}) == {
        "queues": [{"name": "q", "weight": 2, "guarantee": {"gpus": "16", "memory": "2TB"}, "backfill": "none"}],
        "move_jobs": [{"queue": "p", "to": "q"}],
        "window": "1d",
    }
    assert asked({"tenant": "t", "tenant_weight": "3", "tenant_limit": "gpus=4"}) == {
        "tenants": [{"name": "t", "weight": 3, "quotas": {"default": {"limit": {"gpus": "4"}}}}]
    }
    assert asked({"window": "1h"}) == {}


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        ({"changed_queue": "q", "weight": "-1"}, ["weight"]),
        ({"tenant": "t", "tenant_weight": "1000001"}, ["tenant_weight"]),
        ({"changed_queue": "q", "limit": "16"}, ["limit"]),
        ({"tenant": "t", "tenant_guarantee": "gpus=1,gpus=2"}, ["tenant_guarantee"]),
        ({"weight": "2"}, ["changed_queue"]),
        ({"moved": "p", "tenant_limit": "gpus=1"}, ["changed_queue", "tenant"]),
    ],
)
def test_changes_that_the_api_would_not_see_are_reported_at_their_field(
    given: dict[str, str], fields: list[str]
) -> None:
    """Invalid numbers and amounts, and changes of no queue or tenant, are reported before a query is sent."""
    assert [each.where for each in wrong(given, Words())] == fields


def test_each_job_of_a_burst_requests_for_the_same() -> None:
    """Anything that is no amount is left for the API to say so."""
    jobs = asked({"burst": "100", "gpus": "two", "gpu_memory": "8GB", "queue": "q"})["jobs"]
    assert (len(jobs), jobs[0]["queue"]) == (MAX_BURST, "q")
    assert jobs[0]["resources"] == {"gpus": "two", "gpu_memory": "8GB"}


@pytest.mark.parametrize(
    "text", ["101", "1000", "3.5", "-5", "x", "1e2", "٣", "9" * 5000, "000000000400000", "0" * 5000 + "101"]
)
def test_numbers_that_are_none_or_too_many_are_refused_at_their_field(text: str) -> None:
    """Nothing is cut to what can be asked, nor rounded, without a word."""
    (mistake,) = wrong({"burst": text}, Words())
    assert (mistake.where, mistake.message) == ("burst", "Fill in a whole number from 0 to 100.")
    assert wrong({"burst": "100", "count": "0"}, Words()) == []
    assert [each.where for each in wrong({"like": "n", "count": "0"}, Words())] == ["count"]


def test_a_time_replays_the_jobs_of_the_past() -> None:
    """The time is asked as it was written, and an error of the API is at its field."""
    assert asked({"last": "7d", "window": "1h"}) == {"last": "7d", "window": "1h"}
    assert field_of("question.last") == "last"


def test_a_file_is_a_table_or_a_log_by_its_name() -> None:
    """Both become a trace; times count from the first submission, and equal jobs share a kind."""
    table = (
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time\na,1,1,1,500,5,7\nb,1,1,1,500,6,9\n"
    )
    found = trace_of_file("Jobs.CSV", table.encode(), [])
    assert (len(found["kinds"]), found["jobs"]) == (1, [[0, 0, 2], [0, 1, 3]])
    assert found["kinds"][0]["resources"]["gpu_memory"] == "50%"
    log = f"{' '.join(['1', '10', '-1', '60', '2'] + ['-1'] * 13)}\n"
    found = trace_of_file("log.swf", log.encode(), [])
    assert (found["kinds"][0]["replicas"], found["jobs"]) == (2, [[0, 0, 60]])


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", b"name\nx\n", r"^a\.csv:1:cpu_milli: the column is missing"),
        ("a.csv", b"name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,1,0,0\n", r"^a\.csv: has no times"),
        ("a.csv", b"\xff\xfe\x00", r"^a\.csv"),
        ("a.swf", b"1 2\n", r"^a\.swf:1: has 2 fields"),
        ("a.swf", b"", r"^a\.swf: has no job"),
    ],
)
def test_errors_of_a_file_name_it_as_it_was_uploaded(name: str, content: bytes, said: str) -> None:
    """The name and the line are reported, not the place of the copy on the server."""
    with pytest.raises(RejectedError, match=said):
        trace_of_file(name, content, [])


def test_zeros_before_a_number_do_not_change_it() -> None:
    """Anything that is let through is what is asked, however it is written."""
    given = {"burst": "0" * 5000 + "3", "like": "n", "count": "0000000000002"}
    assert wrong(given, Words()) == []
    question = asked(given)
    assert (len(question["jobs"]), question["add_nodes"][0]["count"]) == (3, 2)


@pytest.mark.parametrize("text", ["9" * 5000, "1" * 20, "inf", "nan"])
def test_amounts_that_cannot_be_sent_as_numbers_are_sent_as_they_were_written(text: str) -> None:
    """The API says of them what is wrong."""
    assert asked({"burst": "1", "gpus": text})["jobs"][0]["resources"]["gpus"] == text


@pytest.mark.parametrize(
    ("language", "moved", "shrunk", "said", "why"),
    [
        ("en", 0, 0, "0 tasks would move, 0 of 0 waiting tasks would start, 0 running tasks would have to wait<", ""),
        (
            "en",
            1,
            2,
            "2 elastic jobs would shrink, 1 elastic job would grow, 3 waiting tasks would start earlier",
            "a/2 is drained",
        ),
        ("zh", 2, 1, "2 个任务将迁移", "a/2 正在排空"),
        ("zh", 0, 1, "1 个弹性作业将缩容", "a/2 正在排空"),
    ],
)
def test_the_answer_is_a_sentence_in_the_language_of_the_page(
    language: str, moved: int, shrunk: int, said: str, why: str
) -> None:
    """Elastic jobs that shrink are in it, and in the list with their reason."""
    one = Move("a", "a", ("a/1", "a/2"), ("a/1",), Reason("drained", place="a/2"))
    none, fleet = ClusterSums(0, 0, Amount(0, 0), Amount(0, 0)), Sums(0, 0, None, None)
    every = WaitChange("", 0, Waits(waiting=3), Waits(waiting=4, unknown=2, mean_all_s=60.0))
    waits = WaitChanges(3600, (), (), every, 3 * (shrunk > 1), 0, (), (), {})
    sides = ClusterChange("a", none, none)
    grows = Move("g", "g", ("a/1",), ("a/1", "a/2"), Reason("grows_by", count=1))
    resized = [*([one] * shrunk), *([grows] * moved)]
    given = consequences_fields(consequences([one] * moved, resized, (fleet, fleet), (sides,), waits))
    variables = variables_of(WhatIfOut.model_validate(given), words_of(language))
    shown = written("whatif", words_of(language), **variables)
    assert said in shown
    assert why in shown
    assert [(each["kind"], each["count"]) for each in variables["moves"]] == [
        *([("moves", moved)] if moved else []),
        *([("shrinks", shrunk)] if shrunk else []),
        *([("grows", moved)] if moved else []),
    ], "tasks of an array are one row"
    mean = next(each for each in variables["tiles"] if "0 → 2" in each["note"])
    assert (mean["before"], mean["after"][:2]) == ("–", "≥ "), "without a known start, the mean is a lower bound"


def test_names_that_are_not_there_are_distinguished() -> None:
    """None is dropped: each is offered, or said to be missing; what is empty names nothing."""
    assert partition_known(["a", " nope", "", "b"], ["a", "b", "c"]) == (["a", "b"], ["nope"])


@pytest.mark.anyio
async def test_nodes_to_be_like_are_looked_for_where_all_of_them_are() -> None:
    """Of a cluster of thousands any node can be found by a part of its name: the server looks."""
    asked_for: list[Paged[Any]] = []

    async def all_of(paged: Paged[Any]) -> list[SimpleNamespace]:
        asked_for.append(paged)
        return [SimpleNamespace(name="n-5000")]

    visit = cast(Visit, SimpleNamespace(all=all_of))
    assert await nodes_like(visit, "") == []
    assert await nodes_like(visit, "a", "5000") == ["n-5000"]
    (paged,) = asked_for
    assert {"cluster": "a", "name": "5000"}.items() <= dict(paged.first.parameters).items()


@pytest.mark.anyio
async def test_nodes_of_the_cluster_that_is_chosen_are_offered_whenever_answers_come() -> None:
    """Of two quick choices the last counts, also where the nodes of the one before are observed after its own."""
    answers: dict[str, asyncio.Future[list[SimpleNamespace]]] = {}

    async def all_of(paged: Paged[Any]) -> list[SimpleNamespace]:
        answers[dict(paged.first.parameters)["cluster"]] = answer = asyncio.get_running_loop().create_future()
        return list(await answer)

    page, offered = cast("Any", object.__new__(_WhatIf)), MagicMock()
    page._visit = SimpleNamespace(all=all_of, query={})  # noqa: SLF001
    choices = []
    for cluster in ("a", "b"):
        page._inputs = {"cluster": SimpleNamespace(value=cluster), "like": offered}  # noqa: SLF001
        choices.append(asyncio.create_task(page._offer_nodes()))  # noqa: SLF001
        await asyncio.sleep(0)
    for cluster in ("b", "a"):
        answers[cluster].set_result([SimpleNamespace(name=f"{cluster}-n0")])
        await asyncio.sleep(0)
    await asyncio.gather(*choices)
    offered.set_options.assert_called_once_with(["", "b-n0"], value="b-n0")


@pytest.mark.anyio
@pytest.mark.parametrize("like", ["", "a-n7"])
async def test_no_node_comes_that_an_address_does_not_name(like: str) -> None:
    """Anything that is asked by an address is what it says, also where it names a cluster and nothing to come to it."""

    async def all_of(_: Paged[Any]) -> list[Any]:
        return [SimpleNamespace(name="a-n0")]

    page, offered = cast("Any", object.__new__(_WhatIf)), MagicMock()
    page._visit = SimpleNamespace(all=all_of, query={"cluster": "a", "like": like})  # noqa: SLF001
    page._inputs = {"cluster": SimpleNamespace(value="a"), "like": offered}  # noqa: SLF001
    await page._offer_nodes()  # noqa: SLF001
    assert offered.set_options.call_args.kwargs == {"value": like}


@pytest.mark.anyio
async def test_what_was_asked_last_is_answered() -> None:
    """Anyone who presses again before an answer is there sees that of the question that is present."""
    answers = {name: asyncio.get_running_loop().create_future() for name in ("a", "b")}
    page, shown = cast("Any", object.__new__(_WhatIf)), list[object]()

    async def ask(call: Any, _: object) -> object:  # noqa: ANN401  # a call of any answer
        return await answers[json.loads(call.content)["question"]["drain"][0]]

    page._progress = MagicMock()  # noqa: SLF001
    page._visit = SimpleNamespace(ask_when_compiled=ask, keep=lambda **_: None, words=Words())  # noqa: SLF001
    page._asked, page._button, page._wrong = Latest(page._visit), MagicMock(), MagicMock()  # noqa: SLF001
    page._file, page._applying = None, MagicMock()  # noqa: SLF001
    page._visit.may = lambda _: False  # noqa: SLF001
    page._show = shown.append  # noqa: SLF001
    asked_for = []
    for name in answers:
        page._inputs = {"nodes": SimpleNamespace(value=name)}  # noqa: SLF001
        asked_for.append(asyncio.create_task(page.ask()))
        await asyncio.sleep(0)
    for name in ("b", "a"):
        answers[name].set_result(name)
        await asyncio.sleep(0)
    await asyncio.gather(*asked_for)
    assert shown == ["b"]


@pytest.mark.parametrize(
    ("where", "field"),
    [
        ("question.jobs[2].resources.gpu_memory", "gpu_memory"),
        ("jobs.1.queue", "queue"),
        ("jobs.0.resources", "burst"),
        ("drain", "nodes"),
        ("question.add_nodes[0].count", "count"),
        ("question.add_nodes[0].kind", "like"),
        ("policy", "policy"),
        ("question.queues[0].limit.gpus", "limit"),
        ("queues.0.name", "changed_queue"),
        ("tenants.0.quotas.default.guarantee.gpus", "tenant_guarantee"),
        ("tenants.0.weight", "tenant_weight"),
        ("move_jobs.0.to", "moved"),
        ("window", "window"),
        ("", ""),
        ("elsewhere", ""),
    ],
)
def test_mistakes_are_reported_at_the_field_that_was_filled_in(where: str, field: str) -> None:
    """However the API names a place in a question, it leads to a field of the form, or to none."""
    assert field_of(where) == field


def test_waits_are_shown_before_and_after() -> None:
    """The tables have queues as a tree, tenants, and the jobs whose start changes most, in both languages."""
    was = WaitsOut(waiting=3, unknown=1, mean_s=1800, p50_s=1500, p95_s=None, gpu_share=0.25)
    rows = [
        WaitChangeOut(name=name, depth=depth, before=was, after=after)
        for name, depth, after in (
            ("all", 0, was),
            ("vision", 1, was.model_copy(update={"mean_s": 1260.0, "gpu_share": 0.5})),
        )
    ]
    shift = ShiftOut(id="a", name="train<1>", queue="vision", tenant="t", before=None, after="2030-01-01T00:00:00Z")
    waits = WaitChangesOut(
        window="2h", queues=rows, tenants=[], earlier=1, later=0, earlier_jobs=[shift], later_jobs=[]
    )
    for language, said in (
        ("en", ("Waits by queue", "30 min →", "21 min", "25 % →")),
        ("zh", ("各队列的等待时间", "未来 2h")),
    ):
        words = words_of(language)
        shown = written("whatif", words, **variables_of(answer([], []).model_copy(update={"waits": waits}), words))
        assert all(each in shown for each in said), shown
        assert "train&lt;1&gt;" in shown
        assert shown.count("<table") == 3


def test_jobs_flow_from_where_they_were_alone_to_where_they_would_be() -> None:
    """Of a job in two clusters counts what it would leave and where it would go, not where it stays."""
    flows = flows_of([move(["a/1", "b/1"], ["b/1", "c/1"]), move(["a/2"], ["c/2"]), move(["a/1"], ["a/2"])])
    assert flows == {("a", "c"): 2}


def test_boxes_tell_what_becomes_of_clusters_and_arrows_where_jobs_go() -> None:
    """A cluster without nodes is lost, one with more has grown; the widest arrow has most jobs."""
    clusters = [change("a", (2, 3), (0, 0)), change("b", (2, 1), (4, 4)), change("c", (2, 0), (2, 0))]
    drawn = draw(answer(clusters, [move(["a/1"], ["b/1"]), move(["a/1"], ["b/2"]), move(["a/1"], ["c/1"])]))
    assert [each.kind for each in drawn.boxes] == ["lost", "grown", "same"]
    assert [(each.target, each.jobs) for each in drawn.arrows] == [("b", 2), ("c", 1)]
    assert drawn.arrows[0].width > drawn.arrows[1].width
    assert [(round(each.before), round(each.after)) for each in drawn.boxes] == [(75, 0), (25, 50), (0, 0)]
    assert all(0 <= each.x < drawn.width and 0 <= each.y < drawn.height for each in drawn.boxes)


def test_of_very_many_clusters_those_that_change_are_drawn() -> None:
    """Anything that changes is never left out for what does not, and it is reported how many are."""
    clusters = [change(f"c{at}", (1, 0), (1, 0)) for at in range(MAX_BOXES + 40)]
    clusters[-1] = change("last", (1, 1), (0, 0))
    drawn = draw(answer(clusters, []))
    assert (len(drawn.boxes), drawn.left, drawn.boxes[-1].change.name) == (MAX_BOXES, 40, "last")


@pytest.mark.parametrize(("language", "said"), [("en", "2,000 jobs over 7d"), ("zh", "7d 内的 2,000 个作业")])
def test_a_replay_is_shown_before_and_after(language: str, said: str) -> None:
    """The answer has the measures, the waits of queues, and how many jobs count elsewhere; unknown ones are a dash."""
    side = TraceSideOut(
        placed=1990,
        rejected=10,
        gpu_allocated_pct=75.25,
        queue_wait_mean_s=4000,
        queue_wait_p50_s=60,
        queue_wait_p90_s=None,
        queue_wait_p99_s=None,
        bounded_slowdown_mean=3.21,
        makespan_s=700_000,
        jain_index=None,
        share_error=None,
        preempted=3,
        preempted_gpu_hours=1.5,
    )
    waits = WaitsOut(waiting=2000, unknown=0, mean_s=4000, p50_s=60, p95_s=None, gpu_share=0.5)
    queues = [WaitChangeOut(name="q", depth=0, before=waits, after=waits.model_copy(update={"mean_s": 30}))]
    after = side.model_copy(update={"queue_wait_mean_s": 30})
    trace = TraceOut(
        jobs=2000,
        skipped=7,
        defaulted=0,
        policy="bestfit",
        span="7d",
        before=side,
        after=after,
        queues=queues,
        tenants=[],
    )
    given = answer([change("a", (1, 1), (1, 1))], []).model_copy(update={"trace": trace})
    made = variables_of(given, words_of(language))
    rows = {each["label"]: (each["before"], each["after"]) for each in made["trace"]["rows"]}
    assert list(rows.values())[2:5] == (
        [("1 h 6 min", "30 s"), ("1 min", "1 min"), ("–", "–")]
        if language == "en"
        else [("1小时 6分钟", "30秒"), ("1分钟", "1分钟"), ("–", "–")]
    )
    html = written("whatif", words_of(language), **made)
    assert said in html
    assert html.count("<table") == 3
