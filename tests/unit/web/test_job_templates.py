"""Pieces of the pages of jobs, as they are written."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from seaway.domain.job_state import JobState
from seaway.domain.reasons import Reason
from seaway.web.fragment import written
from seaway.web.pages.jobs.gpu_use import uses_of
from seaway.web.reasons import by_node
from seaway.web.words import Words, words_of
from seaway.wire.explanations import DryRunOut, ExplanationOut, ReasonOut
from seaway.wire.fleet import UsedOut
from seaway.wire.job_out import (
    AttemptOut,
    EndpointOut,
    JobOut,
    ObservedContainer,
    ObservedReplica,
    ObservedWorkload,
    PlacementOut,
    SliceOut,
    SliceUseOut,
)
from seaway.wire.message import CodedOut, CodeOut, coded, with_message
from tests.fakes import records as make


def placed(replicas: int, core_milli: int = 1000) -> AttemptOut:
    """Make an attempt of so many replicas, each with a slice."""
    held = SliceOut(uuid="GPU-1", memory_mib=1024, core_milli=core_milli)
    places = [PlacementOut(replica=at, cluster="a", node=f"n{at}", slices=[held]) for at in range(replicas)]
    return AttemptOut(
        number=1,
        state="running",
        policy="bestfit",
        placement_reason=None,
        message="",
        reason=CodeOut(code="", params={}),
        created_at="",
        running_at=None,
        ended_at=None,
        placements=places,
    )


def places(latest: AttemptOut, seen: dict[int, tuple[ObservedWorkload, ObservedReplica]], words: Words) -> str:
    """Write where a job runs."""
    job = JobOut.model_construct(replicas=len(latest.placements))
    others: dict[str, Any] = {"earlier": [], "endpoints": [], "drift": [], "topology": [], "spread": False}
    return written("job_places", words, job=job, latest=latest, seen=seen, first=0, most=50, **others)


def test_a_replica_that_no_one_reports_has_a_place_and_nothing_else_is_known() -> None:
    """While its cluster is lost, dashes stand for its state, its pod and its containers."""
    container = ObservedContainer(name="main", ports=[80], devices=[])
    none_given: dict[str, Any] = {"phase": "running", "message": "", "reason": CodeOut(code="", params={})}
    shown = ObservedReplica(replica=0, node="n0", pod="s/p", containers=[container], **none_given)
    copy = ObservedWorkload(cluster="a", address="", endpoints=[], drift=[], replicas=[shown], **none_given)
    some = places(placed(2), {0: (copy, shown)}, Words())
    assert (some.count("–"), "main" in some) == (3, True)
    none = places(placed(2), {}, Words())
    assert (none.count("–"), "n0" in none, "n1" in none) == (6, True, True)


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", ("anywhere", "no Gateway has accepted it yet", "services/sw was deleted")),
        ("zh", ("集群外部", "尚无 Gateway 接受它", "services/sw 已被删除")),
    ],
)
def test_addresses_say_who_reaches_them(language: str, said: tuple[str, ...]) -> None:
    """A URL for clients outside is a link; an address that does not exist yet has its reason; changes are listed."""
    url, deleted = "https://chat.example.com", coded(Reason("object_deleted", name="services/sw"))
    address: dict[str, Any] = {"cluster": "a", "port": 80}
    endpoints = [
        EndpointOut.model_validate({**address, "address": url, "reach": "outside", **with_message("")}),
        EndpointOut.model_validate(
            {**address, "address": "", "reach": "none", **with_message(Reason("route_not_accepted"))}
        ),
    ]
    job, drift = JobOut.model_construct(replicas=1), [("a", CodedOut.model_validate(deleted))]
    parts: dict[str, Any] = {"earlier": [], "endpoints": endpoints, "drift": drift, "seen": {}, "first": 0, "most": 50}
    parts |= {"topology": [], "spread": False}
    shown = written("job_places", words_of(language), job=job, latest=placed(1), **parts)
    assert f'href="{url}"' in shown
    assert all(each in shown for each in said)


@pytest.mark.parametrize(
    ("language", "core_milli", "said"),
    [("en", 1000, "· 100 % of cores<"), ("en", 300, "· 30 % of cores<"), ("zh", 300, "· 30 % 算力<")],
)
def test_cores_of_a_slice_are_a_share_of_its_gpu(language: str, core_milli: int, said: str) -> None:
    """Cores of GPUs are percentages, as on the pages of nodes and in specs."""
    assert said in places(placed(1, core_milli), {}, words_of(language))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_head_of_a_job_is_announced_as_a_whole(language: str) -> None:
    """A change of the state is read with the name and the reason, and other facts of the head are not."""
    job = JobOut.of(make.job_record(spec=make.spec("train"), state=JobState.QUEUED, reason=Reason("no_room")))
    words = words_of(language)
    shown = written("job_head", words, job=job, gpus="", cost=None, over=False, gone=False)
    (live,) = re.findall('<div role="status" aria-atomic="true">(.*?)<dl', shown, re.DOTALL)
    assert all(each in live for each in ("train", words("queued"), words("no node has room for it now")))
    assert shown.count('role="status"') == 1


def test_equal_devices_of_a_replica_are_one_line() -> None:
    """Eight whole GPUs are a count with their figures, which unfolds to their UUIDs. Unequal ones have a line each."""
    held = [SliceOut(uuid=f"GPU-{at}", memory_mib=81_920, core_milli=1000) for at in range(8)]
    other = SliceOut(uuid="GPU-8", memory_mib=40_960, core_milli=1000)
    place = PlacementOut(replica=0, cluster="a", node="n0", slices=[*held, other])
    shown = places(placed(1).model_copy(update={"placements": [place]}), {}, Words())
    (fold,) = re.findall("<details.*?</details>", shown, re.DOTALL)
    assert "8 × " in fold.partition("</summary>")[0]
    assert [each in fold for each in ("GPU-0", "GPU-7", "GPU-8")] == [True, True, False]
    assert shown.count("GPU-8") == 2, "its text and its title"


def test_measured_use_has_a_line_for_each_node() -> None:
    """Cores are a mean over its devices, memory is their sum. A device without a measurement makes both unknown."""
    used = UsedOut.model_construct(core_milli=200, memory_bytes=28 << 30)
    slices = [
        SliceUseOut(
            replica=at // 2,
            cluster="a",
            node=f"n{at // 4}",
            uuid=f"GPU-{at}",
            memory_mib=32 << 10,
            core_milli=1000,
            used=used,
        )
        for at in range(5)
    ]
    first, last = uses_of(slices)
    assert (first.node, first.replicas, first.uuids[-1], last.uuids) == ("n0", "0-1", "GPU-3", ("GPU-4",))
    assert (first.core_milli, first.core_milli_reserved, first.memory_mib) == (800, 4000, 4 * 28 << 10)
    shown = written("job_use", Words(), nodes=[first, last], more=0)
    assert [shown.count(each) for each in ("20 % of 100 %", "112 GiB of 128 GiB", "4 devices")] == [2, 1, 1]
    unknown = uses_of([slices[0], slices[1].model_copy(update={"used": None})])
    assert [(each.core_milli, each.memory_mib) for each in unknown] == [(None, None)]


@pytest.mark.parametrize(
    ("language", "said", "now"),
    [
        ("en", "Decided at {}. The figures are of that time.", "The fleet now, as if"),
        ("zh", "决策时间 {}", "作业自身占用视为空闲"),
    ],
)
def test_a_decision_has_its_time(language: str, said: str, now: str) -> None:
    """Figures of a decision have its time, and those of now say that they are, in both languages."""
    decided_at = "2026-11-26T21:00:00Z"
    why = CodedOut(code="", params={}, message="bestfit chose a/n0")
    words, latest = words_of(language), placed(1).model_copy(update={"created_at": decided_at, "placement_reason": why})
    time = '<time datetime="2026-11-26T21:00:00Z" data-form="second">2026-11-26 21:00:00 UTC</time>'
    assert said.format(time) in places(latest, {}, words)
    explanation = ExplanationOut(nodes=1, filtered=[], candidates=[], remedies=[], links=[], data=None)
    reason = ReasonOut(
        id="j",
        name="train",
        state="running",
        message="running: runs on a/n0",
        reason=CodeOut(code="placed", params={}),
        position=0,
        ahead=0,
        placements=latest.placements,
        placement_reason=why,
        explanation=explanation,
        decided_at=decided_at,
    )
    page = written("job_why", words, reason=reason, remedies=[], clusters=[], plugins=[], settable=False)
    assert said.format(time) in page
    assert now in page


@pytest.mark.parametrize(
    ("language", "said"), [("en", "All replicas: 3.00 per hour in total"), ("zh", "所有副本: 每小时合计 3.00")]
)
def test_a_trial_shows_the_nodes_and_the_price_of_all_replicas(language: str, said: str) -> None:
    """A job of several replicas has a table with their nodes, and their total price; one replica has none."""
    explanation = ExplanationOut(nodes=3, filtered=[], candidates=[], remedies=[], links=[], data=None)
    placements = [PlacementOut(replica=at, cluster="a", node="n0" if at < 3 else "n1", slices=[]) for at in range(4)]
    for replicas in (4, 1):
        trial = DryRunOut(
            policy="seaway",
            fits=True,
            message="so it is",
            reason=CodeOut(code="", params={}),
            candidates=[],
            placements=placements[:replicas],
            price_per_hour="3.00",
            explanation=explanation,
            manifests=[],
        )
        around = {
            "elsewhere": [],
            "wrong": False,
            "empty": False,
            "trouble": "",
            "remedies": [],
            "clusters": [],
            "asks": True,
        }
        page = written("trial", words_of(language), trial=trial, most_room=9, nodes=by_node(trial.placements), **around)
        assert (said in page, "0-2" in page) == (replicas > 1, replicas > 1)


def test_tables_fold_on_phones() -> None:
    """Each table but the matrix of links becomes cards, where cells have labels; up to three head a card."""
    for file in Path(str(files("seaway.web") / "templates")).glob("*.html"):
        text = file.read_text(encoding="utf-8")
        for table in re.findall(r"<table.*?</table>", text, re.DOTALL):
            if 'class="matrix' in table:
                continue
            assert re.match(r'<table class="rows stack\b', table), file.name
            for row in re.findall(r"<tr\b.*?</tr>", table.partition("</thead>")[2], re.DOTALL):
                cells = re.findall(r"<td\b[^>]*>", row)
                bare = [each for each in cells if not re.search("data-label|colspan|acts|picks", each)]
                assert len(bare) <= 3, (file.name, row)


@pytest.mark.parametrize(("total", "said"), [(0, ">0 jobs<"), (1, ">1 job<"), (1200, ">1,200 jobs<")])
def test_one_job_is_a_job(total: int, said: str) -> None:
    """A list of one says so."""
    assert said in written("jobs_pager", Words(), total=total, newest=None, older="")


def test_a_failure_has_its_exit_code_and_the_last_lines() -> None:
    """Lines of the log are text, and without a log the page says why there is none."""
    job, words = JobOut.model_construct(id="j"), words_of("en")
    given: dict[str, Any] = {"job": job, "replica": 3, "exit_code": 2}
    shown = written("job_failure", words, lines=["Traceback", "<b>KeyError</b>"], note="", **given)
    assert "Exit code: 2" in shown
    assert "Traceback\n&lt;b&gt;KeyError&lt;/b&gt;" in shown
    assert "tab=logs&amp;replica=3" in shown
    without = written("job_failure", words, lines=[], note="the cluster is lost", **{**given, "exit_code": None})
    assert "Its log is not available. the cluster is lost" in without
    assert "Exit code" not in without
