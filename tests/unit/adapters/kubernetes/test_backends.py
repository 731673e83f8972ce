"""A changing folder of kubeconfigs: every cluster keeps its name, and none is mistaken for another."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from seaway.adapters.kubernetes.backends import IDENTITY_PATH, KubernetesBackends
from seaway.adapters.kubernetes.cluster import ClusterOptions
from seaway.application.changes import Change
from seaway.application.clusters import ClusterNames
from seaway.application.ports.backend import Removal
from seaway.domain.errors import UnavailableError
from tests.fakes.kubernetes import ApiServer
from tests.fakes.memory_store import MemoryStore

WAIT_S = 30.0


@pytest.fixture
def servers() -> Iterator[list[ApiServer]]:
    """Start two clusters with the same name in their kubeconfigs."""
    with ApiServer("gpu", seed=1) as one, ApiServer("gpu", seed=2) as two:
        yield [one, two]


@pytest.fixture
def store() -> MemoryStore:
    """Create a store that outlives processes."""
    made = MemoryStore()
    made.lead("me")
    return made


@contextmanager
def process(folder: Path, store: MemoryStore) -> Iterator[KubernetesBackends]:
    """Watch a folder in a process."""
    backends = KubernetesBackends(folder, ClusterOptions(request_timeout_s=1), seed=1, names=ClusterNames(store))
    try:
        yield backends
    finally:
        backends.close()


def look(backends: KubernetesBackends) -> dict[str, bool]:
    """Return the clusters, and whether each is reachable."""
    return {each.cluster: received(each.changes) for each in backends.clusters()}


def received(changes: Callable[[str, float], object]) -> bool:
    """Report whether a cluster answers."""
    try:
        changes("", 0)
    except UnavailableError:
        return False
    return True


def await_names(backends: KubernetesBackends, *names: str) -> None:
    """Wait until these clusters exist, and all are reachable."""
    give_up_s = time.monotonic() + WAIT_S
    while (seen := look(backends)) != dict.fromkeys(sorted(names), True):
        if time.monotonic() > give_up_s:
            pytest.fail(f"there are {seen}")
        time.sleep(0.01)


def test_a_kubeconfig_that_comes_gives_no_one_another_name(
    servers: list[ApiServer], store: MemoryStore, tmp_path: Path
) -> None:
    """A cluster keeps its name when another with that name is added, also in the next process and in its file."""
    old, new = servers
    old.kubeconfig(tmp_path / "zeta")
    with process(tmp_path, store) as backends:
        await_names(backends, "gpu")
        new.kubeconfig(tmp_path / "alpha")
        await_names(backends, "gpu", "gpu-alpha")
    with process(tmp_path, store) as backends:
        assert look(backends).keys() == {"gpu", "gpu-alpha"}
        await_names(backends, "gpu", "gpu-alpha")
    assert [row.name for row in store.cluster_names()] == ["gpu", "gpu-alpha"]


def test_a_cluster_that_returns_under_another_name_is_the_same(
    servers: list[ApiServer], store: MemoryStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A cluster that is removed and added with another kubeconfig keeps its name, and that is logged."""
    with process(tmp_path, store) as backends:
        servers[0].kubeconfig(tmp_path / "one")
        await_names(backends, "gpu")
        (tmp_path / "one").unlink()
        await_names(backends)
        file = servers[0].kubeconfig(tmp_path / "two")
        text = file.read_text(encoding="utf-8").replace("gpu", "other")
        file.write_text(
            text.replace(servers[0].url, servers[0].url.replace("127.0.0.1", "localhost")), encoding="utf-8"
        )
        await_names(backends, "gpu")
    assert "points to the known cluster gpu and uses its name" in caplog.text


