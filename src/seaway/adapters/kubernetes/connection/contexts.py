"""Contexts of a folder of kubeconfigs."""

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
from seaway.domain.reasons import Reason
from seaway.wire.yaml import read_yaml

LARGEST_FILE = 1 << 20
"""Maximum size in bytes of a kubeconfig, and of each file that it refers to."""

NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True, order=True)
class Context:
    """A context of a kubeconfig.

    Attributes
    ----------
    file
        The kubeconfig.
    context
        Name of the context.
    server
        Identity of the API server: a digest of address and certificate authority; empty without an address.
    digest
        Digest of the context's entries, including client certificates in separate files.
    """

    file: Path
    context: str
    server: str
    digest: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Found:
    """Contents of a folder of kubeconfigs.

    Attributes
    ----------
    contexts
        Contexts by file, in the order of the file.
    broken
        Errors of invalid kubeconfigs, by path.
    """

    contexts: tuple[Context, ...]
    broken: dict[Path, str]


def read_kubeconfig(file: Path) -> dict[str, Any]:
    """Read a kubeconfig as plain values. Limit the expansion of YAML aliases.

    Raises
    ------
    RejectedError
        When the file is not a kubeconfig. The error contains the reason.
    """
    said = content(file)
    try:
        written = read_yaml(said)
    except RejectedError as error:
        raise RejectedError(Reason("not_a_kubeconfig", file=str(file), why=str(error))) from None
    if not isinstance(written, dict) or written.get("kind", "Config") != "Config":
        raise RejectedError(Reason("not_a_kubeconfig", file=str(file)))
    return written


def content(file: Path) -> bytes:
    """Read a kubeconfig, or a file that it refers to.

    Raises
    ------
    RejectedError
        When the file cannot be read or is too large.
    """
    try:
        with file.open("rb") as opened:
            said = opened.read(LARGEST_FILE + 1)
    except OSError as error:
        raise RejectedError(f"{file} cannot be read: {error.strerror}") from None
    except ValueError:
        raise RejectedError(f"{str(file)!r} is not a valid file name") from None
    if len(said) > LARGEST_FILE:
        raise RejectedError(Reason("file_too_large", file=str(file)))
    return said


def cluster_of(written: dict[str, Any], context: str) -> dict[str, Any]:
    """Return the cluster entry of a context; empty if there is none."""
    return _resolve(written, named(written, "contexts", "context").get(context), "clusters", "cluster")


def user_of(written: dict[str, Any], context: str) -> dict[str, Any]:
    """Return the user entry of a context; empty if there is none."""
    return _resolve(written, named(written, "contexts", "context").get(context), "users", "user")


def _contexts(file: Path, written: dict[str, Any]) -> dict[str, Any]:
    """Return the contexts of a kubeconfig by name."""
    found = named(written, "contexts", "context")
    if not found:
        raise RejectedError(Reason("no_context", file=str(file)))
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


def context_names(file: Path) -> list[str]:
    """Return the names of the contexts of a kubeconfig.

    Raises
    ------
    RejectedError
        When the file is not a kubeconfig.
    """
    return list(_contexts(file, read_kubeconfig(file)))


def current_context(file: Path) -> str:
    """Return the current context of a kubeconfig, or its only one.

    Raises
    ------
    RejectedError
        When the file is not a kubeconfig, or has several contexts and no current one.
    """
    written = read_kubeconfig(file)
    names = tuple(_contexts(file, written))
    current = written.get("current-context")
    if isinstance(current, str) and current in names:
        return current
    if len(names) == 1:
        return names[0]
    raise RejectedError(Reason("no_current_context", file=str(file), names=tuple(names)))


def find(folder: Path) -> Found:
    """Read the kubeconfigs of a folder. Skip subfolders and files whose names start with a dot.

    Report invalid files and continue with the others.

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
    """Convert a context's name to a cluster name of letters, digits, dots, dashes and underscores."""
    return NOT_IN_NAMES.sub("-", context).strip("-.") or "cluster"


def _resolve(written: dict[str, Any], context: Any, kind: str, key: str) -> dict[str, Any]:  # noqa: ANN401  # as below
    """Return the list entry that a context refers to; empty if there is none."""
    name = context.get(key) if isinstance(context, dict) else None
    entry = named(written, kind, key).get(name) if isinstance(name, str) else None
    return entry if isinstance(entry, dict) else {}


def _digest(file: Path, written: dict[str, Any], context: Any) -> str:  # noqa: ANN401  # whatever a user wrote
    """Return a digest of a context's entries. Exclude token files: Seaway reads them again when a token expires."""
    cluster, user = _resolve(written, context, "clusters", "cluster"), _resolve(written, context, "users", "user")
    paths = [path for each in ("client-certificate", "client-key") if isinstance(path := user.get(each), str)]
    said = [repr((context, cluster, user)).encode(), *(_bytes(file.parent / path) for path in paths)]
    return hashlib.sha256(b"\0".join(said)).hexdigest()


def _bytes(file: Path) -> bytes:
    """Read a file. Return no bytes on errors, because the connection attempt reports them."""
    try:
        return content(file)
    except RejectedError:
        return b""


def _server(file: Path, written: dict[str, Any], context: Any) -> str:  # noqa: ANN401  # whatever a user wrote
    """Return a digest of the API server's address, proxy and certificate authority."""
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
"""Settings that refer to a file, and the settings that contain the file's data."""


def minified(file: Path, context: str, name: str) -> str:
    """Return a kubeconfig with only one context, its cluster and its user, and with embedded certificates.

    Parameters
    ----------
    context
        Context to extract.
    name
        New name of the context.

    Raises
    ------
    RejectedError
        When the context, or an entry or file that it refers to, is missing.
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
        raise RejectedError(Reason("no_entry", file=str(file), key=key, name=name, names=tuple(entries) or ("none",)))
    return found


def _with_absolute_paths(settings: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Replace file names with the data of the files."""
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
    """Make a user entry independent of its folder. Token files stay files, because tokens rotate."""
    after = _with_absolute_paths(user, folder)
    token = after.get("tokenFile")
    if isinstance(token, str):
        after["tokenFile"] = str((folder / token).absolute())
    plugin = after.get("exec")
    if isinstance(plugin, dict) and "/" in str(plugin.get("command")):
        after["exec"] = plugin | {"command": str((folder / str(plugin["command"])).absolute())}
    return after
