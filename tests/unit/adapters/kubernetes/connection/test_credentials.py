"""Who Seaway is to a server: by whatever a kubeconfig says, wherever it is, however broken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from seaway.adapters.kubernetes.connection.credentials import Credentials
from seaway.adapters.kubernetes.connection.minify import alone
from seaway.domain.errors import RejectedError

MANY = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 10)}]\n" for at in range(1, 12)
)


def kubeconfig(file: Path, server: str = "https://a:6443", user: dict[str, str] | None = None, **cluster: str) -> Path:
    """Write a kubeconfig with one context, ``x``."""
    written: dict[str, Any] = {
        "clusters": [{"name": "c", "cluster": {"server": server} | cluster}],
        "users": [{"name": "u", "user": user or {"token": "secret"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    }
    file.write_text(yaml.safe_dump(written), encoding="utf-8")
    return file


def test_what_is_larger_than_it_looks_is_refused_before_anybody_writes_it_out(tmp_path: Path) -> None:
    """By whoever reads a kubeconfig: who connects, and who keeps one context of it."""
    file = tmp_path / "k"
    entries = "clusters: [{name: c, cluster: {server: 'https://a', extensions: *a11}}]\n"
    entries += "contexts: [{name: x, context: {cluster: c}}]\n"
    file.write_text(MANY + entries, encoding="utf-8")
    for read in (Credentials(file, "x").load, lambda: alone(file, "x", "x")):
        with pytest.raises(RejectedError, match="k is no kubeconfig: this YAML"):
            read()


def test_what_a_kubeconfig_names_is_beside_it(tmp_path: Path) -> None:
    """Whatever the file is called, as after a cluster whose name has colons, and whoever moved elsewhere meanwhile."""
    (tmp_path / "token").write_text("from-a-file", encoding="utf-8")
    who = Credentials(kubeconfig(tmp_path / "arn:aws:eks:eu:1234:gpu", user={"tokenFile": "token"}), "x")
    assert who.load().server == "https://a:6443"
    assert who.authorization() == "Bearer from-a-file"
