"""Parts of tests on real servers: connections that can be blocked, and a wait for a result."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

import httpx
import yaml

T = TypeVar("T")
LONGEST_S = 60.0


class Relay:
    """A relay to a server that can be blocked: it then withholds all data, as when a network fails."""

    def __init__(self, kubeconfig: Path) -> None:
        config: dict[str, Any] = yaml.safe_load(kubeconfig.read_text())
        (cluster,) = (one["cluster"] for one in config["clusters"])
        server = httpx.URL(cluster["server"])
        self._server = (server.host, server.port or 443)
        self._free = threading.Event()
        self._free.set()
        self._admission = socket.create_server(("127.0.0.1", 0))
        cluster["server"] = f"https://127.0.0.1:{self._admission.getsockname()[1]}"
        cluster.setdefault("tls-server-name", server.host)
        self.config: str = yaml.safe_dump(config)
        """A kubeconfig of the server that leads through this relay."""
        threading.Thread(target=self._let_in, daemon=True).start()

    def block(self) -> None:
        """Withhold all data."""
        self._free.clear()

    def unblock(self) -> None:
        """Pass data again."""
        self._free.set()

    def close(self) -> None:
        """Accept no more connections."""
        self._admission.shutdown(socket.SHUT_RDWR)

    def _let_in(self) -> None:
        with self._admission, suppress(OSError):
            while True:
                inner, _ = self._admission.accept()
                outer = socket.create_connection(self._server)
                for here, there in ((inner, outer), (outer, inner)):
                    threading.Thread(target=self._pass_on, args=(here, there), daemon=True).start()

    def _pass_on(self, here: socket.socket, there: socket.socket) -> None:
        with here, suppress(OSError):
            while said := here.recv(1 << 16):
                self._free.wait()
                there.sendall(said)
            there.shutdown(socket.SHUT_RDWR)


def eventually(look: Callable[[], T | None], what: str) -> T:
    """Call a function until its result is not None, and return it.

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
