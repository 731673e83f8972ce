"""Credentials for API servers, read from kubeconfigs by the Kubernetes client and renewed when they expire.

Seaway runs the exec plugins of a kubeconfig itself. The client then reads their output as part of the kubeconfig.

References
----------
https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/
"""

from __future__ import annotations

import base64
import logging
import os
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from seaway.adapters.kubernetes.connection.contexts import cluster_of, read_kubeconfig, user_of
from seaway.adapters.kubernetes.connection.exec_plugins import ExecCredential, ExecPlugins
from seaway.domain.errors import RejectedError, UnavailableError
from seaway.domain.reasons import Reason

MIN_S = 1.0
MAX_S = 30.0
"""Maximum pause between renewals, in seconds.

An exec plugin may use a second of CPU time. A fix by a user takes effect after this pause.
"""


class RenewalLimit:
    """Rate limit of renewals. The first renewal is immediate, and later pauses double.

    It resets after a period without renewals. Successful calls do not reset it: some replicas of a server may accept
    the credentials while others refuse them.

    Parameters
    ----------
    clock
        Clock in seconds.
    """

    def __init__(self, clock: Callable[[], float], min_s: float = MIN_S, max_s: float = MAX_S) -> None:
        self._clock = clock
        self._least_s = min_s
        self._most_s = max_s
        self._last_s = float("-inf")
        self._pause_s = 0.0

    def allows(self) -> bool:
        """Report whether a renewal may start now, and count it if so."""
        since_s = self._clock() - self._last_s
        if since_s < self._pause_s:
            return False
        again = since_s < 2 * self._most_s
        self._pause_s = max(min(2 * self._pause_s, self._most_s) if again else 0.0, self._least_s)
        self._last_s = self._clock()
        return True

    def failed(self) -> None:
        """Restart the pause after a failure, because a slow renewal may fail after its pause ended."""
        self._last_s = self._clock()


PORTS = {"http": 80, "https": 443}
"""Default ports of addresses."""


def bypasses_proxy(server: str, no_proxy: str) -> bool:
    """Report whether connections to a server bypass the proxy of the environment.

    Parameters
    ----------
    server
        Address of the server.
    no_proxy
        Value of ``NO_PROXY``: names with their subdomains (``a.example``, ``.a.example``, ``*.a.example``), addresses,
        and ranges (``10.0.0.0/8``), each with an optional port, or ``*`` for all. Loopback addresses always bypass it.

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


def proxy_address(value: str) -> str:
    """Return a proxy's address with its scheme; the default scheme is HTTP.

    Raises
    ------
    RejectedError
        When the address is invalid. The message omits the address, which may contain a password.
    """
    address = value if "://" in value else f"http://{value}"
    try:
        where = urlsplit(address)
        known = where.scheme in PORTS and bool(where.hostname) and where.port != 0
    except ValueError:
        known = False
    if not known:
        raise RejectedError("the proxy needs an address like http://proxy.example:3128 (or https://)")
    return address


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


log = logging.getLogger(__name__)

NUMBER = re.compile(r"\[Errno \d+\] ")
"""Prefix to remove from error texts."""

FILES = ("certificate-authority", "client-certificate", "client-key")
"""Entries of a kubeconfig that name a file, or have its content as ``-data``."""

KEY = "BearerToken"
"""Name of the token's header in the Kubernetes client."""


EXPIRY_MARGIN = timedelta(minutes=1)
"""Time before its expiry at which a plugin's token is renewed."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Address of an API server, and the credentials for it.

    Attributes
    ----------
    server
        Address of the server.
    tls
        TLS context with the certificates.
    server_name
        Name in the server's certificate; empty if it equals the address.
    proxy
        Address of the proxy; empty for none.
    expires_at
        Expiry of the client certificate; None if no plugin reported it.
    """

    server: str
    tls: ssl.SSLContext
    server_name: str
    proxy: str
    expires_at: datetime | None


class _NoCredentialsError(Exception):
    """Failure of an exec plugin to return credentials."""


def load_library() -> Any:  # noqa: ANN401  # it has no types
    """Import the client library. That takes a second, and simulated clusters do not need it.

    Call it before other threads import: the library and the web pages import the same packages, and concurrent imports
    of packages that import each other can fail.
    """
    return import_module("kubernetes")


