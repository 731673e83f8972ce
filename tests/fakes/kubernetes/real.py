"""Real servers, by the kubeconfigs that SEAWAY_TEST_KARMADA and SEAWAY_TEST_MEMBERS name, and clients for them."""

from __future__ import annotations

import base64
import os
import ssl
import tempfile
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import yaml

KARMADA = "SEAWAY_TEST_KARMADA"
MEMBERS = "SEAWAY_TEST_MEMBERS"


def kubeconfigs(variable: str) -> list[Path]:
    """Return the kubeconfigs in a variable, separated by colons."""
    return [Path(one) for one in os.environ.get(variable, "").split(":") if one]


def connect(kubeconfig: Path) -> httpx.Client:
    """Return a client of the current context of a kubeconfig."""
    config: dict[str, Any] = yaml.safe_load(kubeconfig.read_text())
    contexts = {one["name"]: one["context"] for one in config["contexts"]}
    context = contexts[config["current-context"]]
    cluster = next(one["cluster"] for one in config["clusters"] if one["name"] == context["cluster"])
    user = next(one["user"] for one in config["users"] if one["name"] == context["user"])
    headers = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
    trusting = ssl.create_default_context()
    if "certificate-authority-data" in cluster:
        trusting = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    if "client-certificate-data" in user:
        with tempfile.TemporaryDirectory() as folder:
            for name in ("client-certificate-data", "client-key-data"):
                (Path(folder) / name).write_bytes(base64.b64decode(user[name]))
            trusting.load_cert_chain(Path(folder) / "client-certificate-data", Path(folder) / "client-key-data")
    return httpx.Client(base_url=cluster["server"], headers=headers, verify=trusting, timeout=30)


def new_name(prefix: str = "seaway-test") -> str:
    """Return an unused name."""
    return f"{prefix}-{uuid4().hex[:8]}"
