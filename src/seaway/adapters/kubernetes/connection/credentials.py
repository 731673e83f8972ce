"""Who Seaway is to an API server: read from a kubeconfig by Kubernetes' own client, and again when it expires.

Programs that it names are run here, and the client sees what they said as if it stood in the kubeconfig.

References
----------
https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/
"""

from __future__ import annotations

import logging
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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

MIN_S = 1.0
MAX_S = 30.0
"""A program of a user's cloud may cost a second of a processor each time; what was mended is seen as late as this."""


class RenewalLimit:
    """Lets the first one through at once, and more after pauses that double; forgets when there was none for a while.

    Answers that are good do not count: part of a server may know Seaway, and part not.

    Parameters
    ----------
    clock
        Seconds.
    """

    def __init__(self, clock: Callable[[], float], min_s: float = MIN_S, max_s: float = MAX_S) -> None:
        self._clock = clock
        self._least_s = min_s
        self._most_s = max_s
        self._last_s = float("-inf")
        self._pause_s = 0.0

    def allows(self) -> bool:
        """Tell whether it is time for one, which is then begun."""
        since_s = self._clock() - self._last_s
        if since_s < self._pause_s:
            return False
        again = since_s < 2 * self._most_s
        self._pause_s = max(min(2 * self._pause_s, self._most_s) if again else 0.0, self._least_s)
        self._last_s = self._clock()
        return True

    def failed(self) -> None:
        """Count the pause from now: one that took long failed, and is not to be begun at once for everybody."""
        self._last_s = self._clock()


PORTS = {"http": 80, "https": 443}
"""What an address means that names no port."""


def bypasses_proxy(server: str, no_proxy: str) -> bool:
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


def proxy_address(value: str) -> str:
    """Return a proxy's address as it is called; one without a scheme speaks HTTP.

    Raises
    ------
    RejectedError
        When it is none that Seaway can speak to; does not show it, as there may be a password in it.
    """
    address = value if "://" in value else f"http://{value}"
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


log = logging.getLogger(__name__)

NUMBER = re.compile(r"\[Errno \d+\] ")
"""What the words behind it say better."""

KEY = "BearerToken"
"""What the client calls the header with the token."""


EXPIRY_MARGIN = timedelta(minutes=1)
"""How long before a program's token ends another is asked for."""


@dataclass(frozen=True, slots=True)
class Identity:
    """How to reach an API server, and as whom.

    Attributes
    ----------
    server
        Its address.
    tls
        Certificates to trust and to show.
    server_name
        What the server's certificate names instead of the address; empty for the address.
    proxy
        Address of a proxy on the way; empty without one.
    expires_at
        When the certificate that it shows ends, where a program gave it and said so; None where no one did.
    """

    server: str
    tls: ssl.SSLContext
    server_name: str
    proxy: str
    expires_at: datetime | None


class _NoCredentialsError(Exception):
    """A program gave no credentials."""


