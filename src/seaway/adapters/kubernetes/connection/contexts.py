"""Which ways into clusters a folder of kubeconfigs has: one for every context of every file."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from seaway.domain.errors import RejectedError
from seaway.wire.yaml import read_yaml

LARGEST_FILE = 1 << 20
"""Of a kubeconfig, and of each file that one names, bytes."""

NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True, order=True)
class Context:
    """One way into a cluster.

    Attributes
    ----------
    file
        The kubeconfig.
    context
        The context's name there.
    server
        By what its API server is known: a digest of address and certificate authority; empty where it names none.
    digest
        A digest of all that is said of it, with the client's certificate where that is in a file of its own.
    """

    file: Path
    context: str
    server: str
    digest: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Found:
    """What a folder has.

    Attributes
    ----------
    contexts
        By file, in the order that they have there.
    broken
        Files that are no kubeconfig, by path, and why.
    """

    contexts: tuple[Context, ...]
    broken: dict[Path, str]


def read_kubeconfig(file: Path) -> dict[str, Any]:
    """Read a kubeconfig: plain values, and not many more than the file shows, as by aliases of aliases.

    Raises
    ------
    RejectedError
        When the file is none; says why.
    """
    said = content(file)
    try:
        written = read_yaml(said)
    except RejectedError as error:
        raise RejectedError(f"{file} is not a kubeconfig: {error}") from None
    if not isinstance(written, dict) or written.get("kind", "Config") != "Config":
        raise RejectedError(f"{file} is not a kubeconfig")
    return written


def content(file: Path) -> bytes:
    """Read a kubeconfig, or a file that one names.

    Raises
    ------
    RejectedError
        When that cannot be done, or it is too large for one.
    """
    try:
        with file.open("rb") as opened:
            said = opened.read(LARGEST_FILE + 1)
    except OSError as error:
        raise RejectedError(f"{file} cannot be read: {error.strerror}") from None
    except ValueError:
        raise RejectedError(f"{str(file)!r} is not a name that a file can have") from None
    if len(said) > LARGEST_FILE:
        raise RejectedError(f"{file} is too large for a kubeconfig or a certificate")
    return said


def cluster_of(written: dict[str, Any], context: str) -> dict[str, Any]:
    """Return what a kubeconfig says of the cluster of a context; nothing where there is none."""
    return _resolve(written, named(written, "contexts", "context").get(context), "clusters", "cluster")


def user_of(written: dict[str, Any], context: str) -> dict[str, Any]:
    """Return what a kubeconfig says of the user of a context; nothing where there is none."""
    return _resolve(written, named(written, "contexts", "context").get(context), "users", "user")


def _contexts(file: Path, written: dict[str, Any]) -> dict[str, Any]:
    """Return what a kubeconfig says of each of its contexts, by name."""
    found = named(written, "contexts", "context")
    if not found:
        raise RejectedError(f"{file} has no context")
    return found


def named(written: dict[str, Any], kind: str, key: str) -> dict[str, Any]:
    """Return the entries of a list of a kubeconfig by name."""
    entries = written.get(kind)
    pairs = (
        [(each.get("name"), each.get(key)) for each in entries if isinstance(each, dict)]
        if isinstance(entries, list)
        else []
    )
    return {name: entry for name, entry in pairs if isinstance(name, str) and name}


def current_context(file: Path) -> str:
    """Return the context that a kubeconfig names as current, or its only one.

    Raises
    ------
    RejectedError
        When the file is not a kubeconfig, or leaves the choice open.
    """
    written = read_kubeconfig(file)
    names = tuple(_contexts(file, written))
    current = written.get("current-context")
    if isinstance(current, str) and current in names:
        return current
    if len(names) == 1:
        return names[0]
    raise RejectedError(f"{file} has no current context; choose one of: {', '.join(names)}")


def find(folder: Path) -> Found:
    """Look through a folder for kubeconfigs; files that start with a dot and folders in it are passed over.

    Files that are broken are told of; the others go on.

    Raises
    ------
    RejectedError
        When the folder cannot be read.
    """
    try:
        files = sorted(file for file in folder.iterdir() if file.is_file() and not file.name.startswith("."))
    except OSError as error:
        raise RejectedError(f"the folder of kubeconfigs {folder} cannot be read: {error.strerror}") from None
    contexts: list[Context] = []
    broken: dict[Path, str] = {}
    for file in files:
        try:
            written = read_kubeconfig(file)
            contexts += [
                Context(file, name, _server(file, written, said), _digest(file, written, said))
                for name, said in _contexts(file, written).items()
            ]
        except RejectedError as error:
            broken[file] = error.message
    return Found(tuple(contexts), broken)


def cluster_name(context: str) -> str:
    """Make a cluster's name of a context's: letters, digits, dots, dashes and underscores."""
    return NOT_IN_NAMES.sub("-", context).strip("-.") or "cluster"


def _resolve(written: dict[str, Any], context: Any, kind: str, key: str) -> dict[str, Any]:  # noqa: ANN401  # as below
    """Return the entry of a list of a kubeconfig that a context names; empty where there is none."""
    name = context.get(key) if isinstance(context, dict) else None
    entry = named(written, kind, key).get(name) if isinstance(name, str) else None
    return entry if isinstance(entry, dict) else {}


def _digest(file: Path, written: dict[str, Any], context: Any) -> str:  # noqa: ANN401  # whatever a user wrote
    """Make a digest of all that a kubeconfig says of a context; files with tokens are read again as these expire."""
    cluster, user = _resolve(written, context, "clusters", "cluster"), _resolve(written, context, "users", "user")
    paths = [path for each in ("client-certificate", "client-key") if isinstance(path := user.get(each), str)]
    said = [repr((context, cluster, user)).encode(), *(_bytes(file.parent / path) for path in paths)]
    return hashlib.sha256(b"\0".join(said)).hexdigest()


def _bytes(file: Path) -> bytes:
    """Read a file that a kubeconfig names; nothing where that cannot be done, as who connects says why."""
    try:
        return content(file)
    except RejectedError:
        return b""


def _server(file: Path, written: dict[str, Any], context: Any) -> str:  # noqa: ANN401  # whatever a user wrote
    """Say by what the API server of a context is known: how it is reached, and which authority vouches for it."""
    cluster = _resolve(written, context, "clusters", "cluster")
    said = {name: value for name, value in cluster.items() if isinstance(value, str)}
    if not said.get("server"):
        return ""
    authority = said.get("certificate-authority-data")
    if not authority and (path := said.get("certificate-authority")) is not None:
        try:
            authority = base64.b64encode(content(file.parent / path)).decode()
        except RejectedError:
            authority = path
    ways = [authority, *(said.get(each) for each in ("server", "tls-server-name", "proxy-url"))]
    return hashlib.sha256(json.dumps(ways).encode()).hexdigest()


FILES = {
    "certificate-authority": "certificate-authority-data",
    "client-certificate": "client-certificate-data",
    "client-key": "client-key-data",
}
"""Settings that name a file, and those that hold what is in it."""


def minified(file: Path, context: str, name: str) -> str:
    """Write a context with its cluster and user, certificates put in, as a kubeconfig with nothing else.

    Parameters
    ----------
    context
        Which one.
    name
        What it is to be called.

    Raises
    ------
    RejectedError
        When there is no such context, or something that it names is missing.
    """
    written = read_kubeconfig(file)
    chosen = _entry(written, "contexts", context, "context", file)
    cluster = _entry(written, "clusters", str(chosen.get("cluster")), "cluster", file)
    user = _entry(written, "users", str(chosen.get("user")), "user", file) if chosen.get("user") else {}
    folder = file.parent
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": _with_absolute_paths(cluster, folder)}],
            "users": [{"name": name, "user": _user(user, folder)}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
        },
        sort_keys=False,
    )


def _entry(written: dict[str, Any], kind: str, name: str, key: str, file: Path) -> dict[str, Any]:
    entries = named(written, kind, key)
    found = entries.get(name)
    if not isinstance(found, dict):
        raise RejectedError(f"{file} has no {key} {name!r}; available: {', '.join(entries) or 'none'}")
    return found


def _with_absolute_paths(settings: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Put what is in files in place of their names."""
    after = {}
    for name, value in settings.items():
        if name in FILES and isinstance(value, str) and value:
            try:
                after[FILES[name]] = base64.b64encode(content(folder / value)).decode()
            except RejectedError as error:
                raise RejectedError(f"{name}: {error}") from None
        else:
            after[name] = value
    return after


def _user(user: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Have a user stand alone; a token's file stays a file, as a user exchanges it."""
    after = _with_absolute_paths(user, folder)
    token = after.get("tokenFile")
    if isinstance(token, str):
        after["tokenFile"] = str((folder / token).absolute())
    plugin = after.get("exec")
    if isinstance(plugin, dict) and "/" in str(plugin.get("command")):
        after["exec"] = plugin | {"command": str((folder / str(plugin["command"])).absolute())}
    return after
