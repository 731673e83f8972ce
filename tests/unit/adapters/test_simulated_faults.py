"""Faults in simulated clusters, injected and random."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from seaway.adapters.simulated.faults import NO_FAULTS, Faults
from seaway.adapters.simulated.journal import Entry, journal_path, read_journal
from seaway.adapters.simulated.messages import KINDS, FaultRequest, cause, heal
from seaway.domain.deployment import WorkloadPhase
from seaway.domain.errors import RejectedError, UnavailableError
from tests.unit.adapters.simulated_fleet import START_DELAY_S, World, deployment, removal, uuid, world


def running(*places: int) -> World:
    """Create a cluster with job ``a`` running on some nodes."""
    alpha = world()
    alpha.send(deployment(places=places or (0,)))
    alpha.clock.advance_s(START_DELAY_S)
    assert alpha.phase() is WorkloadPhase.RUNNING
    return alpha


def test_a_node_that_fails_takes_its_copies_along() -> None:
    """The replicas there fail with the node's name, others of the same workload stop, and the node is not ready."""
    alpha = running(1, 0)
    cursor = alpha.cluster.changes("", 0).cursor
    alpha.cluster.fail_node("node-0", for_s=60)
    reported = alpha.cluster.changes(cursor, 0)
    copy = reported.workloads[0]
    assert (copy.phase, copy.reason) == (WorkloadPhase.FAILED, "node node-0 failed")
    assert [each.reason for each in copy.replicas] == ["stopped, for replica 1 failed", "node node-0 failed"]
    assert reported.inventory is not None
    assert [each.ready for each in reported.inventory.nodes] == [False, True, True]
    assert "not ready" in alpha.send(deployment("b"))[0].reason
    alpha.clock.advance_s(60)
    assert alpha.send(deployment("b"))[0].done


def test_an_earlier_end_does_not_heal_a_later_fault() -> None:
    """A node that recovered and failed again is ready when the second fault ends."""
    alpha = world()
    alpha.cluster.fail_node("node-0", for_s=10)
    alpha.cluster.heal_node("node-0")
    alpha.cluster.fail_node("node-0", for_s=100)
    alpha.clock.advance_s(10)
    assert alpha.send(deployment())[0].refused
    alpha.clock.advance_s(90)
    assert alpha.send(deployment())[0].done


def test_a_device_that_fails_takes_only_its_copies_along() -> None:
    """Workloads with a slice of it fail, the rest of the node continues, and it is reported unhealthy for the time."""
    alpha = running()
    alpha.cluster.fail_device(uuid(0, 1))
    assert alpha.phase() is WorkloadPhase.RUNNING
    alpha.cluster.fail_device(uuid())
    assert alpha.workloads()["a"].reason == f"device {uuid()} failed"
    inventory = alpha.cluster.changes("", 0).inventory
    assert inventory is not None
    assert [each.healthy for each in inventory.nodes[0].devices] == [False, False]
    assert "unhealthy" in alpha.send(deployment("b"))[0].reason
    alpha.cluster.heal_device(uuid())
    assert alpha.send(deployment("b"))[0].done


def test_what_runs_goes_on_while_no_one_can_ask() -> None:
    """An outage stops no workload, and ends by itself if it has a duration."""
    alpha = world()
    alpha.send(deployment(expected_duration_s=10))
    alpha.cluster.disconnect(for_s=60)
    for call in (lambda: alpha.send(deployment()), alpha.workloads, lambda: alpha.cluster.logs("sw-a-1", 0, 1)):
        with pytest.raises(UnavailableError, match="cannot be reached"):
            call()
    alpha.clock.advance_s(60)
    assert alpha.phase() is WorkloadPhase.SUCCEEDED


def test_a_hang_ends_with_the_timeout() -> None:
    """A hanging call is not carried out, and the error has the time without an answer."""
    alpha = world()
    alpha.cluster.disconnect(hangs=True)
    with pytest.raises(UnavailableError, match="no answer within 5 s"):
        alpha.send(deployment())
    alpha.cluster.reconnect()
    assert alpha.phase() is WorkloadPhase.GONE


def test_orders_hold_for_what_comes_after() -> None:
    """Slow starts, rejections and failing starts apply to later deployments, until they are ended."""
    alpha = world()
    alpha.cluster.slow_down(100)
    alpha.send(deployment("slow"))
    alpha.cluster.slow_down(None)
    alpha.cluster.refuse("maintenance")
    assert alpha.send(deployment("refused"))[0].reason == "alpha: maintenance"
    alpha.cluster.refuse("")
    alpha.cluster.fail_starts("image pull error")
    alpha.send(deployment("broken"))
    alpha.cluster.fail_starts("")
    alpha.send(deployment("good"))
    assert alpha.phase("broken") is WorkloadPhase.STARTING
    alpha.clock.advance_s(START_DELAY_S)
    assert alpha.phase("slow") is WorkloadPhase.STARTING
    assert alpha.workloads()["broken"].reason == "image pull error"
    assert alpha.phase("good") is WorkloadPhase.RUNNING


