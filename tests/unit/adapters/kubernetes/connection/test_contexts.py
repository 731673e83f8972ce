"""A folder of kubeconfigs: one cluster per context, broken files reported by name."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from seaway.adapters.kubernetes.connection.contexts import cluster_name, current_context, find
from seaway.domain.errors import RejectedError


def write(file: Path, *contexts: str, current: str = "") -> Path:
    """Write a kubeconfig with these contexts."""
    config = {"apiVersion": "v1", "kind": "Config", "contexts": [{"name": name, "context": {}} for name in contexts]}
    file.write_text(yaml.safe_dump(config | ({"current-context": current} if current else {})), encoding="utf-8")
    return file


def test_every_context_of_every_file_is_a_cluster(tmp_path: Path) -> None:
    """Every context of every file is a cluster."""
    write(tmp_path / "a.yaml", "east", "west")
    write(tmp_path / "b", "north")
    assert [(each.context, each.file.name) for each in find(tmp_path).contexts] == [
        ("east", "a.yaml"),
        ("west", "a.yaml"),
        ("north", "b"),
    ]


def test_a_server_is_known_by_address_and_authority(tmp_path: Path) -> None:
    """The user and the way of embedding do not matter; another address or authority is another server."""
    (tmp_path / "ca.crt").write_bytes(b"ca")
    given: list[dict[str, str]] = [
        {"server": "https://a", "certificate-authority-data": "Y2E="},
        {"server": "https://a", "certificate-authority": "ca.crt"},
        {"server": "https://b", "certificate-authority": "ca.crt"},
        {"server": "https://a"},
        {"server": "https://a", "certificate-authority": "gone.crt"},
        {"server": "https://a", "tls-server-name": "b"},
    ]
    for number, cluster in enumerate(given):
        config = {
            "clusters": [{"name": "c", "cluster": cluster}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": f"{number}"}}],
        }
        (tmp_path / f"{number}").write_text(yaml.safe_dump(config), encoding="utf-8")
    servers = [each.server for each in find(tmp_path).contexts]
    assert servers[0] == servers[1]
    assert len(set(servers)) == len(given) - 1
    assert find(write(tmp_path / "none", "east").parent).contexts[-1].server == ""


def test_what_is_reported_of_a_context_is_known_by_its_content(tmp_path: Path) -> None:
    """Another user or client certificate changes the fingerprint; another context does not."""
    (tmp_path / ".me.crt").write_bytes(b"first")
    config: dict[str, Any] = {
        "clusters": [{"name": "c", "cluster": {"server": "https://a"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"client-certificate": ".me.crt", "client-key": ".none"}}],
    }

    def says() -> str:
        (tmp_path / "config").write_text(yaml.safe_dump(config), encoding="utf-8")
        return find(tmp_path).contexts[0].digest

    first = says()
    config["contexts"].append({"name": "y", "context": {"cluster": "c", "user": "other"}})
    assert says() == first
    (tmp_path / ".me.crt").write_bytes(b"second")
    second = says()
    config["users"][0]["user"]["as"] = "ada"
    assert len({first, second, says()}) == 3


@pytest.mark.parametrize(
    ("context", "name"),
    [
        ("kubernetes-admin@kubernetes", "kubernetes-admin-kubernetes"),
        ("arn:aws:eks:eu-west-1:1234:cluster/gpu", "arn-aws-eks-eu-west-1-1234-cluster-gpu"),
        ("gke_project_europe-west4_gpu", "gke_project_europe-west4_gpu"),
        ("//", "cluster"),
    ],
)
def test_names_have_what_an_address_can_have(context: str, name: str) -> None:
    """Names have only characters that are valid in an address."""
    assert cluster_name(context) == name


def test_a_broken_file_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    """A broken file is named, and the others are read."""
    write(tmp_path / "good.yaml", "good")
    (tmp_path / "bad.yaml").write_text("{", encoding="utf-8")
    (tmp_path / "pod.yaml").write_text("kind: Pod", encoding="utf-8")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    write(tmp_path / "empty.yaml")
    write(tmp_path / ".hidden", "hidden")
    (tmp_path / "folder").mkdir()
    found = find(tmp_path)
    assert [each.context for each in found.contexts] == ["good"]
    assert {file.name for file in found.broken} == {"bad.yaml", "pod.yaml", "binary", "empty.yaml"}
    assert "no context" in found.broken[tmp_path / "empty.yaml"]


def test_a_folder_that_is_not_there_is_rejected(tmp_path: Path) -> None:
    """A missing folder is rejected."""
    with pytest.raises(RejectedError, match="no-such"):
        find(tmp_path / "no-such")


def test_the_current_context_is_taken_unless_the_choice_is_open(tmp_path: Path) -> None:
    """The current context is used unless a choice is required."""
    assert current_context(write(tmp_path / "a", "east", "west", current="west")) == "west"
    assert current_context(write(tmp_path / "b", "only")) == "only"
    with pytest.raises(RejectedError, match="east, west"):
        current_context(write(tmp_path / "c", "east", "west"))


def test_a_file_that_is_not_there_is_rejected(tmp_path: Path) -> None:
    """A missing file is rejected."""
    with pytest.raises(RejectedError, match="cannot be read"):
        current_context(tmp_path / "none")


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 10)}]\n" for at in range(1, 12)
)
CONTEXT = "contexts: [{name: bad, context: {cluster: c, user: u}}]\n"
HUGE = BOMB + "clusters: [{name: c, cluster: {server: 'https://a', extensions: *a11}}]\n" + CONTEXT
LONG = f"a: &a {'x' * 500_000}\nclusters: [{{name: c, cluster: {{server: [{'*a, ' * 40_000}]}}}}]\n" + CONTEXT


@pytest.mark.parametrize(
    "text", ["expires: 2026-02-30", "a: !!timestamp foo", "a: !!bool maybe", "[" * 20_000, HUGE, LONG]
)
def test_whatever_a_file_makes_of_its_reader_the_others_go_on(text: str, tmp_path: Path) -> None:
    """YAML errors of every kind affect only their file."""
    write(tmp_path / "good", "alpha")
    (tmp_path / "bad").write_text(text, encoding="utf-8")
    found = find(tmp_path)
    assert [each.context for each in found.contexts] == ["alpha"]
    assert re.search(r"/bad is not a kubeconfig: (this YAML|line \d+, column \d+: )", found.broken[tmp_path / "bad"])


def test_whatever_an_entry_says_the_others_go_on(tmp_path: Path) -> None:
    """Invalid file names, endless files and values of wrong types are left to the connection."""
    write(tmp_path / "good", "alpha")
    given: list[dict[str, Any]] = [
        {"server": {date(2026, 1, 1): 1}},
        {"server": "https://a", "certificate-authority": "a\0b"},
        {"server": "https://a", "certificate-authority": "/dev/zero"},
    ]
    for number, cluster in enumerate(given):
        config = {
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"client-certificate": cluster.get("certificate-authority", "")}}],
            "contexts": [{"name": f"{number}", "context": {"cluster": "c", "user": "u"}}],
        }
        (tmp_path / f"{number}").write_text(yaml.safe_dump(config), encoding="utf-8")
    found = find(tmp_path)
    assert [each.context for each in found.contexts] == ["0", "1", "2", "alpha"]
    assert [bool(each.server) for each in found.contexts] == [False, True, True, False]
    assert not found.broken
