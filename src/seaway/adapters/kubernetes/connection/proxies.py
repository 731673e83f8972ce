"""Which proxy is on the way to an API server: the kubeconfig's own, else the environment's, as ``kubectl`` has it."""

from __future__ import annotations

from importlib import import_module
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from seaway.domain.errors import RejectedError

PORTS = {"http": 80, "https": 443}
"""What an address means that names no port."""


def is_spared(server: str, no_proxy: str) -> bool:
    """Tell whether no proxy of the environment is gone through to a server.

    Parameters
    ----------
    server
        Its address.
    no_proxy
        The variable: names with all below them (``a.example``, ``.a.example``, ``*.a.example``), addresses and their
        ranges (``10.0.0.0/8``), each perhaps with a port, or ``*`` for all. What is on this machine is spared anyway.

    References
    ----------
    golang.org/x/net/http/httpproxy, ``Config.NoProxy``.
    """
    where = urlsplit(server)
    host = where.hostname or ""
    if host == "localhost" or _is_loopback(host):
        return True
    address = f"[{host}]" if ":" in host else host
    rest: Any = import_module("kubernetes.client.rest")
    entries = (each.strip() for each in no_proxy.split(","))
    spared = ",".join(each if each == "*" else each.removeprefix("*") for each in entries)
    url = f"{where.scheme}://{address}:{where.port or PORTS.get(where.scheme)}"
    return bool(rest.should_bypass_proxies(url, spared))


def proxy_address(said: str) -> str:
    """Return a proxy's address as it is called; one without a scheme speaks HTTP.

    Raises
    ------
    RejectedError
        When it is none that Seaway can speak to; does not show it, as there may be a password in it.
    """
    address = said if "://" in said else f"http://{said}"
    try:
        where = urlsplit(address)
        known = where.scheme in PORTS and bool(where.hostname) and where.port != 0
    except ValueError:
        known = False
    if not known:
        raise RejectedError("the proxy on the way there needs an address like http://proxy.example:3128 (or https://)")
    return address


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
