"""Tokens that end while a user looks: his browser has the next one, without his page being loaded again.

The browser keeps by what a provider renews a token, and no page sees that. So shortly before a token ends the server
has the page's browser ask for another; what comes of it goes to the browser, and by a secret of the page to the page.
"""

from __future__ import annotations

import asyncio
import json
import math
import secrets
import time
from typing import TYPE_CHECKING

import jwt

from seaway.domain.errors import SeawayError
from seaway.web import addresses

if TYPE_CHECKING:
    from seaway.web.visit import Visit
    from seaway.wire.tokens import CallerOut

EARLY_S = 30.0
"""How long before its end a token is renewed, at most half of what is left of it."""

MIN_S = 5.0
"""How long after it came it is renewed at the earliest."""

ASK = "fetch({address}, {{method: 'POST', body: new URLSearchParams({{page: {page}}})}}).catch(() => null)"


class Renewals:
    """Knows the pages that are looked at with tokens that end."""

    def __init__(self) -> None:
        self._pages: dict[str, Visit] = {}

    def __len__(self) -> int:
        return len(self._pages)

    def watch(self, visit: Visit) -> None:
        """Have a visitor's token renewed in time, until he leaves; nothing where it does not say when it ends."""
        if left_s(visit.asker.token) <= 0:
            return
        page = secrets.token_urlsafe(24)
        self._pages[page] = visit
        visit.client.on_delete(lambda: self._pages.pop(page, None))
        self._wait(page, visit)

    async def renewed(self, page: str, who: CallerOut, token: str) -> None:
        """Have a page go on by another token; one that cannot, or shows what another may see, is loaded again."""
        visit = self._pages.get(page)
        if visit is None:
            return
        if who != visit.who:
            visit.leave()
            return
        try:
            await visit.take(token)
        except SeawayError:
            visit.leave()
        else:
            self._wait(page, visit)

    def _wait(self, page: str, visit: Visit) -> None:
        left = left_s(visit.asker.token)
        if left > 0:
            pause_s = max(left - min(EARLY_S, left / 2), MIN_S)
            asyncio.get_running_loop().call_later(pause_s, self._ask, page)

    def _ask(self, page: str) -> None:
        if (visit := self._pages.get(page)) is not None:
            visit.client.run_javascript(ASK.format(address=json.dumps(addresses.LOGIN_RENEW), page=json.dumps(page)))


def left_s(token: str) -> float:
    """Return for how many seconds a token says that it holds; 0 for one that says nothing, or that it is over."""
    try:
        left = float(jwt.decode(token, options={"verify_signature": False})["exp"]) - time.time()
        return left if 0 < left < math.inf else 0.0
    except (jwt.PyJWTError, KeyError, TypeError, ValueError):
        return 0.0
