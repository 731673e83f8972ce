"""Calls about the service itself: whether it is ready, what is wrong, and what if."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from seaway.client.call import Answer, Call, Model, Text, get, send

if TYPE_CHECKING:
    from seaway.wire.alerts import AlertList
    from seaway.wire.whatif import ConsequencesOut

ALERTS: Answer[AlertList] = Model("seaway.wire.alerts", "AlertList")
CONSEQUENCES: Answer[ConsequencesOut] = Model("seaway.wire.whatif", "ConsequencesOut")


def health() -> Call[str]:
    """Ask whether the server lives."""
    return Call("GET", "/healthz", Text())


def ready() -> Call[str]:
    """Ask whether the server is ready for requests."""
    return Call("GET", "/readyz", Text())


def alerts() -> Call[AlertList]:
    """List what is wrong: clusters that stand idle, jobs that wait for long, deployments and databases that fail."""
    return get("/alerts", ALERTS)


def whatif(question: Mapping[str, Any]) -> Call[ConsequencesOut]:
    """Ask what would happen, on a copy of the live fleet and its queue; nothing is touched. Takes an operator.

    Parameters
    ----------
    question
        All that is set holds at once: ``drain`` (clusters, or ``cluster/node``), ``add_nodes`` (each with
        ``cluster``, ``like``, ``count``), ``policy`` (by which everything is placed anew), ``replay`` (place
        everything anew) and ``jobs`` (that come).
    """
    return send("POST", "/whatif", CONSEQUENCES, {"question": dict(question)})
