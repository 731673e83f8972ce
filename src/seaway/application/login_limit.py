"""Limit on failed logins from one address.

The limit reduces load and log volume. Secrets are too long to guess at any rate, so a valid token is accepted
regardless of earlier failures from its address.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from threading import Lock

from seaway.application.ports.clock import Clock
from seaway.domain.errors import TooManyError

MAX_FAILURES = 10
"""Number of failures from one address before it is throttled."""

WINDOW_S = 60
MAX_ADDRESSES = 10_000
"""Maximum number of addresses in memory. Addresses with the oldest failures are removed first."""

IPV6_SITE_BITS = 64
"""Length of the IPv6 prefix that counts as one client, since a client usually controls a whole network."""


class TooManyFailuresError(TooManyError):
    """Too many failed logins from one address.

    Parameters
    ----------
    retry_after_s
        Seconds to wait before the next try.
    """

    def __init__(self, retry_after_s: int) -> None:
        text = f"too many requests without a valid token from your address; try again in {retry_after_s} s"
        super().__init__(text, retry_after_s=retry_after_s)


class LoginLimit:
    """Counter of failures by address. A window starts with the first failure and uses monotonic time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: OrderedDict[str, tuple[int, int]] = OrderedDict()
        self._lock = Lock()

    def require(self, address: str) -> None:
        """Check that an address can try a login.

        Raises
        ------
        TooManyFailuresError
            If the address has to wait.
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
            If the address already reached the limit.
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
    """Return the key shared by all clients behind an address."""
    try:
        read = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]
    if isinstance(read, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((read, IPV6_SITE_BITS), strict=False).network_address)
    return address
