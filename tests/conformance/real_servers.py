"""Real servers, by the kubeconfigs that SEAWAY_TEST_KARMADA and SEAWAY_TEST_MEMBERS name, and clients for them."""

from __future__ import annotations

import base64
import os
import socket
import ssl
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar
from uuid import uuid4

import httpx
import yaml

T = TypeVar("T")
KARMADA = "SEAWAY_TEST_KARMADA"
MEMBERS = "SEAWAY_TEST_MEMBERS"
LONGEST_S = 60.0


def kubeconfigs(variable: str) -> list[Path]:
    """Return the kubeconfigs that a variable names, with colons between."""
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


class Relay:
    """A way to a server that can be blocked: what is sent then is kept back, as when a network fails."""

    def __init__(self, kubeconfig: Path) -> None:
        config: dict[str, Any] = yaml.safe_load(kubeconfig.read_text())
        (cluster,) = (one["cluster"] for one in config["clusters"])
        server = httpx.URL(cluster["server"])
        self._server = (server.host, server.port or 443)
        self._free = threading.Event()
        self._free.set()
        self._door = socket.create_server(("127.0.0.1", 0))
        cluster["server"] = f"https://127.0.0.1:{self._door.getsockname()[1]}"
        cluster.setdefault("tls-server-name", server.host)
        self.config: str = yaml.safe_dump(config)
        """A kubeconfig of the server that leads through here."""
        threading.Thread(target=self._let_in, daemon=True).start()

    def block(self) -> None:
        """Let nothing through any more."""
        self._free.clear()

    def unblock(self) -> None:
        """Let everything through again."""
        self._free.set()

    def close(self) -> None:
        """Let nobody in any more."""
        self._door.shutdown(socket.SHUT_RDWR)

    def _let_in(self) -> None:
        with self._door, suppress(OSError):
            while True:
                inner, _ = self._door.accept()
                outer = socket.create_connection(self._server)
                for here, there in ((inner, outer), (outer, inner)):
                    threading.Thread(target=self._pass_on, args=(here, there), daemon=True).start()

    def _pass_on(self, here: socket.socket, there: socket.socket) -> None:
        with here, suppress(OSError):
            while said := here.recv(1 << 16):
                self._free.wait()
                there.sendall(said)
            there.shutdown(socket.SHUT_RDWR)


def new_name(prefix: str = "seaway-test") -> str:
    """Return a name that nothing has."""
    return f"{prefix}-{uuid4().hex[:8]}"


def eventually(look: Callable[[], T | None], what: str) -> T:
    """Look again and again until something is there, and return it.

    Raises
    ------
    AssertionError
        If it takes too long.
    """
    end = monotonic() + LONGEST_S
    pause = threading.Event()
    while monotonic() < end:
        if found := look():
            return found
        pause.wait(0.02)
    raise AssertionError(f"this did not happen within {LONGEST_S:.0f} s: {what}")
