"""Which clusters a folder of kubeconfigs names: one for every context of every file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from seaway.domain.errors import RejectedError

LARGEST_FILE = 1 << 20
NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Context:
    """One cluster of a kubeconfig.

    Attributes
    ----------
    name
        What Seaway calls the cluster: the context's name, with ``-`` for what names cannot have.
    file
        The kubeconfig.
    context
        The context's own name there.
    """

    name: str
    file: Path
    context: str


@dataclass(frozen=True, slots=True)
class Found:
    """What a folder has.

    Attributes
    ----------
    contexts
        By name.
    broken
        Files that are no kubeconfig, by path, and why.
    """

    contexts: tuple[Context, ...]
    broken: dict[Path, str]


def contexts_of(file: Path) -> tuple[str, ...]:
    """Return the names of the contexts in a kubeconfig.

    Raises
    ------
    RejectedError
        When the file is none, or has no context; says why.
    """
    written = _read(file)
    if not isinstance(written, dict) or written.get("kind", "Config") != "Config":
        raise RejectedError(f"{file} is no kubeconfig")
    entries = written.get("contexts")
    names = [each.get("name") for each in entries if isinstance(each, dict)] if isinstance(entries, list) else []
    found = tuple(name for name in names if isinstance(name, str) and name)
    if not found:
        raise RejectedError(f"{file} has no context")
    return found


def current_context(file: Path) -> str:
    """Return the context that a kubeconfig names as current, or its only one.

    Raises
    ------
    RejectedError
        When the file is no kubeconfig, or leaves the choice open.
    """
    names = contexts_of(file)
    current = _read(file).get("current-context")
    if isinstance(current, str) and current in names:
        return current
    if len(names) == 1:
        return names[0]
    raise RejectedError(f"{file} has no current context; choose one of: {', '.join(names)}")


def find(folder: Path, known: Iterable[Context] = ()) -> Found:
    """Look through a folder for kubeconfigs; files that start with a dot and folders in it are passed over.

    Equal names get the file's name as a suffix; those that are `known` already keep theirs. Files that are broken are
    told of; the others go on.

    Raises
    ------
    RejectedError
        When the folder cannot be read.
    """
    try:
        files = sorted(file for file in folder.iterdir() if file.is_file() and not file.name.startswith("."))
    except OSError as error:
        raise RejectedError(f"the folder of kubeconfigs {folder} cannot be read: {error.strerror}") from None
    pairs: list[tuple[Path, str]] = []
    broken: dict[Path, str] = {}
    for file in files:
        try:
            pairs += [(file, context) for context in contexts_of(file)]
        except RejectedError as error:
            broken[file] = error.message
    return Found(
        tuple(
            sorted(_named(pairs, {(each.file, each.context): each.name for each in known}), key=lambda each: each.name)
        ),
        broken,
    )


def cluster_name(context: str) -> str:
    """Make a cluster's name of a context's: letters, digits, dots, dashes and underscores."""
    return NOT_IN_NAMES.sub("-", context).strip("-.") or "cluster"


def _named(pairs: list[tuple[Path, str]], known: Mapping[tuple[Path, str], str]) -> list[Context]:
    """Give every context a name of its own."""
    kept = {pair: known[pair] for pair in pairs if pair in known}
    fresh = [pair for pair in pairs if pair not in kept]
    often = Counter([*kept.values(), *(cluster_name(context) for _, context in fresh)])
    taken = set(kept.values())
    named = [Context(name, *pair) for pair, name in kept.items()]
    for file, context in fresh:
        name = cluster_name(context)
        if often[name] > 1:
            name = f"{name}-{cluster_name(file.stem)}"
        unique, number = name, 2
        while unique in taken:
            unique, number = f"{name}-{number}", number + 1
        taken.add(unique)
        named.append(Context(unique, file, context))
    return named


def _read(file: Path) -> Any:  # noqa: ANN401  # whatever somebody wrote
    try:
        if file.stat().st_size > LARGEST_FILE:
            raise RejectedError(f"{file} is too large for a kubeconfig")
        return yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise RejectedError(f"{file} cannot be read: {error.strerror}") from None
    except Exception as error:  # noqa: BLE001  # YAML of somebody's can make its reader fail in any way
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RejectedError(f"{file} is no YAML: {why}") from None