class Credentials:
    """What a context of a kubeconfig says, kept up to date.

    Reading may run a program that a user's cloud brings and that takes as long as it likes: call every
    method from a thread that may wait.

    Parameters
    ----------
    file
        The kubeconfig; None for the service account of the pod that Seaway runs in.
    context
        Which of its contexts.
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
        """Read everything again.

        Raises
        ------
        RejectedError
            When the kubeconfig is broken, or says no more who Seaway is.
        """
        library: Any = import_module("kubernetes")  # here, as it takes a second, and only real clusters need it
        found, own_proxy, ends = library.client.Configuration(), False, None
        with self._reading, _captured_warnings() as said:
            try:
                if self._file is None:
                    library.config.load_incluster_config(client_configuration=found)
                else:  # read here, as the client would write out in full what aliases of aliases stand for
                    written = read_kubeconfig(self._file)
                    self._given = given = self._run(written)
                    if given:
                        user_of(written, self._context).update(given.user)
                        ends = given.expires_at if given.certificate else None
                    loader = library.config.kube_config.KubeConfigLoader(
                        written, self._context, config_base_path=str(self._file.parent.absolute())
                    )
                    loader.load_and_set(found)
                    own_proxy = "proxy-url" in cluster_of(written, self._context)
            except _NoCredentialsError as error:
                raise RejectedError(f"{self._where} gives no credentials: {_short(error)}") from None
            except Exception as error:  # noqa: BLE001  # whatever is wrong in a user's file
                raise RejectedError(f"{self._where} does not say how to reach it: {_short(error)}") from None
            if said:  # the client goes on without credentials when what it asks for them fails
                raise RejectedError(f"{self._where} gives no credentials: {_short(said[0])}")
            self._read = found
        try:
            proxy = _proxy(found, own=own_proxy)
        except RejectedError as error:
            raise RejectedError(f"{self._where}: {error}") from None
        return Identity(found.host, _tls(found, self._where), found.tls_server_name or "", proxy, ends)

    def authorization(self) -> str:
        """Return the header ``Authorization`` as it is now; empty where a certificate says it all.

        Raises
        ------
        UnavailableError
            When a program that gives tokens failed.
        """
        with self._reading, _captured_warnings() as said:
            if (given := self._given) and given.token:
                return f"Bearer {self._renewed(given).token}"
            header = self._read.get_api_key_with_prefix(KEY) if self._read else ""
            if said:
                raise UnavailableError(f"{self._where} gives no credentials: {_short(said[0])}")
        return str(header or "")

    def end(self) -> None:
        """End what a program of the kubeconfig does right now; for any thread."""
        self._programs.end()

    def _run(self, written: dict[str, Any]) -> ExecCredential | None:
        """Have the program say who Seaway is that a kubeconfig names; None where it says that itself."""
        user = user_of(written, self._context)
        wanted = user.pop("exec", None)
        if self._file is None or not isinstance(wanted, dict) or user.get("token") or user.get("tokenFile"):
            return None
        try:
            return self._programs.run(wanted, cluster_of(written, self._context), self._file.parent.absolute())
        except RejectedError as error:
            raise _NoCredentialsError(error.message) from None

    def _renewed(self, given: ExecCredential) -> ExecCredential:
        """Return what a program gave, or what it gives now if that ends soon.

        One that fails then is asked again after pauses: what it gave holds until its end.
        """
        if self._file is None or given.expires_at is None or datetime.now(UTC) < given.expires_at - EXPIRY_MARGIN:
            return given
        if datetime.now(UTC) < given.expires_at and not self._renewing.allows():
            return given
        try:
            self._given = self._run(read_kubeconfig(self._file)) or given
        except (RejectedError, _NoCredentialsError) as error:
            self._renewing.failed()
            why = f"{self._where} gives no credentials: {_short(error)}"
            if datetime.now(UTC) >= given.expires_at:
                raise UnavailableError(why) from None
            log.warning("%s; those that it gave hold until %s", why, given.expires_at.isoformat(timespec="seconds"))
            return given
        self._renewing = RenewalLimit(time.monotonic)
        return self._given

    @property
    def _where(self) -> str:
        return f"the context {self._context!r} of {self._file}" if self._file else "the service account"


def _proxy(found: Any, *, own: bool) -> str:  # noqa: ANN401  # as below
    """Return the address of the proxy on the way, empty for none; one of the kubeconfig's `own` is gone through anyway.

    Raises
    ------
    RejectedError
        When the server's address, or the proxy's, cannot be one.
    """
    try:
        if "@" in urlsplit(found.host).netloc:
            raise RejectedError("the server's address has a user in it; give a token or a certificate")
        spared = not found.proxy or (not own and bypasses_proxy(found.host, found.no_proxy or ""))
    except ValueError as error:
        raise RejectedError(f"the server's address is none: {error}") from None
    return "" if spared else proxy_address(found.proxy)


def _tls(found: Any, where: str) -> ssl.SSLContext:  # noqa: ANN401  # the client's own settings, without types
    """Make a TLS context of what the client found."""
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
def _captured_warnings() -> Iterator[list[str]]:
    """Hear what the client only writes into the log."""
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
