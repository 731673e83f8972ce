"""Pieces of the pages of jobs, as they are written."""

from __future__ import annotations

import pytest

from seaway.web.fragment import written
from seaway.web.words import Words, words_of
from seaway.wire.job_out import (
    AttemptOut,
    JobOut,
    ObservedContainer,
    ObservedReplica,
    ObservedWorkload,
    PlacementOut,
    SliceOut,
)


def placed(replicas: int, core_milli: int = 1000) -> AttemptOut:
    """Make an attempt of so many replicas, each with a slice."""
    held = SliceOut(uuid="GPU-1", memory_mib=1024, core_milli=core_milli)
    places = [PlacementOut(replica=at, cluster="a", node=f"n{at}", slices=[held]) for at in range(replicas)]
    return AttemptOut(
        number=1,
        state="running",
        policy="bestfit",
        placement_reason="",
        reason="",
        created_at="",
        running_at=None,
        ended_at=None,
        placements=places,
    )


def places(latest: AttemptOut, seen: dict[int, tuple[ObservedWorkload, ObservedReplica]], words: Words) -> str:
    """Write where a job runs."""
    job = JobOut.model_construct(replicas=len(latest.placements))
    return written("job_places", words, job=job, latest=latest, earlier=[], addresses=[], seen=seen, first=0, most=50)


def test_a_replica_that_no_one_reports_has_a_place_and_nothing_else_is_known() -> None:
    """While its cluster is lost, dashes stand for its state, its pod and its containers."""
    container = ObservedContainer(name="main", ports=[80], devices=[])
    shown = ObservedReplica(replica=0, phase="running", node="n0", pod="s/p", containers=[container], reason="")
    copy = ObservedWorkload(cluster="a", phase="running", address="", reason="", replicas=[shown])
    some = places(placed(2), {0: (copy, shown)}, Words())
    assert (some.count("–"), "main" in some) == (3, True)
    none = places(placed(2), {}, Words())
    assert (none.count("–"), "n0" in none, "n1" in none) == (6, True, True)


@pytest.mark.parametrize(
    ("language", "core_milli", "said"),
    [("en", 1000, "· 1 core<"), ("en", 2000, "· 2 cores<"), ("en", 500, "· 0.5 cores<"), ("zh", 1000, "· 1 算力<")],
)
def test_one_core_is_a_core(language: str, core_milli: int, said: str) -> None:
    """One is reported of one, and many of all else."""
    assert said in places(placed(1, core_milli), {}, words_of(language))


@pytest.mark.parametrize(("total", "said"), [(0, ">0 jobs<"), (1, ">1 job<"), (1200, ">1,200 jobs<")])
def test_one_job_is_a_job(total: int, said: str) -> None:
    """A list of one says so."""
    assert said in written("jobs_pager", Words(), total=total, newest=None, older="")