def test_another_cluster_in_a_ones_place_is_not_taken_for_it(
    servers: list[ApiServer], store: MemoryStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A kubeconfig that leads to another cluster gets another name, and that is logged."""
    with process(tmp_path, store) as backends:
        servers[0].kubeconfig(tmp_path / "one")
        await_names(backends, "gpu")
        servers[1].kubeconfig(tmp_path / "one")
        await_names(backends, "gpu-one")
    assert "points to another cluster than the known gpu: it is named gpu-one" in caplog.text


def test_a_cluster_made_again_at_its_old_address_is_another(store: MemoryStore, tmp_path: Path) -> None:
    """Until it reports its identity it has the old name, and its data does not count; then it gets a new one."""
    with ApiServer("gpu", seed=1) as old:
        file, port = old.kubeconfig(tmp_path / "one"), int(old.url.rpartition(":")[2])
        with process(tmp_path, store) as backends:
            await_names(backends, "gpu")
    with ApiServer("gpu", seed=2, port=port) as new, process(tmp_path, store) as backends:
        silence = new.faults.hang(IDENTITY_PATH)
        new.kubeconfig(file)
        assert look(backends) == {"gpu": False}
        time.sleep(0.3)
        assert look(backends) == {"gpu": False}
        (cluster,) = backends.clusters()
        with pytest.raises(UnavailableError, match="kube-system is being listed for the first time"):
            cluster.send([Removal("job", 1, "gpu")])[0].result(WAIT_S)
        new.faults.end(silence)
        await_names(backends, "gpu-one")


def test_a_cluster_that_may_not_say_who_it_is_goes_by_its_server(
    servers: list[ApiServer], store: MemoryStore, tmp_path: Path
) -> None:
    """Without the right to read its identity it still works, and keeps its name when the right is granted."""
    file = servers[0].kubeconfig(tmp_path / "one")
    refused = servers[0].faults.error(403, IDENTITY_PATH)
    with process(tmp_path, store) as backends:
        await_names(backends, "gpu")
    (row,) = store.cluster_names()
    assert (row.name, row.uid) == ("gpu", "")
    servers[0].faults.end(refused)
    file.rename(tmp_path / "two")
    with process(tmp_path, store) as backends:
        await_names(backends, "gpu")
    assert store.cluster_names()[0].uid


def test_two_kubeconfigs_of_one_cluster_are_one_cluster(
    servers: list[ApiServer], store: MemoryStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The second is skipped, logged once; when the first is removed the second replaces it, with the same name."""
    servers[0].kubeconfig(tmp_path / "one")
    with process(tmp_path, store) as backends:
        await_names(backends, "gpu")
        servers[0].kubeconfig(tmp_path / "two")
        await_names(backends, "gpu")
        look(backends)
        assert caplog.text.count("two points to gpu, as another context does; it is ignored") == 1
        (tmp_path / "one").unlink()
        await_names(backends, "gpu")


def test_a_file_that_is_written_again_leaves_its_clusters_alone(
    servers: list[ApiServer], store: MemoryStore, tmp_path: Path
) -> None:
    """A file with the same content changes nothing: all files of a Secret are rewritten when one is added."""
    file = servers[0].kubeconfig(tmp_path / "one")
    with process(tmp_path, store) as backends:
        await_names(backends, "gpu")
        (before,) = backends.clusters()
        os.utime(file, (1, 1))
        assert backends.clusters() == (before,)
        config = yaml.safe_load(file.read_text(encoding="utf-8"))
        config["contexts"].append({"name": "more", "context": {"cluster": "none", "user": "none"}})
        file.write_text(yaml.safe_dump(config), encoding="utf-8")
        assert backends.clusters()[0] is before
        config["contexts"].pop()
        config["users"][0]["user"] = {"token": "another"}
        file.write_text(yaml.safe_dump(config), encoding="utf-8")
        (after,) = backends.clusters()
        assert after is not before


def test_the_name_of_a_forgotten_cluster_can_be_anothers(
    servers: list[ApiServer], store: MemoryStore, tmp_path: Path
) -> None:
    """A cluster that is added after a removal has the name of its context, in the same process."""
    file = servers[0].kubeconfig(tmp_path / "one")
    with process(tmp_path, store) as backends:
        await_names(backends, "gpu")
        file.unlink()
        await_names(backends)
        store.commit([Change(delete=[*store.cluster_names()])])
        servers[1].kubeconfig(file)
        await_names(backends, "gpu")
