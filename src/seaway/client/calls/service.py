"""Calls about the service itself: whether it is ready, and what if."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seaway.client.call import Call, Data, Text, send


def health() -> Call[str]:
    """Ask whether the server lives."""
    return Call("GET", "/healthz", Text())


def ready() -> Call[str]:
    """Ask whether the server is ready for requests."""
    return Call("GET", "/readyz", Text())


def whatif(question: Mapping[str, Any]) -> Call[dict[str, Any]]:
    """Ask a question on a copy of the live fleet; nothing is touched.

    Parameters
    ----------
    question
        One of ``{"drain": "cluster/node"}``, ``{"add_nodes": {"cluster": ..., "like": node, "count": n}}``,
        ``{"policy": name}``, ``{"jobs": [...]}`` and ``{"replay": True}``.

    Returns
    -------
    dict
        ``before`` and ``after`` (placed, waiting, allocation_percent, fragmentation), ``moved``, ``waiting``,
        ``started`` and a ``sentence``.
    """
    return send("POST", "/whatif", Data(), {"question": dict(question)})
