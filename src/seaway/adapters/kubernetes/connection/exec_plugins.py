"""Exec plugins of kubeconfigs, which return credentials. Seaway runs them as kubectl does, and kills them on a timeout.

The Kubernetes client waits for plugins without limit, and does not end their child processes.

References
----------
https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
"""

from __future__ import annotations

import atexit
import base64
import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from typing import Any
from weakref import WeakSet

from seaway.adapters.kubernetes.connection.contexts import content
from seaway.domain.errors import RejectedError

MAX_MIB = 1
"""Maximum size of a plugin's output, in MiB. Tokens and certificates have a few KiB."""

PIECE = 1 << 16
"""Number of bytes to read from a pipe at a time; equal to the capacity of a pipe."""


@dataclass(frozen=True, slots=True)
class ProgramOutput:
    """Result of a plugin.

    Attributes
    ----------
    code
        Exit status; a negative value is the number of the signal that killed it.
    out, err
        Standard output and standard error.
    """

    code: int
    out: str
    err: str


class ExecPlugin:
    """A running plugin without a terminal.

    Parameters
    ----------
    command
        Command and its arguments.
    environment
        All environment variables.
    folder
        Working directory.

    Raises
    ------
    OSError, ValueError
        When the command cannot be run.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        self._bell, self._rope = socket.socketpair()
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=folder,
                env=environment,
                start_new_session=True,  # a process group of its own, so that `end` kills all of it
            )
        except (OSError, ValueError):
            self._bell.close()
            self._rope.close()
            raise

    def output(self) -> ProgramOutput:
        """Wait until the plugin and its child processes close their output, or until `end` kills them.

        Raises
        ------
        RejectedError
            When the output is too large; the plugin is then killed.
        """
        out, err = bytearray(), bytearray()
        with DefaultSelector() as waiting:
            waiting.register(self._bell, EVENT_READ)
            for pipe, said in ((self._process.stdout, out), (self._process.stderr, err)):
                if pipe:
                    waiting.register(pipe, EVENT_READ, said)
            while len(waiting.get_map()) > 1:
                received = [key for key, _ in waiting.select()]
                if any(
                    key.fileobj is self._bell for key in received
                ):  # other processes may keep its pipes open forever
                    break
                for key in received:
                    piece = os.read(key.fd, PIECE)
                    key.data.extend(piece)
                    if not piece:
                        waiting.unregister(key.fileobj)
                    if len(key.data) > MAX_MIB << 20:
                        self.end()
                        self._process.wait()
                        raise RejectedError(f"prints more than {MAX_MIB} MiB")
        return ProgramOutput(self._process.wait(), out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))

    def end(self) -> None:
        """Kill the plugin and all processes of its group. Any thread may call it until the plugin is closed."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._rope.close()  # wakes the selector of `output`

    def close(self) -> None:
        """Close all pipes, so that processes that still write to the pipes fail."""
        for each in (self._process.stdout, self._process.stderr, self._bell, self._rope):
            if each:
                each.close()


VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
EXTENSION = "client.authentication.k8s.io/exec"
"""Name of the kubeconfig extension with cluster settings for exec plugins."""

PASSED_VARIABLES = ("server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url")
"""Cluster settings of a kubeconfig that Seaway passes to plugins with ``provideClusterInfo``."""


@dataclass(frozen=True, slots=True)
class ExecCredential:
    """Credentials of a plugin.

    Attributes
    ----------
    token
        Bearer token; empty for authentication by certificate only.
    certificate, key
        Client certificate and key as PEM; empty for none.
    expires_at
        Expiry; None if the plugin reports none.
    """

    token: str
    certificate: str
    key: str
    expires_at: datetime | None

    @property
    def user(self) -> dict[str, str]:
        """Kubeconfig user entry with these credentials."""
        said = {"token": self.token} if self.token else {}
        if self.certificate:
            said["client-certificate-data"] = base64.b64encode(self.certificate.encode()).decode()
            said["client-key-data"] = base64.b64encode(self.key.encode()).decode()
        return said


