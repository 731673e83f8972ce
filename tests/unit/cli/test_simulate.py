"""Anything that `seaway simulate` does with what is typed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn
from typer.testing import CliRunner, Result

from seaway.adapters.simulated.backends import SimulatedBackends
from seaway.adapters.simulated.faults import NO_FAULTS, Options
from seaway.adapters.simulated.journal import DeviceChanged, journal_path, locked, read_journal
from seaway.adapters.simulated.server import Server
from seaway.bootstrap.clusters import make_faults
from seaway.cli.serving.simulate import app, read_faults
from seaway.domain.errors import RejectedError, UnavailableError
from seaway.simulation.demo import demo_fleet
from seaway.testing.clocks import VirtualClock

EXAMPLE = Path(__file__).resolve().parents[3] / "examples/fleets/three-clusters.yaml"


def run(*arguments: str) -> Result:
    """Run the command as typed; raise what it raises."""
    result = CliRunner().invoke(app, arguments, catch_exceptions=True)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def server() -> Iterator[tuple[str, SimulatedBackends]]:
    """Serve the made-up fleet."""
    backends = SimulatedBackends(demo_fleet(), VirtualClock(), Options(waits=False))
    serving = Server(backends)
    serving.start()
    yield serving.url, backends
    serving.stop()


def test_serve_says_where_it_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anyone who starts it reads what there is and where, and state is kept where it was asked to be."""
    monkeypatch.setattr(uvicorn.Server, "run", lambda *_: None)
    done = run(
        "serve", "--fleet", str(EXAMPLE), "--port", "0", "--data", str(tmp_path / "state"), "--start-delay", "20ms"
    )
    assert done.exit_code == 0
    assert done.output.startswith("3 clusters with 96 devices at http://127.0.0.1:")
    assert done.output.endswith(": north, middle, south\n")
    assert len(read_journal(journal_path(tmp_path / "state", "north"))) == 1


def test_a_folder_serves_one_process(tmp_path: Path) -> None:
    """Two servers cannot write one journal."""
    with locked(tmp_path), pytest.raises(RejectedError, match="in use by another process"):
        run("serve", "--data", str(tmp_path))


def test_a_port_serves_one_process(server: tuple[str, SimulatedBackends]) -> None:
    """A port that is taken is reported to be."""
    with pytest.raises(RejectedError, match="cannot listen on"):
        run("serve", "--port", server[0].rpartition(":")[2])


def test_faults_are_ordered_and_ended(server: tuple[str, SimulatedBackends]) -> None:
    """A fault that is typed happens in the cluster, and ends when that is typed."""
    url, backends = server
    cluster = backends.cluster("cluster-1")

    def ready() -> bool:
        inventory = cluster.changes("", 0).inventory
        assert inventory is not None
        return inventory.nodes[0].ready

    assert run("fault", "node", "cluster-1", "cluster-1-n0", "--for", "5m", "--server", url).output == (
        "cluster-1: node cluster-1-n0 for 5m\n"
    )
    assert not ready()
    assert run("heal", "node", "cluster-1", "cluster-1-n0", "--server", url).output == (
        "cluster-1: node cluster-1-n0 is over\n"
    )
    assert ready()
    run("fault", "cut", "cluster-1", "--server", url)
    with pytest.raises(UnavailableError):
        cluster.changes("", 0)
    run("heal", "all", "cluster-1", "--server", url)
    assert ready()


def test_mistakes_return_from_the_server(server: tuple[str, SimulatedBackends]) -> None:
    """Anything that is wrong with an order is reported as the server says it."""
    url, _ = server
    with pytest.raises(RejectedError, match="kind: fault 'flood' not found; available: node, device"):
        run("fault", "flood", "cluster-1", "--server", url)
    with pytest.raises(RejectedError, match="cluster 'cluster-9' not found; available: cluster-1"):
        run("fault", "cut", "cluster-9", "--server", url)
    with pytest.raises(RejectedError, match="--for: '5' is not valid; use a time"):
        run("fault", "cut", "cluster-1", "--for", "5", "--server", url)
    with pytest.raises(RejectedError, match="not an address of a server"):
        run("fault", "cut", "cluster-1", "--server", "localhost")


def test_a_server_that_is_not_there_is_unavailable() -> None:
    """A user who orders a fault where no one listens learns whom was asked."""
    with pytest.raises(UnavailableError, match=r"at http://127\.0\.0\.1:1 does not answer"):
        run("heal", "all", "cluster-1", "--server", "http://127.0.0.1:1")


def test_the_audit_says_what_was_broken(tmp_path: Path) -> None:
    """The journals of a run are proved; nothing broken is success."""
    backends = SimulatedBackends(demo_fleet(), VirtualClock(), Options(waits=False), tmp_path)
    backends.clusters()[0].fail_device("cluster-1-n0/0")
    backends.close()
    done = run("audit", "--data", str(tmp_path))
    assert (done.exit_code, done.output) == (0, "4 entries of 3 clusters: 0 rules broken\n")
    assert isinstance(read_journal(journal_path(tmp_path, "cluster-1"))[1], DeviceChanged)
    path = journal_path(tmp_path, "cluster-1")
    made = (
        b'{"at_ns":1,"job_id":"a","attempt":%d,"name":"a","tenant":"","image":"","port":0,"cpu_milli":1,"memory_mib":1,'
        b'"placements":[{"job":"a","replica":0,"cluster":"cluster-1","node":"cluster-1-n0","slices":[]}],'
        b'"starts_ns":1,"ends_ns":null,"kind":"created"}\n'
    )
    path.write_bytes(made % 1 + made % 2)
    done = run("audit", "--data", str(tmp_path))
    assert done.exit_code == 1
    assert "attempt 2 began in cluster cluster-1 while attempt 1 was alive" in done.output


def test_chances_are_read() -> None:
    """A seed has a little of everything go wrong, figures are put on top, and mistakes are named."""
    assert read_faults(0, []) == NO_FAULTS
    assert read_faults(7, []) == make_faults(7)
    assert read_faults(0, ["run_fails=0.25"]).run_fails == 0.25
    for figure in ("seed=1", "floods=1", "run_fails", "run_fails=x", "run_fails=2"):
        with pytest.raises(RejectedError):
            read_faults(0, [figure])
