"""The journal of a simulated cluster, and its audit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from seaway.adapters.simulated.backends import SimulatedBackends
from seaway.adapters.simulated.faults import Options
from seaway.adapters.simulated.journal import Created, Ended, Entry, Journal, Refused, journal_path, read_journal
from seaway.adapters.simulated.ledger import read_journals, violations
from seaway.domain.deployment import Deployment, WorkloadPhase
from seaway.domain.errors import RejectedError, UnavailableError
from seaway.domain.placement import DeviceSlice
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.unit.adapters.simulated_fleet import (
    START_DELAY_S,
    WITH_FILES,
    World,
    deployment,
    removal,
    small,
    uuid,
    world,
)

WHOLE = DeviceSlice(uuid(), 81_920, 1_000)


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    """Close the journals that a test left open."""
    yield
    while WITH_FILES:
        WITH_FILES.pop().backends.close()


def again(alpha: World, data: Path) -> World:
    """Restart the cluster's process, as after a kill; its clock has advanced."""
    return world(data=data, clock=alpha.clock)


def elastic(job: str) -> Deployment:
    """Create a deployment of an elastic job with a replica on each of two nodes."""
    made = deployment(job, places=(0, 1))
    return replace(made, spec=replace(made.spec, min_replicas=1, max_replicas=2))


def test_a_cluster_that_starts_again_is_as_it_was(tmp_path: Path) -> None:
    """Workloads in every phase, failed nodes and devices are restored, and continue as they would have."""
    alpha = world(data=tmp_path)
    alpha.send(deployment("done", expected_duration_s=1), deployment("lost", places=(1,)), deployment("out"))
    alpha.clock.advance_s(START_DELAY_S + 1)
    alpha.send(removal("out"), deployment("starting"), deployment("runs", expected_duration_s=600), elastic("shrinks"))
    alpha.cluster.fail_node("node-1", for_s=100)
    alpha.cluster.fail_device(uuid(2))
    before = alpha.cluster.changes("", 0)
    alpha = again(alpha, tmp_path)
    after = alpha.cluster.changes("", 0)
    assert (after.workloads, after.inventory) == (before.workloads, before.inventory)
    assert alpha.phase("lost") is WorkloadPhase.FAILED
    phases = [each.phase for each in alpha.workloads()["shrinks"].replicas]
    assert phases == [WorkloadPhase.STARTING, WorkloadPhase.FAILED]
    alpha.clock.advance_s(START_DELAY_S)
    assert alpha.phase("runs") is WorkloadPhase.RUNNING
    alpha = again(alpha, tmp_path)
    assert alpha.send(deployment("late", places=(1,)))[0].refused
    alpha.clock.advance_s(600)
    alpha = again(alpha, tmp_path)
    assert alpha.phase("runs") is WorkloadPhase.SUCCEEDED
    assert alpha.send(deployment("late", places=(1,)))[0].done


def test_what_is_taken_stays_taken(tmp_path: Path) -> None:
    """A restarted cluster allocates nothing that a workload holds, and everything else."""
    alpha = world(data=tmp_path)
    alpha.send(deployment("a", WHOLE), deployment("b", DeviceSlice(uuid(1), 81_920, 1_000), places=(1,)), removal("b"))
    alpha = again(alpha, tmp_path)
    assert alpha.send(deployment("c"))[0].refused
    assert alpha.send(deployment("c", places=(1,)))[0].done


def test_a_cursor_from_before_brings_everything(tmp_path: Path) -> None:
    """A restarted cluster does not know what it reported before."""
    alpha = world(data=tmp_path)
    cursor = alpha.cluster.changes("", 0).cursor
    assert again(alpha, tmp_path).cluster.changes(cursor, 0).complete


def test_time_does_not_go_back_in_a_journal(tmp_path: Path) -> None:
    """If the time of day was set back between two starts, entries continue from the last."""
    alpha = world(data=tmp_path)
    alpha.send(deployment())
    alpha.clock.jump(-(10**12))
    alpha = again(alpha, tmp_path)
    alpha.send(removal())
    times = [entry.at_ns for entry in read_journal(journal_path(tmp_path, "alpha"))]
    assert times == sorted(times)


@pytest.mark.parametrize("cut", [1, 20])
def test_a_torn_last_line_is_dropped(tmp_path: Path, cut: int) -> None:
    """An incomplete last line is dropped, and the next entry has a line of its own."""
    alpha = world(data=tmp_path)
    alpha.send(deployment("a"))
    alpha.send(deployment("b"))
    path = journal_path(tmp_path, "alpha")
    path.write_bytes(path.read_bytes()[:-cut])
    alpha = again(alpha, tmp_path)
    assert set(alpha.workloads()) == {"a"}
    alpha.send(deployment("c"))
    assert set(again(alpha, tmp_path).workloads()) == {"a", "c"}


def test_a_line_that_is_no_entry_is_named(tmp_path: Path) -> None:
    """A damaged journal is an error."""
    alpha = world(data=tmp_path)
    alpha.send(deployment("a"))
    path = journal_path(tmp_path, "alpha")
    path.write_bytes(b"{}\n" + path.read_bytes())
    with pytest.raises(RejectedError, match=r"alpha\.jsonl:1: no entry"):
        again(alpha, tmp_path)


