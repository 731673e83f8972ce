from __future__ import annotations

from dataclasses import replace

from seaway.application.control.command_queue import MAX_RETRY_NS, TOGETHER, CommandQueue, retry_ns
from seaway.application.control.dispatch import InPlace
from seaway.application.control.reports import Answered, Unreachable
from seaway.application.ports.backend import Answer, Command, Removal
from seaway.application.records import PendingCommand, Verb
from seaway.domain.deployment import Deployment
from seaway.testing.clocks import VirtualClock
from tests.unit.application.scene import scene, spec

DONE = Answer(done=True)
LATER = Answer(done=False, reason="busy")
REFUSED = Answer(done=False, refused=True, reason="no")


def create(job: str = "a", attempt: int = 1) -> tuple[PendingCommand, Command]:
    """Create a create command."""
    return PendingCommand(job, attempt, "alpha", Verb.CREATE, 0), Deployment(job, attempt, "alpha", spec(), ())


def delete(job: str = "a", attempt: int = 1) -> tuple[PendingCommand, Command]:
    """Create its removal command."""
    return PendingCommand(job, attempt, "alpha", Verb.DELETE, 1), Removal(job, attempt, "alpha")


def verbs(reported: list[tuple[PendingCommand, Command]]) -> list[tuple[str, Verb]]:
    """Return the commands by job."""
    return [(pending_commands.job_id, pending_commands.verb) for pending_commands, _ in reported]


def test_only_the_latest_is_informed_of_an_attempt() -> None:
    """A removal replaces a create command that is not sent yet."""
    box = CommandQueue()
    box.give(*create())
    box.give(*create("b"))
    box.give(*delete())
    assert verbs(box.take(0)) == [("b", Verb.CREATE), ("a", Verb.DELETE)]
    assert not box.take(0)


def test_only_so_much_is_reported_at_once() -> None:
    """The number of commands in flight is limited; others are sent after answers."""
    box = CommandQueue()
    for at in range(TOGETHER + 3):
        box.give(*create(str(at)))
    reported = box.take(0)
    assert len(reported) == TOGETHER
    assert (box.take(0), box.next_due_ns()) == ([], None)
    box.settle(reported[:2], [DONE] * 2, 0)
    assert (len(box.take(0)), len(box)) == (2, 1)


def test_of_an_attempt_one_thing_is_reported_at_a_time() -> None:
    """A removal waits for the answer to the create command in flight, so that it cannot overtake it."""
    box = CommandQueue()
    box.give(*create())
    box.give(*create("b"))
    reported = box.take(0)
    box.drop(reported[0][0])
    box.give(*delete())
    assert (box.take(0), box.next_due_ns()) == ([], None)
    box.settle(reported[:1], [DONE], 0)
    assert verbs(box.take(0)) == [("a", Verb.DELETE)]


def test_an_emptied_outbox_knows_what_is_on_its_way() -> None:
    """Also after a reset, a removal waits for the answer to the create command."""
    box = CommandQueue()
    box.give(*create())
    box.give(*create("b"))
    reported = box.take(0)
    after = box.emptied()
    after.give(*delete())
    assert not after.take(0)
    box.settle(reported, [LATER, DONE], 0)
    assert verbs(after.take(0)) == [("a", Verb.DELETE)]
    assert not len(after)


def test_what_was_reported_in_vain_is_reported_again_later_and_later() -> None:
    """The delay doubles up to a limit, and the reason is known until an answer arrives."""
    box = CommandQueue()
    box.give(*create())
    now_ns = 0
    for tries in range(1, 12):
        reported = box.take(now_ns)
        assert len(reported) == 1
        assert not box.settle(reported, [LATER], now_ns)
        due_ns = box.next_due_ns()
        assert due_ns == now_ns + retry_ns(tries)
        assert box.tries["a", 1, "alpha"] == (tries, "busy")
        assert not box.take(now_ns)
        now_ns = due_ns
    assert retry_ns(11) == MAX_RETRY_NS
    reported = box.take(now_ns)
    assert box.settle(reported, [DONE], now_ns) == [Answered(reported[0][0], DONE)]
    assert not box.tries
    assert box.next_due_ns() is None


def test_a_refusal_is_for_good_but_a_removal_is_never_given_up() -> None:
    """A rejected create command is reported; a removal is retried until it is done."""
    box = CommandQueue()
    box.give(*create())
    reported = box.take(0)
    assert box.settle(reported, [REFUSED], 0) == [Answered(reported[0][0], REFUSED)]
    box.give(*delete())
    assert not box.settle(box.take(0), [REFUSED], 0)
    assert len(box) == 1


def test_what_is_newer_is_not_overwritten_by_cause_was_reported_in_vain() -> None:
    """A removal that arrives while the create command is in flight is sent; the create command is not repeated."""
    box = CommandQueue()
    box.give(*create())
    reported = box.take(0)
    box.drop(reported[0][0])
    box.give(*delete())
    assert not box.settle(reported, [LATER], 0)
    assert verbs(box.take(10**12)) == [("a", Verb.DELETE)]


def test_what_was_dropped_on_its_way_is_not_reported_again() -> None:
    """A failed create command of an ended attempt would restart an ended job."""
    box = CommandQueue()
    box.give(*create())
    reported = box.take(0)
    box.drop(reported[0][0])
    assert not box.settle(reported, [LATER], 0)
    assert not len(box)
    assert not box.tries


def test_dropping_leaves_the_other_verb() -> None:
    """Only the given command is dropped: not a removal instead of the create command."""
    box = CommandQueue()
    box.give(*delete())
    box.drop(create()[0])
    assert verbs(box.take(0)) == [("a", Verb.DELETE)]


def test_an_unreachable_cluster_does_not_hold_up_others() -> None:
    """Without threads, each cluster gets its own commands and reads, and an outage is reported."""
    made = scene()
    made.cluster("alpha").disconnect()
    talker = InPlace(VirtualClock())
    talker.use(made.clusters.clusters())
    reports = talker.collect()
    assert [type(report).__name__ for report in reports] == ["Unreachable", "Observation"]
    assert isinstance(reports[0], Unreachable)
    assert reports[0].cluster == "alpha"


def test_delays_tell_what_is_reported_in_vain() -> None:
    """While commands to a cluster fail, their number and reason are known; a reset clears them."""
    made = scene()
    made.cluster("alpha").disconnect()
    talker = InPlace(made.clock)
    talker.use(made.clusters.clusters())
    pending_commands, command = create()
    talker.give(pending_commands, command)
    talker.give(replace(pending_commands, cluster="nowhere"), command)
    talker.collect()
    assert list(talker.delays()) == [("a", 1, "alpha")]
    talker.forget()
    assert not talker.delays()
