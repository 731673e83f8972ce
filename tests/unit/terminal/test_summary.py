"""The fleet in three lines."""

from __future__ import annotations

from rich.text import Text

from seaway.terminal.summary import Summary, right_aligned
from tests.unit.terminal.bodies import cluster

STATES = {"pending": 1, "queued": 2, "preempted": 1, "scheduled": 1, "deploying": 2, "running": 7, "failed": 3}
COUNTS = {"states": STATES, "waiting": 4, "running": 10, "waiting_tasks": 103, "running_tasks": 10}
NONE: dict[str, dict[str, int]] = {"states": {}}


def test_clusters_and_what_is_free_are_summed_up() -> None:
    """By state, with what is wrong among them."""
    summary = Summary.of([cluster("a"), cluster("b", 4), cluster("c")], COUNTS)
    assert summary.fleet_line().plain == "clusters 3 up   8 nodes  4.4/16 GPUs"
    line = summary.capacity_line(160).plain
    assert "4/16 12 free" in line
    assert "240/1,280Gi 1,040Gi free" in line


def test_what_is_not_known_or_takes_no_work_is_not_free() -> None:
    """A cluster that does not answer adds to no sum, which is reported; one that is cordoned has nothing free."""
    cordon = {"cluster": "b", "node": "", "drain": False, "reason": "", "actor": "ada", "at": ""}
    clusters = [cluster("a", 4), {**cluster("b", 4), "cordon": cordon}, cluster("c", 4, state="lost")]
    summary = Summary.of(clusters, COUNTS)
    assert summary.fleet_line().plain.endswith(
        "2 up 1 lost   8 nodes  4.4/16 GPUs  without c, which does not answer (8 GPUs)"
    )
    alone = Summary.of(clusters[:1], COUNTS)
    assert (summary.free_milli, summary.free_memory_mib) == (alone.free_milli, alone.free_memory_mib)
    assert summary.milli.total == 2 * alone.milli.total
    lost = Summary.of([clusters[2]], COUNTS)
    assert (lost.nodes, lost.milli.total, lost.free_milli) == (0, 0, 0)


def test_unreachable_clusters_are_named_while_there_is_room() -> None:
    """Each is counted once, by its state; of many it is reported how many the sums leave out."""
    unreachable = [cluster(name, state="stale") for name in ("b", "c", "d")]
    two, three = (Summary.of([cluster("a"), *unreachable[:count]], NONE).fleet_line().plain for count in (2, 3))
    assert two.endswith("1 up 2 stale   2 nodes  1.1/4 GPUs  without b and c, which do not answer (8 GPUs)")
    assert three.endswith("1 up 3 stale   2 nodes  1.1/4 GPUs  without 3 that do not answer (12 GPUs)")


def test_the_address_is_cut_before_the_fleet() -> None:
    """They never touch; an address of which little could be read is left out, and only then is the fleet cut."""
    fleet, address = Text("clusters 2 up 1 stale"), Text("127.0.0.1:18931 · admin")
    assert right_aligned(fleet.copy(), address.copy(), 60).plain == f"{fleet}{' ' * 16}{address}"
    assert right_aligned(fleet.copy(), address.copy(), 40).plain == f"{fleet}  127.0.0.1:18931 …"
    assert right_aligned(fleet.copy(), address.copy(), 30).plain == fleet.plain
    assert right_aligned(fleet.copy(), address.copy(), 20).plain == "clusters 2 up 1 sta…"


def test_the_lines_fit_80_columns() -> None:
    """Also those of a large fleet."""
    counts = {**dict.fromkeys(COUNTS, 10**5), "states": dict.fromkeys(STATES, 10**4)}
    summary = Summary.of([cluster(f"c{at}", 500) for at in range(20)], counts)
    assert summary.capacity_line(78).cell_len <= 78
    assert summary.jobs_line().cell_len <= 78


def test_jobs_are_counted_by_cause_they_are_about() -> None:
    """Anything that waits, for whatever reason, is one figure; states without a job are left out."""
    summary = Summary.of([], COUNTS)
    assert summary.jobs_line().plain == "jobs 4 waiting (103 tasks)  10 running (3 starting)  3 failed  "
    assert summary.live == 14
    assert Summary.of([], NONE).jobs_line().plain.split() == ["jobs", "0", "waiting", "0", "running"]
