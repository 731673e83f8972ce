"""Seaway schedules GPU work across many Kubernetes clusters and the network between them."""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` is slow to import, and Ctrl-C meanwhile is a traceback
if TYPE_CHECKING:
    from seaway.client.aio import AsyncClient
    from seaway.client.sync import Client

__version__ = "0.1.0"

__all__ = ["AsyncClient", "Client", "__version__"]


def __getattr__(name: str) -> object:
    """Import a client when it is first asked for, so that ``import seaway`` costs nothing."""
    if name == "Client":
        from seaway.client.sync import Client

        return Client
    if name == "AsyncClient":
        from seaway.client.aio import AsyncClient

        return AsyncClient
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
