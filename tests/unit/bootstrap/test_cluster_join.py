"""Joining clusters: what is wrong is reported in words that lead to mending it, and nothing is kept then."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from seaway.adapters.kubernetes.connection import api
from seaway.adapters.kubernetes.connection.contexts import find
from seaway.bootstrap import cluster_checks
from seaway.bootstrap.cluster_join import join, joined, leave
from seaway.bootstrap.data import DataFolder
from seaway.domain.errors import RejectedError, UnavailableError
from tests.fakes.kubernetes import ApiServer, KarmadaWorld


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    """Have a cluster, and a kubeconfig whose context for it is ``alpha``."""
    with ApiServer("alpha") as server:
        yield server.kubeconfig(tmp_path / "config")


def changed(file: Path, kind: str, **settings: object) -> Path:
    """Write a kubeconfig again with other settings of its only user or cluster."""
    written: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    (entry,) = written[f"{kind}s"]
    entry[kind] = settings
    file.write_text(yaml.safe_dump(written), encoding="utf-8")
    return file


def test_a_cluster_is_joined_once_and_left(kubeconfig: Path, tmp_path: Path) -> None:
    """It is kept under its context's name or another, where only its owner can read it, until it is left."""
    found = join(kubeconfig, "", "", tmp_path)
    assert (found.name, found.cluster.name if found.cluster else "") == ("alpha", "alpha")
    assert found.file.stat().st_mode & 0o777 == 0o600
    with pytest.raises(RejectedError, match="a cluster 'alpha' exists already"):
        join(kubeconfig, "alpha", "", tmp_path)
    assert join(kubeconfig, "alpha", "", tmp_path, replace=True).file == found.file
    join(kubeconfig, "alpha", "other", tmp_path, look=False)
    assert joined(tmp_path) == ["alpha", "other"]
    leave("alpha", tmp_path)
    with pytest.raises(RejectedError, match="cluster 'alpha' was joined here; available: other"):
        leave("alpha", tmp_path)


def test_missing_rights_are_named(tmp_path: Path) -> None:
    """A cluster joins without a right, and the answer says which one is missing and what grants it."""
    with ApiServer("alpha") as server:
        server.reviews.denied = {"watch pods", "create jobs.batch", "delete jobs.batch"}
        found = join(server.kubeconfig(tmp_path / "config"), "", "", tmp_path)
    assert found.problems == (
        "Seaway may not watch pods; create, delete jobs.batch in namespace seaway-default; "
        "apply deploy/kubernetes/member.yaml and namespaces.yaml there",
    )


def test_a_cluster_has_one_name_for_ever(kubeconfig: Path, tmp_path: Path) -> None:
    """It is joined under one at a time; left and joined again it has the one that it had, and that is reported."""
    join(kubeconfig, "", "first", tmp_path)
    with pytest.raises(RejectedError, match="joined already, as 'first'; choose that --name to --replace"):
        join(kubeconfig, "", "", tmp_path)
    leave("first", tmp_path)
    with pytest.raises(RejectedError, match="joined before as 'first' and keeps that name"):
        join(kubeconfig, "", "second", tmp_path)
    found = join(kubeconfig, "", "", tmp_path)
    assert (found.name, found.file.name, found.cluster.name if found.cluster else "") == (
        "first",
        "first.yaml",
        "first",
    )
    assert [each.context for each in find(found.file.parent).contexts] == ["first"]


def test_a_name_is_one_clusters_for_ever(kubeconfig: Path, tmp_path: Path) -> None:
    """Another cluster takes the place of none, whether that one was left or is only to get another kubeconfig."""
    join(kubeconfig, "", "", tmp_path)
    with ApiServer("alpha", seed=1) as other:
        file = other.kubeconfig(tmp_path / "other")
        with pytest.raises(RejectedError, match="'alpha' is another cluster, whose jobs are stored under that name"):
            join(file, "", "", tmp_path, replace=True)
        leave("alpha", tmp_path)
        with pytest.raises(RejectedError, match="choose another --name"):
            join(file, "", "", tmp_path)
        assert join(file, "", "beta", tmp_path).name == "beta"


def test_the_name_of_a_cluster_that_is_no_more_can_be_anothers(kubeconfig: Path, tmp_path: Path) -> None:
    """Anyone who says so gives it to another, once the first was left; that one would must have another then."""
    join(kubeconfig, "", "", tmp_path)
    leave("alpha", tmp_path)
    with ApiServer("alpha", seed=1) as other:
        join(other.kubeconfig(tmp_path / "other"), "", "", tmp_path, replace=True)
        assert joined(tmp_path) == ["alpha"]
        with pytest.raises(RejectedError, match="'alpha' is another cluster"):
            join(kubeconfig, "", "", tmp_path)


