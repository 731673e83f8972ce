"""Joins of clusters through the API: what is refused, what is checked, and what is stored."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from subprocess import run
from typing import Any

import jwt
import pytest
import yaml

from seaway.application.access import Access
from seaway.application.writer import Writer
from seaway.bootstrap.cluster_checks import Level
from seaway.bootstrap.cluster_join import joined
from seaway.bootstrap.cluster_joins import JOIN_S, MAX_JOINS, ClusterJoin, ClusterJoins, Stage, self_contained
from seaway.bootstrap.clusters import KUBECONFIGS
from seaway.bootstrap.settings import ClusterSettings
from seaway.domain.errors import ConflictError, RejectedError, UnauthenticatedError, UnknownError
from seaway.testing.clocks import VirtualClock
from tests.conformance.test_kubernetes_backends import furnish
from tests.fakes.kubernetes import ApiServer, KarmadaWorld
from tests.fakes.memory_store import MemoryStore

PATIENCE_S = 120.0


class Place:
    """Joins on an empty data folder."""

    def __init__(self, data: Path, **settings: Any) -> None:  # noqa: ANN401  # settings of clusters
        self.data, self.clock, store = data, VirtualClock(), MemoryStore()
        store.lead("test")
        self.access = Access(store, Writer(store), self.clock)
        self.joins = ClusterJoins(ClusterSettings(**settings), data, self.access, self.clock, lambda _: "")

    def checked(self, made: ClusterJoin) -> dict[str, Level]:
        """Wait for the checks; return the worst result of each."""
        until_s = time.monotonic() + PATIENCE_S
        while made.stage is not Stage.CHECKED:
            assert time.monotonic() < until_s, made.findings
            time.sleep(0.02)
        order = list(Level)
        return {each.check: each.level for each in sorted(made.findings, key=lambda each: order.index(each.level))}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Have a server without clusters of its own."""
    (tmp_path / KUBECONFIGS).mkdir()
    return Place(tmp_path)


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """Have a cluster ``alpha`` with GPUs."""
    with ApiServer("alpha") as made:
        furnish(made)
        yield made


def text_of(server: ApiServer, folder: Path, **user: object) -> str:
    """Return a kubeconfig of a cluster, with other credentials if some are given."""
    written = yaml.safe_load(server.kubeconfig(folder / "upload").read_text(encoding="utf-8"))
    if user:
        written["users"][0]["user"] = user
    return str(yaml.safe_dump(written))


def test_a_kubeconfig_is_checked_and_then_stored(place: Place, server: ApiServer, tmp_path: Path) -> None:
    """Checks are those of the doctor; nothing is stored before the end, and then for its owner only."""
    made = place.joins.begin(text_of(server, tmp_path), "", "ada")
    assert place.checked(made) == {
        "kubeconfig": Level.OK,
        "cluster alpha": Level.OK,
        "version of alpha": Level.OK,
        "rights in alpha": Level.OK,
        "GPUs in alpha": Level.OK,
        "network": Level.NOTE,
    }
    assert (made.usable, made.name, joined(place.data)) == (True, "alpha", [])
    done = place.joins.finish(made.id, "", replace=False)
    assert (done.name, place.joins.names()) == ("alpha", ["alpha"])
    assert done.file.stat().st_mode & 0o777 == 0o600
    with pytest.raises(UnknownError, match="does not exist any more"):
        place.joins.find(made.id)
    again = place.joins.begin(text_of(server, tmp_path), "", "ada")
    assert place.checked(again)["name"] is Level.NOTE
    with pytest.raises(RejectedError, match="choose another name, or replace its kubeconfig") as caught:
        place.joins.finish(again.id, "", replace=False)
    assert caught.value.where == "name"
    assert place.joins.finish(again.id, "", replace=True).name == "alpha"
    place.joins.leave("alpha")
    assert place.joins.names() == []
    with pytest.raises(UnknownError):
        place.joins.leave("alpha")


