"""The path a pair's traffic takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seaway.application.network.paths import Measured, PathRequest, choose, serving_gateway
from seaway.domain.network import NO_NEED, PPM, Link, NetworkNeed

MS = 1_000_000

DIRECT = Measured("direct", Link("u", "c", 40 * MS))
QUICK = Measured("quick", Link("u", "c", 10 * MS, loss_ppm=20_000))
DEAD = Measured("dead", Link("u", "c", None, loss_ppm=PPM))
UNKNOWN = Measured("unknown", None)

SOON = NetworkNeed(max_latency_ns=20 * MS)
WHOLE = NetworkNeed(max_loss_ppm=1_000)


def test_the_path_that_is_liked_best_is_taken_when_no_one_needs_anything() -> None:
    """Without needs the first path is taken."""
    assert choose([DIRECT, QUICK], "", [], []).path == "direct"


def test_a_waiting_job_has_its_path_chosen() -> None:
    """A job that waits and that only another path serves has that one taken, and the reason names it."""
    choice = choose([DIRECT, QUICK], "direct", [], [PathRequest("job-1", SOON)])
    assert choice.path == "quick"
    assert choice.why == "job job-1 needs what direct does not give"


def test_what_runs_goes_before_what_waits() -> None:
    """A path that a running job needs is not left for one that waits."""
    assert choose([QUICK, DIRECT], "direct", [WHOLE], [PathRequest("job-1", SOON)]).path == "direct"


def test_the_first_that_waits_decides() -> None:
    """Of two waiting jobs that need unlike paths the first has its way."""
    cluster_options = [PathRequest("job-1", SOON), PathRequest("job-2", WHOLE)]
    assert choose([DIRECT, QUICK], "direct", [], cluster_options).path == "quick"
    assert choose([DIRECT, QUICK], "direct", [], cluster_options[::-1]).path == "direct"


def test_a_path_that_does_not_answer_is_left() -> None:
    """A dead path, and one that was not measured, are taken only when no other answers."""
    choice = choose([DEAD, UNKNOWN, DIRECT], "dead", [], [])
    assert (choice.path, choice.why) == ("direct", "dead does not answer")
    assert choose([DEAD, UNKNOWN], "dead", [], []).path == "dead"


@pytest.mark.parametrize(
    ("current", "answers", "serves"),
    [
        ("a", {}, "a"),
        ("a", {"a": True, "b": True}, "a"),
        ("a", {"b": True}, "a"),
        ("a", {"a": False}, "a"),
        ("a", {"a": False, "b": False}, "a"),
        ("a", {"a": False, "b": True, "c": True}, "b"),
        ("a", {"a": False, "b": False, "c": True}, "c"),
        ("b", {"a": True, "b": True}, "b"),
        ("b", {"a": True, "b": False}, "a"),
    ],
)
def test_a_gateway_is_replaced_only_if_it_is_lost_and_another_answers(
    current: str, answers: dict[str, bool], serves: str
) -> None:
    """One without measurements is not lost, and one that is back does not take the traffic again."""
    assert serving_gateway(["a", "b", "c"], current, answers) == serves


def test_a_job_that_no_path_serves_changes_nothing() -> None:
    """Nothing is changed for a user who is served by no path."""
    never = NetworkNeed(max_latency_ns=1)
    assert choose([DIRECT, QUICK], "direct", [], [PathRequest("job-1", never)]).path == "direct"


def test_the_path_that_is_liked_better_is_gone_back_to() -> None:
    """When who needed another path is gone, the one that is liked best is taken again."""
    choice = choose([DIRECT, QUICK], "quick", [], [])
    assert (choice.path, choice.why) == ("direct", "it comes before quick in the configuration and serves as well")


def test_a_path_is_left_when_it_serves_less_of_what_runs() -> None:
    """Running jobs whose bounds the path breaks have another one taken that keeps them."""
    choice = choose([DIRECT, QUICK], "direct", [SOON, SOON, WHOLE], [])
    assert choice.path == "quick"
    assert choice.why == "it meets the bounds of 2 running jobs, direct those of 1"


links = st.none() | st.builds(
    Link,
    st.just("u"),
    st.just("c"),
    st.none() | st.integers(1, 60 * MS),
    loss_ppm=st.integers(0, PPM),
)
needs = st.sampled_from([NO_NEED, SOON, WHOLE, NetworkNeed(max_latency_ns=50 * MS, max_loss_ppm=10_000)])


@given(st.lists(links, min_size=1, max_size=4), st.lists(needs, max_size=4), st.lists(needs, max_size=4), st.data())
def test_paths_change_only_when_figures_or_jobs_do(
    measured: list[Link | None], running: list[NetworkNeed], waiting: list[NetworkNeed], data: st.DataObject
) -> None:
    """A choice is asked for again and stays, and no path that answers serves more of what runs."""
    paths = [Measured(f"p{number}", link) for number, link in enumerate(measured)]
    cluster_options = [PathRequest(f"job-{number}", need) for number, need in enumerate(waiting)]
    current = data.draw(st.sampled_from(["", *(path.name for path in paths)]))
    chosen = choose(paths, current, running, cluster_options).path
    assert choose(paths, chosen, running, cluster_options).path == chosen
    taken = next(path for path in paths if path.name == chosen)
    for path in paths:
        if path.answers >= taken.answers:
            assert sum(map(path.meets, running)) <= sum(map(taken.meets, running)) or path.answers > taken.answers
        assert not (path.answers and not taken.answers)