def test_what_a_running_server_makes_of_it_is_known(kubeconfig: Path, tmp_path: Path) -> None:
    """Anyone who joins can be reported whether the server that runs on the folder will look at the cluster."""
    assert join(kubeconfig, "", "", tmp_path, look=False).driven == ""
    data = DataFolder(tmp_path)
    data.announce("http://localhost:1", "simulated")
    assert join(kubeconfig, "", "", tmp_path, look=False, replace=True).driven == "simulated"
    data.close()
    assert join(kubeconfig, "", "", tmp_path, look=False, replace=True).driven == ""


def test_a_kubeconfig_is_replaced_only_by_one_that_works(kubeconfig: Path, tmp_path: Path) -> None:
    """The new one takes the old one's place in one step, once it was seen to work; nothing else is left behind."""
    file = join(kubeconfig, "", "", tmp_path, look=False).file
    before = file.read_text(encoding="utf-8")
    changed(kubeconfig, "user", token="old")
    with pytest.raises(UnavailableError):
        join(kubeconfig, "", "", tmp_path, replace=True)
    assert file.read_text(encoding="utf-8") == before
    join(kubeconfig, "", "", tmp_path, look=False, replace=True)
    assert "token: old" in file.read_text(encoding="utf-8")
    assert file.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in file.parent.iterdir()] == [file.name]


def test_what_a_control_plane_of_karmada_is_for_is_reported(tmp_path: Path) -> None:
    """Nothing runs in Karmada itself, so it cannot be joined; the message names the setting that has its members."""
    world = KarmadaWorld(["alpha"])
    world.open()
    try:
        kubeconfig = world.kubeconfig(tmp_path / "karmada.config")
        says = f"clusters.karmada.kubeconfig = '{tmp_path}/karmada.config'"
        with pytest.raises(RejectedError, match=says):
            join(kubeconfig, "", "", tmp_path)
    finally:
        world.close()
    assert joined(tmp_path) == []


@pytest.mark.parametrize(
    ("user", "says"),
    [
        (
            {"token": "old"},
            "alpha: Seaway's credentials are not accepted there (Unauthorized): they are wrong, or have",
        ),
        ({"tokenFile": "none"}, "does not say how to reach it: No such file or directory: '{folder}/none'"),
        (
            {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "nothing-of-that-name"}},
            "gives no credentials: exec: 'nothing-of-that-name' cannot be run: No such file or directory",
        ),
    ],
    ids=["token", "file", "program"],
)
def test_credentials_that_will_not_do(kubeconfig: Path, tmp_path: Path, user: dict[str, Any], says: str) -> None:
    """It is reported what is wrong with them, by the name of the file that was given, and without numbers of errors."""
    changed(kubeconfig, "user", **user)
    with pytest.raises(UnavailableError) as caught:
        join(kubeconfig, "", "", tmp_path)
    said = str(caught.value)
    assert says.format(folder=tmp_path) in said
    assert "seaway-join" not in said
    assert "token" in user or f"the context 'alpha' of {kubeconfig}" in said
    assert joined(tmp_path) == []


@contextmanager
def site(code: int) -> Iterator[str]:
    """Have a web site that answers everything with a page."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(code)
            self.end_headers()
            self.wfile.write(b"<!DOCTYPE HTML><html><body>welcome</body></html>\n")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002, the name that http.server gives
            pass

    server = HTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


@pytest.mark.parametrize(
    ("code", "says"), [(404, "answers 404 with a web page"), (200, "does not answer like Kubernetes")]
)
def test_a_web_site_is_no_cluster(kubeconfig: Path, tmp_path: Path, code: int, says: str) -> None:
    """Where pages come instead of objects, that is reported, and no page is printed."""
    with site(code) as url:
        changed(kubeconfig, "cluster", server=url)
        with pytest.raises(UnavailableError, match=says) as caught:
            join(kubeconfig, "", "", tmp_path)
    assert "html" not in str(caught.value).lower()


def test_what_hangs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that does not answer, and a program of the kubeconfig that does not end, are distinguished."""
    monkeypatch.setattr(cluster_checks, "TRY_S", 1.0)
    with ApiServer("alpha") as server:
        kubeconfig = server.kubeconfig(tmp_path / "config")
        with (
            server.faults.during(server.faults.hang()),
            pytest.raises(UnavailableError, match=r"alpha: did not answer GET /apis/cluster\.karmada\.io in time"),
        ):
            join(kubeconfig, "", "", tmp_path)
        monkeypatch.setattr(api, "CREDENTIALS_TIMEOUT_S", 0.3)
        plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "sleep", "args": ["5"]}
        changed(kubeconfig, "user", exec=plugin | {"interactiveMode": "Never"})
        with pytest.raises(UnavailableError, match=r"alpha: its user was not determined within 0\.3 s"):
            join(kubeconfig, "", "", tmp_path)
