from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from warnings import catch_warnings, simplefilter

import pytest

from seaway.domain.errors import RejectedError, UnavailableError
from seaway.learning.parallel import LOCAL, OverRay, Processes, Serial, Spread, Tell, choose_spread, in_order
from tests.unit.learning.parallel.tasks import a_waiting_user, die, drawn, first_try_dies, refuse

Make = Callable[[Tell], Spread]


@pytest.fixture(scope="module")
def two_machines() -> Iterator[str]:
    """Two nodes of a Ray cluster, with a processor each, as on two machines; gives its address."""
    pytest.importorskip("ray", reason="needs seaway[ray]")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    cluster.add_node(num_cpus=1)
    yield cluster.address
    with catch_warnings():  # Ray does not wait for the processes that it kills
        simplefilter("ignore", ResourceWarning)
        cluster.shutdown()
        del cluster
        gc.collect()


@pytest.fixture(params=["processes", pytest.param("ray", marks=pytest.mark.slow)])
def make(request: pytest.FixtureRequest) -> Make:
    """Anything that makes a spread that tells of its workers."""
    if request.param == "processes":
        return lambda tell: Processes(2, tell)
    address = request.getfixturevalue("two_machines")
    return lambda tell: OverRay(address, 2, tell)


def test_spread_or_not_the_results_are_the_same(make: Make) -> None:
    """The same seeds give the same numbers, anyone who works on them and anyone who is ready first."""
    seeds = [7, 1, 12, 7, 5]
    here = list(in_order(Serial().map(drawn, seeds)))
    assert list(in_order(make(pytest.fail).map(drawn, seeds))) == here


@pytest.mark.slow
def test_ray_needs_no_cluster() -> None:
    """Without a cluster Ray runs on this machine, for as long as there is work."""
    pytest.importorskip("ray", reason="needs seaway[ray]")
    seeds = [7, 1, 12]
    here = list(in_order(Serial().map(drawn, seeds)))
    assert list(in_order(OverRay(LOCAL, 2, pytest.fail).map(drawn, seeds))) == here


def test_what_a_dead_worker_had_is_tried_again(make: Make, tmp_path: Path) -> None:
    """Where a worker is killed, that is reported, and another one does what it had."""
    reported: list[str] = []
    paths = [tmp_path / name for name in "ab"]
    paths[1].touch()
    assert sorted(make(reported.append).map(first_try_dies, paths)) == [(0, "a"), (1, "b")]
    (line,) = reported
    assert line.endswith("at 1 of 2; another one tries it again")


def test_what_kills_two_workers_is_given_up(make: Make, tmp_path: Path) -> None:
    """Anything that kills the second worker too ends it all, with an error that says which it was."""
    reported: list[str] = []
    with pytest.raises(UnavailableError, match="at 1 of 1, and so did one before it"):
        list(make(reported.append).map(die, [tmp_path]))
    assert len(reported) == 1


def test_errors_return_as_they_were(make: Make) -> None:
    """Anything that a task raises is raised where the work was given, with all that it says."""
    with pytest.raises(RejectedError, match="this will not do") as caught:
        list(make(pytest.fail).map(refuse, ["this"]))
    assert caught.value.where == "--name"


def test_no_one_works_on_when_no_one_requests(tmp_path: Path) -> None:
    """A user who stops asking ends the processes, those that are at work too."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    results = Processes(2, pytest.fail).map(a_waiting_user, [("reads", pipe), ("waits", pipe)])
    _, process = next(results)
    results.close()  # type: ignore[attr-defined]
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_results_wait_for_those_before_them() -> None:
    """Results that come early are passed on when none is missing before them."""
    assert list(in_order([(2, "c"), (0, "a"), (1, "b")])) == ["a", "b", "c"]


def test_one_worker_needs_no_process() -> None:
    """With one worker and no Ray the work is done in this process."""
    assert isinstance(choose_spread(1, None, pytest.fail), Serial)
    assert isinstance(choose_spread(2, None, pytest.fail), Processes)


def test_no_worker_does_nothing() -> None:
    """A user who asks for no worker at all is reported that there must be one."""
    with pytest.raises(RejectedError, match="0 is not at least 1"):
        choose_spread(0, None, pytest.fail)


def test_without_ray_it_is_reported_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Ray is not installed, the error says which extra brings it."""
    monkeypatch.setattr("seaway.learning.parallel.find_spec", lambda _: None)
    with pytest.raises(RejectedError, match=r"seaway\[ray\]"):
        choose_spread(1, LOCAL, pytest.fail)
