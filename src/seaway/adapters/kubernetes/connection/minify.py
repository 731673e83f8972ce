"""One context of a kubeconfig as a file that stands by itself."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import yaml

from seaway.adapters.kubernetes.connection.contexts import content, named, read_kubeconfig
from seaway.domain.errors import RejectedError

FILES = {
    "certificate-authority": "certificate-authority-data",
    "client-certificate": "client-certificate-data",
    "client-key": "client-key-data",
}
"""Settings that name a file, and those that hold what is in it."""


def alone(file: Path, context: str, name: str) -> str:
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
            "clusters": [{"name": name, "cluster": _standing(cluster, folder)}],
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
        raise RejectedError(f"{file} has no {key} {name!r}; there are: {', '.join(entries) or 'none'}")
    return found


def _standing(settings: dict[str, Any], folder: Path) -> dict[str, Any]:
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
    """Have a user stand alone; a token's file stays a file, as somebody exchanges it."""
    after = _standing(user, folder)
    token = after.get("tokenFile")
    if isinstance(token, str):
        after["tokenFile"] = str((folder / token).absolute())
    plugin = after.get("exec")
    if isinstance(plugin, dict) and "/" in str(plugin.get("command")):
        after["exec"] = plugin | {"command": str((folder / str(plugin["command"])).absolute())}
    return after