class Credentials:
    """Credentials of a kubeconfig context.

    Methods may run an exec plugin that blocks for any time. Call them only from a thread that may block.

    Parameters
    ----------
    file
        The kubeconfig; None for the service account of Seaway's pod.
    context
        Name of the context.
    """

    def __init__(self, file: Path | None, context: str = "") -> None:
        self._file = file
        self._context = context
        self._reading = threading.Lock()
        self._read: Any = None
        self._programs = ExecPlugins()
        self._given: ExecCredential | None = None
        self._renewing = RenewalLimit(time.monotonic)

    def load(self) -> Identity:
        """Load the kubeconfig and all credentials again.

        Raises
        ------
        RejectedError
            When the kubeconfig is invalid or has no valid credentials.
        """
        library = load_library()
        found, own_proxy, ends = library.client.Configuration(), False, None
        with self._reading, _captured_warnings() as said, ExitStack() as opened:
            try:
                if self._file is None:
                    library.config.load_incluster_config(client_configuration=found)
                else:  # because the client expands nested YAML aliases without a limit
                    written = read_kubeconfig(self._file)
                    self._given = given = self._run(written)
                    if given:
                        user_of(written, self._context).update(given.user)
                        ends = given.expires_at if given.certificate else None
                    for entry in (user_of(written, self._context), cluster_of(written, self._context)):
                        opened.enter_context(_in_memory(entry))
                    loader = library.config.kube_config.KubeConfigLoader(
                        written, self._context, config_base_path=str(self._file.parent.absolute())
                    )
                    loader.load_and_set(found)
                    own_proxy = "proxy-url" in cluster_of(written, self._context)
            except _NoCredentialsError as error:
                raise RejectedError(f"{self._source} gives no credentials: {_short(error)}") from None
            except Exception as error:  # noqa: BLE001  # any error of a user's file
                raise RejectedError(f"{self._source} does not say how to reach it: {_short(error)}") from None
            if said:  # if a plugin fails, the client continues without credentials
                raise RejectedError(f"{self._source} gives no credentials: {_short(said[0])}")
            self._read = found
            try:
                proxy = _proxy(found, own=own_proxy)
            except RejectedError as error:
                raise RejectedError(f"{self._source}: {error}") from None
            return Identity(found.host, _tls(found, self._source), found.tls_server_name or "", proxy, ends)

    def authorization(self) -> str:
        """Return the current ``Authorization`` header; empty for authentication by certificate only.

        Raises
        ------
        UnavailableError
            When an exec plugin failed.
        """
        with self._reading, _captured_warnings() as said:
            if (given := self._given) and given.token:
                return f"Bearer {self._renewed(given).token}"
            header = self._read.get_api_key_with_prefix(KEY) if self._read else ""
            if said:
                raise UnavailableError(Reason("no_credentials", source=self._source, why=_short(said[0])))
        return str(header or "")

    def end(self) -> None:
        """Kill the running exec plugin. Any thread may call it."""
        self._programs.end()

    def _run(self, written: dict[str, Any]) -> ExecCredential | None:
        """Run the exec plugin of a kubeconfig; return None if the kubeconfig contains credentials."""
        user = user_of(written, self._context)
        wanted = user.pop("exec", None)
        if self._file is None or not isinstance(wanted, dict) or user.get("token") or user.get("tokenFile"):
            return None
        try:
            return self._programs.run(wanted, cluster_of(written, self._context), self._file.parent.absolute())
        except RejectedError as error:
            raise _NoCredentialsError(error.message) from None

    def _renewed(self, given: ExecCredential) -> ExecCredential:
        """Return the plugin's credentials, and renew them if they expire soon.

        If the renewal fails, retry with back-off. The current credentials stay valid until they expire.
        """
        if self._file is None or given.expires_at is None or datetime.now(UTC) < given.expires_at - EXPIRY_MARGIN:
            return given
        if datetime.now(UTC) < given.expires_at and not self._renewing.allows():
            return given
        try:
            self._given = self._run(read_kubeconfig(self._file)) or given
        except (RejectedError, _NoCredentialsError) as error:
            self._renewing.failed()
            why = Reason("no_credentials", source=self._source, why=_short(error))
            if datetime.now(UTC) >= given.expires_at:
                raise UnavailableError(why) from None
            log.warning(
                "%s; its last credentials are valid until %s", why, given.expires_at.isoformat(timespec="seconds")
            )
            return given
        self._renewing = RenewalLimit(time.monotonic)
        return self._given

    @property
    def _source(self) -> str:
        return f"the context {self._context!r} of {self._file}" if self._file else "the service account"


def _proxy(found: Any, *, own: bool) -> str:  # noqa: ANN401  # as below
    """Return the address of the proxy, or an empty text. A proxy of the kubeconfig (`own`) ignores ``NO_PROXY``.

    Raises
    ------
    RejectedError
        When the address of the server or the proxy is invalid.
    """
    try:
        if "@" in urlsplit(found.host).netloc:
            raise RejectedError("the server's address has a user in it; give a token or a certificate")
        spared = not found.proxy or (not own and bypasses_proxy(found.host, found.no_proxy or ""))
    except ValueError as error:
        raise RejectedError(f"the server's address is invalid: {error}") from None
    return "" if spared else proxy_address(found.proxy)


def _tls(found: Any, where: str) -> ssl.SSLContext:  # noqa: ANN401  # the client's own settings, without types
    """Create a TLS context from the Kubernetes client's configuration."""
    verify = bool(found.verify_ssl)
    try:
        tls = ssl.create_default_context(cafile=found.ssl_ca_cert or None)
        if not verify:
            tls.check_hostname = False
            tls.verify_mode = ssl.CERT_NONE
        if found.cert_file:
            tls.load_cert_chain(found.cert_file, found.key_file or None)
    except (OSError, ssl.SSLError) as error:
        raise RejectedError(f"{where}: its certificates cannot be used: {_short(error)}") from None
    return tls


@contextmanager
def _in_memory(entry: dict[str, Any]) -> Iterator[None]:
    """Replace keys and certificates in a kubeconfig entry by files in memory.

    The library would write them to files in the temporary folder, which stay there if the process is killed. Other
    systems than Linux have no such files.
    """
    with ExitStack() as opened:
        for name in FILES if hasattr(os, "memfd_create") else ():
            if content := entry.pop(f"{name}-data", None):
                file = opened.enter_context(os.fdopen(os.memfd_create(name), "wb"))
                file.write(base64.b64decode(content))
                file.flush()
                entry[name] = f"/proc/self/fd/{file.fileno()}"
        yield


@contextmanager
def _captured_warnings() -> Iterator[list[str]]:
    """Collect the errors that the Kubernetes client only logs."""
    messages: list[str] = []
    me = threading.get_ident()

    def capture(record: logging.LogRecord) -> bool:
        if record.thread == me:
            messages.append(record.getMessage())
            return False
        return True

    root = logging.getLogger()
    root.addFilter(capture)
    try:
        yield messages
    finally:
        root.removeFilter(capture)


def _short(error: object) -> str:
    text = NUMBER.sub("", " ".join(str(error).split()))
    return text[:300] or type(error).__name__
