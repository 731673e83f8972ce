"""Asks an API server every so often whether it is there: a watch that is silent says nothing about that."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random

from seaway.adapters.kubernetes.collect.health import Health
from seaway.adapters.kubernetes.connection.api import Api
from seaway.adapters.kubernetes.connection.backoff import Bell
from seaway.adapters.kubernetes.connection.errors import ApiError
from seaway.domain.errors import UnavailableError

SOURCE = "/readyz"


async def ping(api: Api, health: Health, random: Random, every_s: float, bell: Bell) -> None:
    """Note in `health` whether the server answers, until cancelled; a refusal is an answer too.

    The first answer after a silence rings `bell`, so that what waits to try again need not wait any longer.
    """
    silent = False
    while True:
        try:
            with suppress(ApiError):
                await api.get(SOURCE)
        except UnavailableError as error:
            health.failed(SOURCE, str(error))
            silent = True
        else:
            health.heard(SOURCE)
            if silent:
                bell.ring()
            silent = False
        await asyncio.sleep(every_s * random.uniform(0.75, 1.25))
