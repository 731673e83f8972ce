"""`seaway cluster`: what is reported of joining and leaving, also to a user who has a server running."""

from __future__ import annotations

from pathlib import Path

import pytest

from seaway.bootstrap.data import DataFolder
from seaway.cli.main import main
from tests.fakes.kubernetes import ApiServer


def say(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run a command that goes well; return what it says."""
    with pytest.raises(SystemExit) as done:
        main(["cluster", *arguments])
    said = capsys.readouterr()
    assert done.value.code in (0, None), said.err
    return said.out


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    """Write a kubeconfig; no one has to answer."""
    return ApiServer("alpha").kubeconfig(tmp_path / "config")


@pytest.mark.parametrize(
    ("driven", "says"),
    [
        ("simulated", "Restart it to use alpha. Unfinished jobs then move there after the grace period"),
        ("set", "runs on the clusters that its settings name, and does not look at those that are joined"),
        ("joined", ""),
    ],
)
def test_who_has_a_server_running_is_reported_what_it_makes_of_a_cluster(
    driven: str, says: str, kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A server on simulated clusters goes on with them until it is restarted; one on joined ones looks by itself."""
    data = DataFolder(tmp_path / "data")
    data.announce("http://localhost:1", driven)
    said = say(capsys, "join", "--kubeconfig", str(kubeconfig), "--no-look", "--data", str(data.path))
    data.close()
    first, *more = said.splitlines()
    assert first.startswith("alpha is joined without a check")
    assert says in " ".join(more)
    assert bool(more) is bool(says)


def test_who_leaves_the_last_cluster_is_reported_how_it_goes_on(
    kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is simulated in its place; where there are others its jobs go there."""
    for name in ("one", "two"):
        say(capsys, "join", "--kubeconfig", str(kubeconfig), "--no-look", "--name", name, "--data", str(tmp_path))
    assert say(capsys, "list", "--joined", "--data", str(tmp_path), "-o", "name").split() == ["one", "two"]
    assert "its jobs are placed elsewhere after the grace period" in say(
        capsys, "leave", "one", "--data", str(tmp_path)
    )
    said = say(capsys, "leave", "two", "--data", str(tmp_path))
    assert "was the last cluster: its jobs count as running there until another cluster is joined" in said
    assert f"to get simulated ones again, remove {tmp_path / 'kubeconfigs'}" in said
