"""Calls of a gateway's agent, and of whoever keeps a gateway as the control plane wants it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seaway.client.call import Call, Data, Known, Nothing, get, part, send


def targets(gateway: str, known: Known | None = None) -> Call[dict[str, Any]]:
    """Say what a gateway's agent has to measure."""
    return get("/network/targets", Data(), {"gateway": gateway}, known)


def report(body: Mapping[str, Any]) -> Call[None]:
    """Bring what a gateway's agent measured; a second time it is refused, so that it can be sent again."""
    return send("POST", "/network/reports", Nothing(), body)


def wanted(gateway: str, known: Known | None = None) -> Call[dict[str, Any]]:
    """Say how a gateway is to be, and which paths traffic from it takes."""
    return get(f"/network/gateways/{part(gateway)}", Data(), known=known)


def applied(gateway: str, body: Mapping[str, Any]) -> Call[None]:
    """Confirm which paths a gateway has written."""
    return send("POST", f"/network/gateways/{part(gateway)}/applied", Nothing(), body)
