"""Renewal of tokens before they expire, without a reload of the page.

Pages cannot read the refresh token, which is in a cookie. The server therefore makes the page's browser send a renewal
request shortly before a token expires. The response sets the cookies, and a secret of the page identifies its visit.
"""

from __future__ import annotations

import asyncio
import json
import math
import secrets
import time

import jwt

from seaway.domain.errors import SeawayError
from seaway.web import addresses
from seaway.web.visit import Visit
from seaway.wire.tokens import CallerOut

EARLY_S = 30.0
"""Time before expiry at which a token is renewed, in seconds; at most half of its remaining lifetime."""


MIN_S = 5.0
"""Minimum delay before a renewal, in seconds."""


ASK = "fetch({address}, {{method: 'POST', body: new URLSearchParams({{page: {page}}})}}).catch(() => null)"


class Renewals:
    """Open pages whose tokens expire."""

    def __init__(self) -> None:
        self._pages: dict[str, Visit] = {}

    def __len__(self) -> int:
        return len(self._pages)

    def watch(self, visit: Visit) -> None:
        """Schedule renewals of a visitor's token until the page closes. Ignore a token without expiry."""
        if left_s(visit.asker.token) <= 0:
            return
        page = secrets.token_urlsafe(24)
        self._pages[page] = visit
        visit.client.on_delete(lambda: self._pages.pop(page, None))
        self._wait(page, visit)

    async def renewed(self, page: str, who: CallerOut, token: str) -> None:
        """Set the new token of a page. Reload the page if that fails, or if the new token has other permissions."""
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
    """Return the remaining lifetime of a token in seconds; 0 if it has expired or never expires."""
    try:
        left = float(jwt.decode(token, options={"verify_signature": False})["exp"]) - time.time()
        return left if 0 < left < math.inf else 0.0
    except (jwt.PyJWTError, KeyError, TypeError, ValueError):
        return 0.0
