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
    """Start a Ray cluster with two nodes of one CPU each, and return its address."""
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
    """Return a factory of parallel executions."""
    if request.param == "processes":
        return lambda tell: Processes(2, tell)
    address = request.getfixturevalue("two_machines")
    return lambda tell: OverRay(address, 2, tell)


def test_results_do_not_depend_on_the_execution(make: Make) -> None:
    """Equal seeds have equal results for any worker and order of completion."""
    seeds = [7, 1, 12, 7, 5]
    here = list(in_order(Serial().map(drawn, seeds)))
    assert list(in_order(make(pytest.fail).map(drawn, seeds))) == here


@pytest.mark.slow
def test_ray_starts_a_temporary_cluster() -> None:
    """It runs on this machine until all items are complete."""
    pytest.importorskip("ray", reason="needs seaway[ray]")
    seeds = [7, 1, 12]
    here = list(in_order(Serial().map(drawn, seeds)))
    assert list(in_order(OverRay(LOCAL, 2, pytest.fail).map(drawn, seeds))) == here


def test_items_of_dead_workers_are_retried(make: Make, tmp_path: Path) -> None:
    """The death is reported, and another worker runs the item."""
    reported: list[str] = []
    paths = [tmp_path / name for name in "ab"]
    paths[1].touch()
    assert sorted(make(reported.append).map(first_try_dies, paths)) == [(0, "a"), (1, "b")]
    (line,) = reported
    assert line.endswith("at 1 of 2; another one tries it again")


def test_an_item_that_kills_two_workers_is_an_error(make: Make, tmp_path: Path) -> None:
    """The error names the item."""
    reported: list[str] = []
    with pytest.raises(UnavailableError, match="at 1 of 1, and so did one before it"):
        list(make(reported.append).map(die, [tmp_path]))
    assert len(reported) == 1


def test_exceptions_of_tasks_are_raised(make: Make) -> None:
    """The exception has its original text."""
    with pytest.raises(RejectedError, match="this will not do") as caught:
        list(make(pytest.fail).map(refuse, ["this"]))
    assert caught.value.where == "--name"


def test_processes_end_with_the_iteration(tmp_path: Path) -> None:
    """Busy processes end too."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    results = Processes(2, pytest.fail).map(a_waiting_user, [("reads", pipe), ("waits", pipe)])
    _, process = next(results)
    results.close()  # type: ignore[attr-defined]
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_a_stopped_map_ends_its_processes(tmp_path: Path) -> None:
    """A busy process ends within moments when the map is stopped, and the reason is raised."""
    pipe, seen = tmp_path / "pipe", list[int]()
    os.mkfifo(pipe)
    items = [("reads", pipe), ("waits", pipe)]
    results = Processes(2, pytest.fail).map(a_waiting_user, items, lambda: "nobody reads it" if seen else "")
    seen.append(next(results)[1])
    with pytest.raises(UnavailableError, match="nobody reads it"):
        next(results)
    with pytest.raises(ProcessLookupError):
        os.kill(seen[0], 0)


def test_results_in_order() -> None:
    """Results are yielded as soon as no earlier one is missing."""
    assert list(in_order([(2, "c"), (0, "a"), (1, "b")])) == ["a", "b", "c"]


def test_one_worker_runs_in_this_process() -> None:
    """There is no other process without Ray."""
    assert isinstance(choose_spread(1, None, pytest.fail), Serial)
    assert isinstance(choose_spread(2, None, pytest.fail), Processes)


def test_zero_workers_are_rejected() -> None:
    """The minimum is one worker."""
    with pytest.raises(RejectedError, match="0 is not at least 1"):
        choose_spread(0, None, pytest.fail)


def test_missing_ray_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Ray, the error names the extra."""
    monkeypatch.setattr("seaway.learning.parallel.find_spec", lambda _: None)
    with pytest.raises(RejectedError, match=r"seaway\[ray\]"):
        choose_spread(1, LOCAL, pytest.fail)
