"""A limit on failed logins from one address.

It spares work and logs; secrets are too long to be guessed at any rate. So a token that holds is let
through whatever came from its address before.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from threading import Lock

from seaway.application.ports.clock import Clock
from seaway.domain.errors import SeawayError

MAX_FAILURES = 10
"""Failures from one address before it has to wait."""

WINDOW_S = 60
MAX_ADDRESSES = 10_000
"""Addresses that are remembered; the one that failed longest ago is forgotten first."""

IPV6_SITE_BITS = 64
"""Length of the IPv6 prefix that counts as one client, since a client usually controls a whole network."""


class TooManyFailuresError(SeawayError):
    """Too many logins from one address failed.

    Parameters
    ----------
    retry_after_s
        After how many seconds another try makes sense.
    """

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(f"too many invalid tokens from your address; try again in {retry_after_s} s")
        self.retry_after_s = retry_after_s


class LoginLimit:
    """Counts failures by address, in windows that begin with the first.

    Parameters
    ----------
    clock
        Goes by its time that never goes back.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: OrderedDict[str, tuple[int, int]] = OrderedDict()
        self._lock = Lock()

    def require(self, address: str) -> None:
        """Check whether an address may try.

        Raises
        ------
        TooManyFailuresError
            When it has to wait.
        """
        if not self._failures:
            return
        began_ns, count = self._failures.get(site(address), (0, 0))
        left_ns = began_ns + WINDOW_S * 10**9 - self._clock.monotonic_ns()
        if count >= MAX_FAILURES and left_ns > 0:
            raise TooManyFailuresError(-(-left_ns // 10**9))

    def fail(self, address: str) -> None:
        """Count a failure.

        Raises
        ------
        TooManyFailuresError
            When there were too many before.
        """
        self.require(address)
        now_ns = self._clock.monotonic_ns()
        with self._lock:
            began_ns, count = self._failures.pop(site(address), (now_ns, 0))
            if now_ns - began_ns >= WINDOW_S * 10**9:
                began_ns, count = now_ns, 0
            self._failures[site(address)] = (began_ns, count + 1)
            while len(self._failures) > MAX_ADDRESSES:
                self._failures.popitem(last=False)

    def __len__(self) -> int:
        return len(self._failures)


def site(address: str) -> str:
    """Return what stands for everybody behind an address."""
    try:
        read = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]
    if isinstance(read, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((read, IPV6_SITE_BITS), strict=False).network_address)
    return address
