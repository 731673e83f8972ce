"""Ports for servers of tests."""

from __future__ import annotations

import socket


def free_port() -> int:
    """Return a port of the loopback interface that nobody listens at."""
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return int(door.getsockname()[1])
