from __future__ import annotations

import pytest

from seaway.application.moves import JobMove, Moves
from seaway.application.whatif.question import Consequences, Question
from seaway.application.whatif.whatif import WhatIf
from seaway.domain.errors import StaleError, UnknownError
from seaway.domain.queues import Queue
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.unit.application.scene import Scene, scene


def moves_of(made: Scene) -> Moves:
    """Make what moves the jobs of a scene."""
    plane = made.plane
    return Moves(plane.controller, plane.operations, plane.writer, plane.clock)


def ask(made: Scene, question: Question) -> Consequences:
    """Ask a question about a scene."""
    return WhatIf(made.plane.controller, made.plane.admission, made.plane.store).ask(question)


def nodes_of(made: Scene) -> dict[str, tuple[str, ...]]:
    """Return the nodes of each job, by name."""
    jobs = made.plane.controller.live.jobs.values()
    return {job.spec.name: job.nodes for job in jobs}


def settled(made: Scene, seconds: int = 120) -> None:
    """Let jobs end and start again."""
    for _ in range(seconds):
        made.clock.advance(1)
        made.plane.settle()


def fragmented() -> tuple[Scene, dict[str, str]]:
    """Run two jobs of one GPU on two nodes, so that a job of two GPUs waits."""
    made = scene(fleet(cluster(node(gpu(), gpu()), node(gpu(), gpu()), name="alpha")))
    jobs = {name: made.submit(name=name) for name in ("a", "b", "c")}
    made.plane.jobs.cancel(jobs.pop("b"), "ada")
    settled(made, 5)
    assert nodes_of(made) == {"a": ("node-0",), "c": ("node-1",)}
    jobs["wide"] = made.submit(name="wide", gpus=2)
    return made, jobs


def test_moves_of_an_answer_apply_and_make_room() -> None:
    """Jobs restart on the nodes of the answer, and the waiting job gets the node that is free then."""
    made, jobs = fragmented()
    moves = ask(made, Question(replan=True)).moves
    assert moves == (JobMove(jobs["c"], 1, frozenset({("alpha", "node-0")})),)
    assert moves_of(made).apply(moves, (), "ada", "") == (1, 0)
    assert made.job(jobs["c"]).reason == "moved to alpha/node-0 by ada"
    settled(made)
    assert nodes_of(made) == {"a": ("node-0",), "c": ("node-0",), "wide": ("node-1",)}
    assert made.job(jobs["c"]).attempt == 2
    assert not made.plane.controller.live.moves


def test_a_move_goes_where_it_says_and_not_where_the_policy_would() -> None:
    """The place is reserved until the job starts there, against jobs that wait, and jobs can change places."""
    made = scene(fleet(cluster(node(gpu()), node(gpu()), name="alpha")))
    a, b = made.submit(name="a"), made.submit(name="b")
    made.submit(name="first", priority=9)
    where = nodes_of(made)
    to = [frozenset({("alpha", where[name][0])}) for name in ("b", "a")]
    assert moves_of(made).apply([JobMove(a, 1, to[0]), JobMove(b, 1, to[1])], (), "ada", "") == (2, 0)
    settled(made)
    assert (nodes_of(made)["a"], nodes_of(made)["b"]) == (where["b"], where["a"])
    assert made.plane.controller.live.tree.node("default").queue == Queue("default")


def test_moves_are_all_or_none() -> None:
    """A job that has changed, or has no room any more, fails the whole call, which names it, and nothing changes."""
    made, jobs = fragmented()
    there = frozenset({("alpha", "node-0")})
    move, stays = JobMove(jobs["c"], 1, there), nodes_of(made)
    with pytest.raises(StaleError, match=r"1 of 2 jobs cannot move any more.*wide"):
        moves_of(made).apply([move, JobMove(jobs["wide"], 1, there)], (), "ada", "")
    made.submit(name="late")
    made.plane.jobs.cancel(jobs["wide"], "ada")
    made.submit(name="later")
    made.plane.settle()
    with pytest.raises(StaleError, match=r"1 of 1 job cannot move any more.*c \("):
        moves_of(made).apply([move], (), "ada", "")
    with pytest.raises(UnknownError):
        moves_of(made).apply([], [("alpha", "nowhere")], "ada", "")
    settled(made, 5)
    assert {name: nodes_of(made)[name] for name in ("a", "c")} == {name: stays[name] for name in ("a", "c")}
    assert not made.plane.store.cordons()
    assert not made.plane.controller.live.moves


def test_a_concurrent_change_of_a_job_fails_its_move() -> None:
    """The loop forgets a move of which the change is not stored."""
    made, jobs = fragmented()
    made.plane.writer.meanwhile.append(lambda: made.plane.jobs.cancel(jobs["c"], "bob"))
    with pytest.raises(StaleError, match="change too fast"):
        moves_of(made).apply([JobMove(jobs["c"], 1, frozenset({("alpha", "node-0")}))], (), "ada", "")
    assert not made.plane.controller.live.moves


def test_a_drain_moves_its_jobs_to_the_nodes_of_the_answer() -> None:
    """The cordon and the moves are stored together."""
    made = scene(fleet(*(cluster(node(gpu(), gpu()), name=name) for name in ("alpha", "beta", "gamma"))))
    job_id = made.submit(name="a")
    place = made.where(job_id)
    answer = ask(made, Question(drain=(place,)))
    assert answer.moves
    assert moves_of(made).apply(answer.moves, [(place, "")], "ada", "repair") == (1, 0)
    assert [(each.cluster, each.drain, each.reason) for each in made.plane.store.cordons()] == [(place, True, "repair")]
    settled(made)
    assert frozenset({(made.where(job_id), "node-0")}) == answer.moves[0].to
    assert made.job(job_id).attempt == 2


def test_a_job_starts_anywhere_if_its_node_is_lost_or_the_move_takes_too_long() -> None:
    """A move ends with the node, and after the time for reservations."""
    made = scene(fleet(*(cluster(node(gpu()), name=name) for name in ("alpha", "beta", "gamma"))))
    job_id = made.submit(name="a")
    left, other, third = made.where(job_id), *sorted({"alpha", "beta", "gamma"} - {made.where(job_id)})
    moves_of(made).apply([JobMove(job_id, 1, frozenset({(other, "node-0")}))], (), "ada", "")
    made.plane.operations.cordon(other, "", "ada", "")
    made.plane.operations.cordon(left, "", "ada", "")
    settled(made)
    assert made.where(job_id) == third


def test_a_job_that_only_stops_waits_in_its_queue() -> None:
    """A move without nodes makes room for others; the job goes on when it fits."""
    made, jobs = fragmented()
    assert moves_of(made).apply([JobMove(jobs["c"], 1, frozenset())], (), "ada", "") == (0, 1)
    assert made.job(jobs["c"]).reason == "stopped by ada, so that other jobs can move"
    settled(made)
    assert (made.job(jobs["c"]).attempt, nodes_of(made)["wide"]) == (2, ("node-1",))