class ExecPlugins:
    """Runner of exec plugins. It can kill all running plugins and their child processes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[ExecPlugin] = set()
        _known.add(self)

    def run(self, config: Mapping[str, Any], cluster: Mapping[str, Any], folder: Path) -> ExecCredential:
        """Run a plugin and return its credentials. Block until the plugin exits or `end` is called.

        Parameters
        ----------
        config
            The ``exec`` entry of a kubeconfig user.
        cluster
            The cluster entry of the kubeconfig.
        folder
            Folder of the kubeconfig, to which paths are relative.

        Raises
        ------
        RejectedError
            When the plugin cannot be run, fails, is killed, or returns invalid credentials.
        """
        version, command = _checked(config)
        environment = (
            os.environ | _variables(config) | {"KUBERNETES_EXEC_INFO": _info(config, version, cluster, folder)}
        )
        said = self._output([command, *_arguments(config)], environment, folder, _hint(config))
        code, err = said.code, said.err.strip()
        if code < 0:
            raise RejectedError(f"exec: {command!r} was ended: {signal.strsignal(-code) or -code}")
        if code:
            raise RejectedError(f"exec: {command!r} ended with {code}{': ' if err else ''}{err}")
        return _credential(said.out, version, command)

    def end(self) -> None:
        """Kill all running plugins and their child processes, and stop reading their output."""
        with self._lock:
            for each in self._running:
                each.end()

    def _output(self, command: list[str], environment: Mapping[str, str], folder: Path, hint: str) -> ProgramOutput:
        with self._lock:
            try:
                program = ExecPlugin(command, environment, folder)
            except (OSError, ValueError) as error:
                why = getattr(error, "strerror", None) or str(error)
                raise RejectedError(f"exec: {command[0]!r} cannot be run: {why}{'; ' if hint else ''}{hint}") from None
            self._running.add(program)
        try:
            return program.output()
        except RejectedError as error:
            raise RejectedError(f"exec: {command[0]!r} {error.message}") from None
        finally:
            with self._lock:
                self._running.discard(program)
                program.close()


_known: WeakSet[ExecPlugins] = WeakSet()


@atexit.register
def _end_all() -> None:
    """Kill all plugins when Seaway exits."""
    for each in list(_known):
        each.end()


def _checked(config: Mapping[str, Any]) -> tuple[str, str]:
    """Return the API version and command of an exec entry."""
    version, command = config.get("apiVersion"), config.get("command")
    if version not in VERSIONS:
        raise RejectedError(f"exec: its apiVersion is {version!r}; {' and '.join(VERSIONS)} are known")
    if not isinstance(command, str) or not command:
        raise RejectedError("exec: it names no command")
    if config.get("interactiveMode") == "Always":
        raise RejectedError(f"exec: {command!r} needs a terminal (interactiveMode Always), which Seaway does not have")
    return version, command


def _arguments(config: Mapping[str, Any]) -> list[str]:
    given = config.get("args") or []
    if not isinstance(given, list):
        raise RejectedError("exec: its args are not a list")
    return [str(each) for each in given]


def _hint(config: Mapping[str, Any]) -> str:
    return " ".join(str(config.get("installHint") or "").split())


def _variables(config: Mapping[str, Any]) -> dict[str, str]:
    try:
        return {str(each["name"]): str(each["value"]) for each in config.get("env") or ()}
    except (TypeError, KeyError):
        raise RejectedError("exec: its env is not a list of names and values") from None


def _info(config: Mapping[str, Any], version: str, cluster: Mapping[str, Any], folder: Path) -> str:
    """Return the ``ExecCredential`` input of a plugin, with the cluster if ``provideClusterInfo`` is set."""
    spec: dict[str, Any] = {"interactive": False}
    if config.get("provideClusterInfo"):
        spec["cluster"] = {each: cluster[each] for each in PASSED_VARIABLES if each in cluster}
        if "certificate-authority" in cluster and "certificate-authority-data" not in cluster:
            authority = content(folder / str(cluster["certificate-authority"]))
            spec["cluster"]["certificate-authority-data"] = base64.b64encode(authority).decode()
        for each in cluster.get("extensions") or ():
            if isinstance(each, dict) and each.get("name") == EXTENSION:
                spec["cluster"]["config"] = each.get("extension")
    return json.dumps({"apiVersion": version, "kind": "ExecCredential", "spec": spec}, default=str)


def _credential(out: str, version: str, command: str) -> ExecCredential:
    try:
        said = json.loads(out)
    except ValueError:
        raise RejectedError(f"exec: the output of {command!r} is not JSON") from None
    if not isinstance(said, dict) or said.get("kind") != "ExecCredential":
        raise RejectedError(f"exec: the output of {command!r} is not an ExecCredential")
    if said.get("apiVersion") != version:
        raise RejectedError(f"exec: {command!r} speaks {said.get('apiVersion')!r}instead of {version}")
    status = said.get("status")
    status = status if isinstance(status, dict) else {}
    token, certificate, key = (
        str(status.get(each) or "") for each in ("token", "clientCertificateData", "clientKeyData")
    )
    if bool(certificate) != bool(key):
        raise RejectedError(f"exec: {command!r} gives a certificate without its key, or a key alone")
    if not (token or certificate):
        raise RejectedError(f"exec: {command!r} gives neither token nor certificate")
    return ExecCredential(token, certificate, key, _time(status.get("expirationTimestamp"), command))


def _time(value: object, command: str) -> datetime | None:
    if not value:
        return None
    try:
        when = datetime.fromisoformat(str(value))
    except ValueError:
        raise RejectedError(f"exec: {command!r} gives something until {value!r}, which is not a time") from None
    return when if when.tzinfo else when.replace(tzinfo=UTC)