@pytest.mark.parametrize(
    ("user", "says"),
    [
        ({"exec": {"command": "aws", "apiVersion": "client.authentication.k8s.io/v1"}}, r"program \(aws\)"),
        ({"auth-provider": {"name": "gcp"}}, "auth-provider"),
        ({"tokenFile": "/etc/passwd"}, r"file of your machine \(tokenFile\)"),
        ({"client-key": "key.pem", "client-certificate": "crt.pem"}, "client-certificate, client-key"),
    ],
)
def test_programs_and_files_of_other_machines_are_refused(
    place: Place, server: ApiServer, tmp_path: Path, user: dict[str, object], says: str
) -> None:
    """The server runs no program and reads no file for an upload; the message says what to do instead."""
    with pytest.raises(RejectedError, match=says) as caught:
        place.joins.begin(text_of(server, tmp_path, **user), "", "ada")
    assert caught.value.where == "kubeconfig"
    assert "kubectl" in caught.value.message
    assert place.joins.joins() == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("no: kubeconfig", "the kubeconfig has no context"),
        ("{", "the kubeconfig is not a kubeconfig"),
        ("x" * 300_000, "has more than 256 KiB"),
        ("contexts: [{name: a, context: {}}, {name: b, context: {}}]", "choose one of: a, b"),
        ("contexts: [{name: a, context: {cluster: none}}]", "the kubeconfig has no cluster 'none'"),
    ],
)
def test_what_is_no_kubeconfig_is_named(text: str, says: str) -> None:
    """Messages name the upload, not a file of the server."""
    with pytest.raises(RejectedError, match=says) as caught:
        self_contained(text, "")
    assert "/tmp" not in caught.value.message


def test_defects_are_found_before_the_cluster_is_used(place: Place, server: ApiServer, tmp_path: Path) -> None:
    """Missing rights and an expiring token do not prevent a join; a rejected token does."""
    server.reviews.denied = {"watch pods"}
    made = place.joins.begin(text_of(server, tmp_path), "", "ada")
    assert place.checked(made)["rights in alpha"] is Level.ERROR
    assert made.usable
    ends = datetime.now(UTC) + timedelta(days=3)
    token = jwt.encode({"exp": int(ends.timestamp())}, "x" * 32, algorithm="HS256")
    bad = place.joins.begin(text_of(server, tmp_path, token=token), "", "ada")
    levels = place.checked(bad)
    assert (levels["token"], levels["cluster alpha"]) == (Level.WARNING, Level.ERROR)
    assert not bad.usable
    assert not any("/tmp" in each.text for each in bad.findings)


def test_a_control_plane_of_karmada_is_not_joined(place: Place, tmp_path: Path) -> None:
    """The finding names the setting for its members."""
    with KarmadaWorld(["alpha"]) as world:
        text = world.kubeconfig(tmp_path / "karmada").read_text(encoding="utf-8")
        made = place.joins.begin(text, "", "ada")
        place.checked(made)
    assert "clusters.karmada.kubeconfig" in made.findings[-1].text
    assert not made.usable


def test_a_command_has_a_token_for_one_kubeconfig(place: Place, server: ApiServer, tmp_path: Path) -> None:
    """The script has the manifests with the rights; its token is for this join only, once, and for 15 minutes."""
    made, token = place.joins.invite("ada")
    who = place.access.known(f"Bearer {token}", "1.2.3.4")
    assert who is not None
    assert (who.name, who.token_id, who.role.value) == ("ada", f"join-{made.id}", "agent")
    script = place.joins.script(made.id, "https://seaway.example/api/v1/fleet/joins/1", token)
    documents = [
        each
        for each in yaml.safe_load_all(
            script.partition("<<'SEAWAY_MANIFESTS'\n")[2].partition("\nSEAWAY_MANIFESTS\n")[0]
        )
        if each
    ]
    folder = Path(__file__).parents[3] / "deploy" / "kubernetes"
    shipped = [
        each
        for name in ("member.yaml", "namespaces.yaml")
        for each in yaml.safe_load_all((folder / name).read_text(encoding="utf-8"))
    ]
    assert documents == shipped
    assert f"Bearer {token}" in script
    assert "SEAWAY_" not in script.replace("SEAWAY_MANIFESTS", "")
    place.joins.receive(made.id, text_of(server, tmp_path))
    with pytest.raises(UnauthenticatedError):
        place.access.known(f"Bearer {token}", "1.2.3.4")
    assert place.checked(made)["cluster alpha"] is Level.OK
    with pytest.raises(ConflictError, match="has a kubeconfig already"):
        place.joins.receive(made.id, text_of(server, tmp_path))


