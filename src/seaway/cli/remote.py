"""Connections of commands to the server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import typer

from seaway.cli.output import Output
from seaway.domain.errors import SeawayError

if TYPE_CHECKING:
    from seaway.client.aio import AsyncClient
    from seaway.client.call import Call, Paged
    from seaway.client.config import Target
    from seaway.client.sync import Client

Body = dict[str, Any]
"""JSON object of the API. Commands print it unchanged, and need not import `seaway.wire`, whose import is slow."""

PATIENCE_S = 2.0
"""Time to wait at a prompt for a server that cannot be reached, in seconds."""

ATTACHED_S = 60.0
"""Time to wait, while following, for a server that answered before and may be restarting, in seconds."""

COMPILED_S = 600.0
"""Time to wait for the compilation of a policy, in seconds."""

WATCHED_S = 10.0
"""Timeout of a request of a live view, in seconds."""


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Options before the command. None means the next source."""

    server: str | None = None
    profile: str | None = None


def connect(context: typer.Context, timeout_s: float = 30.0) -> Client:
    """Return a client for the selected server, with a timeout of each request in seconds."""
    from seaway.cli.errors import CHANGES
    from seaway.client.connection import Pace
    from seaway.client.sync import LightClient

    asked = _asked(context)
    client = LightClient(asked.server, profile=asked.profile, timeout_s=timeout_s, pace=Pace(PATIENCE_S))
    client.on_change = CHANGES.append
    return client


def currency_of(client: Client, output: Output) -> str:
    """Return the currency of costs and prices in a table; empty for other output, or if the server has none."""
    from seaway.client.calls.service import me

    return str(client.body(me()).get("currency", "")) if output in (Output.TABLE, Output.WIDE) else ""


def connect_to_follow(context: typer.Context) -> AsyncClient:
    """Return a client for the selected server with concurrent requests and long timeouts."""
    from seaway.client.connection import Pace, import_httpx

    import_httpx()
    from seaway.client.aio import AsyncClient

    asked = _asked(context)
    once = cache(_report_wait)  # one message for all streams
    return AsyncClient(asked.server, profile=asked.profile, pace=Pace(ATTACHED_S, on_wait=once))


def connect_to_watch(context: typer.Context) -> AsyncClient:
    """Return a client for the selected server without retries, for callers that show errors and retry themselves."""
    from seaway.client.connection import Pace, import_httpx

    import_httpx()
    from seaway.client.aio import AsyncClient

    asked = _asked(context)
    return AsyncClient(asked.server, profile=asked.profile, timeout_s=WATCHED_S, pace=Pace(0.0))


def retry_longer(client: Client, patience_s: float = ATTACHED_S) -> None:
    """Raise the time for retries, because the server was running before, and print its requests to wait."""
    client.pace = replace(client.pace, patience_s=patience_s, on_wait=partial(_report_wait, patience_s=patience_s))


def body_when_compiled(client: Client, call: Call[Any]) -> Body:
    """Return the answer of a call. While a policy is being compiled, print that, and wait for it."""
    try:
        return client.body(call)
    except SeawayError as error:
        from seaway.client.errors import compiles

        if not compiles(error):
            raise
        retry_longer(client, COMPILED_S)
        return client.body(call)


def _report_wait(why: str, patience_s: float = ATTACHED_S) -> None:
    from seaway.cli.errors import note

    note(f"{why}; trying again for up to {patience_s:.0f} s")


def target(context: typer.Context) -> Target:
    """Return the selected server without a request."""
    from seaway.client.config import Target

    asked = _asked(context)
    return Target.find(asked.server, profile=asked.profile)


def whole(client: Client, paged: Paged[Any]) -> Body:
    """Fetch a list, page by page up to its limit, and return it as one object."""
    page = client.body(paged.first)
    items = list(page[paged.items])
    while (call := paged.after(page["next"], len(items))) is not None:
        page = client.body(call)
        items += page[paged.items]
    return {**page, paged.items: items}


def each_of(names: list[str], take: Callable[[str], None]) -> None:
    """Call a function for each name, and continue after errors.

    Raises
    ------
    typer.Exit
        When a call failed, after all calls.
    """
    from seaway.cli.errors import code_of, print_error

    worst = 0
    for name in names:
        try:
            take(name)
        except SeawayError as error:
            print_error(error)
            worst = max(worst, code_of(error))
    if worst:
        raise typer.Exit(worst)


def _asked(context: typer.Context) -> ServerOptions:
    """Return the options before the command. Shell completion does not set them in the context."""
    if isinstance(context.obj, ServerOptions):
        return context.obj
    given = context.find_root().params
    return ServerOptions(given.get("server"), given.get("profile"))