def test_a_journal_of_another_fleet_is_refused(tmp_path: Path) -> None:
    """Workloads on missing nodes cannot be restored."""
    alpha = world(data=tmp_path)
    alpha.send(deployment("a"))
    with pytest.raises(RejectedError, match="another data folder"):
        SimulatedBackends(fleet(cluster(node(), name="alpha")), alpha.clock, Options(), tmp_path)


def test_a_long_journal_is_shortened_at_the_start(tmp_path: Path) -> None:
    """Finished and removed workloads are left out, and the cluster is as before."""
    alpha = world(data=tmp_path)
    for number in range(50):
        alpha.send(deployment(f"j{number}", expected_duration_s=1), removal(f"j{number}"))
    alpha.send(deployment("done", expected_duration_s=1), deployment("fails"), deployment("runs", places=(1,)))
    alpha.send(elastic("shrinks"))
    alpha.clock.advance_s(START_DELAY_S + 1)
    alpha.cluster.fail_node("node-0")
    alpha.cluster.fail_device(uuid(2))
    before = alpha.cluster.changes("", 0)
    path = journal_path(tmp_path, "alpha")
    long = len(read_journal(path))
    for _ in range(2):
        short = SimulatedBackends(small(), alpha.clock, Options(waits=False, journal_size=50), tmp_path)
        after = short.cluster("alpha").changes("", 0)
        assert (after.workloads, after.inventory) == (before.workloads, before.inventory)
        short.close()
    assert long > 100
    assert len(read_journal(path)) < 15


def test_a_cluster_name_is_no_path(tmp_path: Path) -> None:
    """For any cluster name, its journal is in the data folder."""
    assert journal_path(tmp_path, "../north/1").parent == tmp_path


def test_a_journal_that_cannot_be_opened_is_unavailable(tmp_path: Path) -> None:
    """The error names the file that cannot be opened."""
    with pytest.raises(UnavailableError, match="journal"):
        Journal(tmp_path)


def test_every_create_is_written_before_it_is_answered(tmp_path: Path) -> None:
    """An acknowledged create or rejection is in the journal with all its resources."""
    alpha = world(data=tmp_path)
    alpha.send(deployment("a", WHOLE), deployment("b"))
    _, made, refused = read_journal(journal_path(tmp_path, "alpha"))
    assert isinstance(made, Created)
    assert made.placements == deployment("a", WHOLE).placements
    assert isinstance(refused, Refused)
    assert refused.job_id == "b"


def made(job: str, attempt: int, at_ns: int, *slices: DeviceSlice) -> Created:
    """Create an entry of a cluster with wrong accounting."""
    placed = deployment(job, *slices).placements
    return Created(at_ns, job, attempt, job, "default", "", 1_000, 1_024, placed, at_ns, None)


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ([made("a", 1, 1), Ended(2, "a", 1, succeeded=False), made("a", 2, 2)], None),
        ([made("a", 1, 1, WHOLE), Ended(2, "a", 1, succeeded=True), made("b", 1, 2, WHOLE)], None),
        ([made("a", 1, 1), made("a", 2, 2)], "attempt 2 began in cluster alpha while attempt 1 was alive"),
        ([made("a", 1, 1), made("a", 1, 2)], "created twice"),
        ([made("a", 1, 1, WHOLE), made("b", 1, 2)], "job b, attempt 1 was created, but device"),
    ],
)
def test_the_audit_finds_what_was_broken(entries: Sequence[Entry], says: str | None) -> None:
    """It finds parallel attempts, duplicate workloads and devices over capacity, and nothing else."""
    found = violations(small(), {"alpha": entries})
    assert bool(found) == bool(says)
    if says:
        assert says in " ".join(found)


def test_the_audit_looks_across_clusters() -> None:
    """Attempts that live in parallel in two clusters are found; parts of one attempt are not."""
    two = fleet(*(cluster(node(gpu(), gpu()), name=name) for name in ("alpha", "beta")))
    first, second = made("a", 1, 1), made("a", 2, 2)
    there = second.placements[0]
    beta = Created(2, "a", 2, "a", "", "", 0, 0, (type(there)("a", 0, "beta", "node-0"),), 2, None)
    assert violations(two, {"alpha": [first], "beta": [beta]}) == [
        "job a: attempt 2 began in cluster beta while attempt 1 was alive in cluster alpha"
    ]
    assert not violations(two, {"alpha": [second], "beta": [beta]})


def test_a_simulated_cluster_passes_the_audit(tmp_path: Path) -> None:
    """The cluster's accounting and the audit agree."""
    alpha = world(data=tmp_path)
    for number in range(200):
        alpha.send(deployment(f"j{number}", places=(number % 3,), expected_duration_s=5))
        alpha.clock.advance_s(1)
    alpha.backends.close()
    assert violations(small(), read_journals(small(), tmp_path)) == []