def test_healing_all_ends_every_order() -> None:
    """Afterwards the cluster answers, with healthy nodes and devices; failed workloads stay failed."""
    alpha = running()
    for trouble in (
        FaultRequest("device", uuid(1)),
        FaultRequest("node", "node-0"),
        FaultRequest("slow", "9"),
        FaultRequest("refuse"),
        FaultRequest("start"),
        FaultRequest("cut"),
    ):
        cause(alpha.cluster, trouble)
    heal(alpha.cluster, "all")
    assert alpha.phase() is WorkloadPhase.FAILED
    inventory = alpha.cluster.changes("", 0).inventory
    assert inventory is not None
    assert all(each.ready and all(one.healthy for one in each.devices) for each in inventory.nodes)
    alpha.send(deployment("b", places=(0, 1)))
    alpha.clock.advance_s(START_DELAY_S)
    assert alpha.phase("b") is WorkloadPhase.RUNNING


@pytest.mark.parametrize("kind", ["copy", "vanish"])
def test_copies_are_troubled_by_name(kind: str) -> None:
    """A workload that fails or vanishes is named like its objects, and that cannot be undone."""
    alpha = running()
    cause(alpha.cluster, FaultRequest(kind, "sw-a-1"))
    assert alpha.phase() is (WorkloadPhase.FAILED if kind == "copy" else WorkloadPhase.GONE)
    with pytest.raises(RejectedError, match="over as soon as"):
        heal(alpha.cluster, kind)


@pytest.mark.parametrize(
    ("trouble", "says"),
    [
        (FaultRequest("flood"), "fault 'flood' not found; available: node"),
        (FaultRequest("node"), "say which: node needs NODE"),
        (FaultRequest("node", "x"), "no node 'x'"),
        (FaultRequest("device", "x"), "no device 'x'"),
        (FaultRequest("copy", "sw-x-1"), "no workload of job 'x', attempt 1"),
        (FaultRequest("slow", "fast"), "'fast' is not a number of seconds"),
        (FaultRequest("node", "node-0", float("nan")), "nan is not a number of seconds"),
    ],
)
def test_orders_that_cannot_be_are_rejected(trouble: FaultRequest, says: str) -> None:
    """A missing object cannot fail, and the error lists the existing ones."""
    with pytest.raises(RejectedError, match=says):
        cause(world().cluster, trouble)


def test_every_kind_says_what_it_does() -> None:
    """The list of faults describes each."""
    assert all(kind.says for kind in KINDS.values())


EVERYTHING = Faults(
    refused=0.1,
    slow=0.2,
    start_fails=0.1,
    run_fails=0.2,
    vanishes=0.2,
    request_lost=0.1,
    answer_lost=0.1,
    hangs=0.05,
    node_failures_per_h=2,
    device_failures_per_h=2,
    outages_per_h=5,
)


def history(seed: int, data: Path, step_s: float = 1) -> tuple[list[Entry], list[str]]:
    """Send jobs to a cluster with all faults; return its journal, and the observed changes.

    Parameters
    ----------
    step_s
        Interval of reads between commands, which are sent every 4 seconds.
    """
    alpha = world(replace(EVERYTHING, seed=seed), data)
    received = []
    for number in range(300):
        try:
            commands = (
                deployment(f"j{number}", places=(number % 3,), expected_duration_s=30),
                removal(f"j{number - 20}"),
            )
            received.append(str(alpha.send(*commands)))
        except UnavailableError as error:
            received.append(str(error))
        for _ in range(round(4 / step_s)):
            alpha.clock.advance_s(step_s)
            alpha.cluster.slow_down(None)  # makes it read the clock
    alpha.backends.close()
    return read_journal(journal_path(data, "alpha")), received


def test_one_seed_gives_one_history(tmp_path: Path) -> None:
    """The same seed, clock and calls repeat everything, however often a user reads."""
    first = history(1, tmp_path / "first")
    assert first == history(1, tmp_path / "again")
    assert first == history(1, tmp_path / "looked-at-more", step_s=0.25)
    assert first != history(2, tmp_path / "other")
    kinds = Counter(entry.kind for entry in first[0])
    assert {"created", "refused", "started", "ended", "removed", "node", "device"} <= kinds.keys()


def test_what_was_refused_by_chance_is_refused_again() -> None:
    """The random choice depends on the name of a workload, not on the number of the call."""
    alpha = world(Faults(refused=0.5))
    first = [alpha.send(deployment(f"j{number}"))[0].refused for number in range(10)]
    alpha.send(*(removal(f"j{number}") for number in range(10)))
    assert [alpha.send(deployment(f"j{number}"))[0].refused for number in reversed(range(10))] == first[::-1]
    assert len(set(first)) == 2


def test_a_lost_answer_was_carried_out() -> None:
    """A lost request changes nothing; after a lost answer the change is made."""
    for faults, phase in (
        (Faults(request_lost=1), WorkloadPhase.GONE),
        (Faults(answer_lost=1), WorkloadPhase.STARTING),
    ):
        alpha = world(faults)
        with pytest.raises(UnavailableError, match="was lost"):
            alpha.send(deployment())
        if faults.answer_lost:
            assert alpha.phase() is phase


@pytest.mark.parametrize(("name", "value"), [("refused", 1.5), ("slow_s", -1), ("hangs", float("nan"))])
def test_chances_are_checked(name: str, value: float) -> None:
    """A probability above one, a negative time and NaN are rejected by name."""
    with pytest.raises(RejectedError, match=f"^{name}: is "):
        replace(NO_FAULTS, **{name: value})  # type: ignore[arg-type]  # the seed is not among the names