KUBECTL = """#!/bin/sh
echo "$*" >> "$LOG"
case "$*" in
  *current-context*) echo "alpha/of 'ada'";;
  *certificate-authority-data*) printf Y2E=;;
  *tls-server-name*) ;;
  *cluster.server*) echo https://10.0.0.1:6443;;
  *"create token"*) echo the-token;;
  "apply -f -") cat > "$LOG.applied";;
  *set-cluster*) echo made > "$KUBECONFIG";;
esac
"""


def test_the_script_of_a_command_runs(place: Place, tmp_path: Path) -> None:
    """It applies the manifests, and sends a kubeconfig with a token of the account, whatever the context is called."""
    made, token = place.joins.invite("ada")
    script = place.joins.script(made.id, "http://127.0.0.1:1/joins/1", token)
    for name, text in (("kubectl", KUBECTL), ("curl", '#!/bin/sh\necho "curl $*" >> "$LOG"\n')):
        (tmp_path / name).write_text(text, encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    log = tmp_path / "log"
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "LOG": str(log), "TMPDIR": str(tmp_path)}
    done = run(["sh"], input=script, env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    said = log.read_text(encoding="utf-8")
    assert "config set-credentials seaway --token the-token" in said
    assert "config set-cluster alpha/of 'ada' --server https://10.0.0.1:6443" in said
    assert f"curl --fail --silent --show-error --request PUT --header Authorization: Bearer {token}" in said
    assert said.rstrip().endswith("http://127.0.0.1:1/joins/1/kubeconfig")
    applied = list(yaml.safe_load_all((tmp_path / "log.applied").read_text(encoding="utf-8")))
    assert "ServiceAccount" in [each["kind"] for each in applied]
    assert [each.name for each in tmp_path.glob("tmp.*")] == []


def test_joins_end_by_themselves(place: Place) -> None:
    """After their time, or when they are discarded, neither the join nor its token exists."""
    (made, token), (other, second) = place.joins.invite("ada"), place.joins.invite("ada")
    place.joins.drop(other.id)
    with pytest.raises(UnauthenticatedError):
        place.access.known(f"Bearer {second}", "1.2.3.4")
    place.clock.advance_s(JOIN_S + 1)
    with pytest.raises(UnauthenticatedError):
        place.access.known(f"Bearer {token}", "1.2.3.4")
    with pytest.raises(UnknownError):
        place.joins.find(made.id)
    for _ in range(MAX_JOINS):
        place.joins.invite("ada")
    with pytest.raises(ConflictError, match="joins are in progress"):
        place.joins.invite("ada")


def test_servers_with_clusters_of_their_settings_join_none(tmp_path: Path) -> None:
    """The obstacle is stated, and so is a restart after the first join of a server with simulated clusters."""
    assert "name its clusters" in Place(tmp_path, kubeconfig_dir="/somewhere").joins.obstacle()
    assert "simulated clusters" in Place(tmp_path, fleet="fleet.yaml").joins.obstacle()
    with pytest.raises(ConflictError, match="the settings of this server name its clusters"):
        Place(tmp_path, kubeconfig_dir="/somewhere").joins.invite("ada")
    plain = Place(tmp_path)
    assert (plain.joins.obstacle(), plain.joins.simulated) == ("", True)
    with pytest.raises(ConflictError, match=r"clusters\.namespace"):
        Place(tmp_path, namespace="gpu-{tenant}").joins.invite("ada")
