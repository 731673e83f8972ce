"""Asks an API server every so often whether it is there: a watch that is silent says nothing about that."""

from __future__ import annotations

import asyncio
from random import Random

from seaway.adapters.kubernetes.collect.health import ANSWERS, Health
from seaway.adapters.kubernetes.connection.api import Api
from seaway.adapters.kubernetes.connection.backoff import Bell
from seaway.adapters.kubernetes.connection.errors import ApiError
from seaway.domain.errors import UnavailableError

SOURCE = ANSWERS


async def ping(api: Api, health: Health, random: Random, every_s: float, bell: Bell) -> None:
    """Note in `health` whether the server answers, until cancelled.

    A refusal is an answer, too, unless the server does not know who asks: nothing can be written then, though
    watches that are open go on. A failure is none: that of a proxy which does not reach the server, or of a server
    that is alive no more, as without its store.

    The first answer after a silence rings `bell`, so that what waits to try again need not wait any longer.

    References
    ----------
    https://kubernetes.io/docs/reference/using-api/health-checks/; k8s.io/apiserver
    ``pkg/apis/flowcontrol/bootstrap``: who asks that is kept waiting by nobody else's calls.
    """
    silent = False
    while True:
        try:
            await api.ready()  # a program that says who Seaway is may take long, which is no silence of the server
            health.asked()
            why = await _why_silent(api)
        except UnavailableError as error:
            why = str(error)
        if why:
            health.failed(SOURCE, why)
        else:
            health.heard(SOURCE)
            if silent:
                bell.ring()
        silent = bool(why)
        await asyncio.sleep(every_s * random.uniform(0.75, 1.25))


async def _why_silent(api: Api) -> str:
    """Ask; return why the answer is none, empty when it is one."""
    try:
        await api.get(SOURCE)
    except ApiError as error:
        return str(error) if error.unauthorized else ""
    return ""
