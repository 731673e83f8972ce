"""Programs that a kubeconfig names to say who Seaway is: run as kubectl does, and ended when no one waits any more.

Kubernetes' own client waits for them without limit, and leaves what they began behind.

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
"""The most that one may print. Tokens and certificates have some KiB."""

PIECE = 1 << 16
"""How many bytes a pipe holds."""


@dataclass(frozen=True, slots=True)
class ProgramOutput:
    """What a program left.

    Attributes
    ----------
    code
        What it ended with; below zero the signal that killed it.
    out, err
        What it printed.
    """

    code: int
    out: str
    err: str


class ExecPlugin:
    """One that was begun just now, without a terminal.

    Parameters
    ----------
    command
        What is run, with its arguments.
    environment
        All variables that it has.
    folder
        Where it runs.

    Raises
    ------
    OSError, ValueError
        When it cannot be run.
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
                start_new_session=True,  # a group of its own, to be ended as a whole
            )
        except (OSError, ValueError):
            self._bell.close()
            self._rope.close()
            raise

    def output(self) -> ProgramOutput:
        """Wait until it ended, and whatever it began printed the last; or until it is ended.

        Raises
        ------
        RejectedError
            When it prints too much; it is ended then.
        """
        out, err = bytearray(), bytearray()
        with DefaultSelector() as waiting:
            waiting.register(self._bell, EVENT_READ)
            for pipe, said in ((self._process.stdout, out), (self._process.stderr, err)):
                if pipe:
                    waiting.register(pipe, EVENT_READ, said)
            while len(waiting.get_map()) > 1:
                heard = [key for key, _ in waiting.select()]
                if any(key.fileobj is self._bell for key in heard):  # others may hold its pipes open for ever
                    break
                for key in heard:
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
        """End it and whatever it began, as far as that is still of its group; for any thread, until it is closed."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._rope.close()  # which the other end hears

    def close(self) -> None:
        """Let go of it: what prints to it from now on is ended by that."""
        for each in (self._process.stdout, self._process.stderr, self._bell, self._rope):
            if each:
                each.close()


VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
EXTENSION = "client.authentication.k8s.io/exec"
"""What a kubeconfig says of a cluster for programs alone."""

PASSED_VARIABLES = ("server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url")
"""What a program is told of a cluster, if it is to be told of it, in the words of kubeconfigs."""


@dataclass(frozen=True, slots=True)
class ExecCredential:
    """What a program said.

    Attributes
    ----------
    token
        Empty where a certificate says it all.
    certificate, key
        As PEM; empty without.
    expires_at
        Until when that holds; None where the program did not say so.
    """

    token: str
    certificate: str
    key: str
    expires_at: datetime | None

    @property
    def user(self) -> dict[str, str]:
        """The same in the words of kubeconfigs."""
        said = {"token": self.token} if self.token else {}
        if self.certificate:
            said["client-certificate-data"] = base64.b64encode(self.certificate.encode()).decode()
            said["client-key-data"] = base64.b64encode(self.key.encode()).decode()
        return said


class ExecPlugins:
    """Runs them, and ends those that run, with all that they began; they have no terminal."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[ExecPlugin] = set()
        _known.add(self)

    def run(self, config: Mapping[str, Any], cluster: Mapping[str, Any], folder: Path) -> ExecCredential:
        """Run one and return what it said; takes as long as the program does, unless `end` is called.

        Parameters
        ----------
        config
            What a kubeconfig says of it under ``exec``.
        cluster
            What the kubeconfig says of the cluster.
        folder
            Where the kubeconfig is; paths in it start there.

        Raises
        ------
        RejectedError
            When it cannot be run, fails, is ended or says nothing that helps.
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
        """End what runs, and whatever it began; what is left of it is not listened to any more."""
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
    """Have none outlive Seaway."""
    for each in list(_known):
        each.end()


def _checked(config: Mapping[str, Any]) -> tuple[str, str]:
    """Return version and command of what a kubeconfig wants to be run."""
    version, command = config.get("apiVersion"), config.get("command")
    if version not in VERSIONS:
        raise RejectedError(f"exec: its apiVersion is {version!r}; {' and '.join(VERSIONS)} are known")
    if not isinstance(command, str) or not command:
        raise RejectedError("exec: it names no command")
    if config.get("interactiveMode") == "Always":
        raise RejectedError(f"exec: {command!r} wants a terminal (interactiveMode Always), which Seaway has not")
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
    """Return what a program is told of who asks, and of the cluster if it wants to know."""
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
        raise RejectedError(f"exec: what {command!r} says is not JSON") from None
    if not isinstance(said, dict) or said.get("kind") != "ExecCredential":
        raise RejectedError(f"exec: what {command!r} says is not an ExecCredential")
    if said.get("apiVersion") != version:
        raise RejectedError(f"exec: {command!r} speaks {said.get('apiVersion')!r}, and {version} was asked for")
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
