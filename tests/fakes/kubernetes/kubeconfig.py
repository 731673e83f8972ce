"""Kubeconfigs, as files."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.fakes.kubernetes.kinds import Json


@dataclass(frozen=True, slots=True)
class Entry:
    """One context: a cluster and the user.

    Attributes
    ----------
    name
        Of the context and its cluster.
    url
        URL of the server.
    token
        Empty for none.
    authority, certificate, key
        PEM texts, or empty.
    """

    name: str
    url: str
    token: str = ""
    authority: bytes = b""
    certificate: bytes = b""
    key: bytes = b""


def write_kubeconfig(path: Path, entries: Sequence[Entry], current: str = "") -> Path:
    """Write a kubeconfig that only its owner can read; its context is `current`, or the first."""
    clusters, users, contexts = [], [], []
    for one in entries:
        cluster: Json = {"server": one.url}
        user: Json = {"token": one.token} if one.token else {}
        for part, name, text in (
            (cluster, "certificate-authority-data", one.authority),
            (user, "client-certificate-data", one.certificate),
            (user, "client-key-data", one.key),
        ):
            if text:
                part[name] = base64.b64encode(text).decode()
        clusters.append({"name": one.name, "cluster": cluster})
        users.append({"name": f"{one.name}-admin", "user": user})
        contexts.append({"name": one.name, "context": {"cluster": one.name, "user": f"{one.name}-admin"}})
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": clusters,
        "users": users,
        "contexts": contexts,
        "current-context": current or entries[0].name,
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    return path
