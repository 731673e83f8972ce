"""Instances of the scheduling problem, and the folders of CSV files that describe them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from seaway.domain.cluster import Fleet
from seaway.domain.errors import RejectedError
from seaway.domain.job import Job
from seaway.simulation.table import read_table, require_unique
from seaway.simulation.trace import Trace, TraceFiles, read_trace


@dataclass(frozen=True, slots=True)
class Instance:
    """A fleet and the jobs that arrive at it.

    Attributes
    ----------
    name
        Name in tables.
    fleet
        Fleet without allocations.
    jobs
        Jobs in order of arrival.
    mix
        Past jobs, for heuristics and policies that use the distribution of jobs. They differ from `jobs`, which are not
        known in advance.
    best_known
        Best known number of `jobs` that fit at the same time; None if unknown.
    """

    name: str
    fleet: Fleet
    jobs: tuple[Job, ...]
    mix: tuple[Job, ...] = ()
    best_known: int | None = None


NODES, JOBS, LINKS, BEST = "nodes.csv", "jobs.csv", "links.csv", "best.csv"


def read_instances(paths: Sequence[Path], best_known: Mapping[str, int] | None = None) -> list[Instance]:
    """Read instances from folders, sorted by name.

    An instance is a folder with ``nodes.csv`` and ``jobs.csv``, and optionally ``links.csv`` for the network;
    `seaway.simulation` defines their columns. It has the name of its folder. Instances in the same parent folder whose
    names differ only by a number at the end are siblings from one generator. The `mix` of an instance has the jobs of
    its siblings.

    Parameters
    ----------
    paths
        Folders of single instances, or parent folders of instances.
    best_known
        Best known number of jobs by instance. Default: ``best.csv`` in the parent folder, with columns ``instance`` and
        ``placed``.

    Raises
    ------
    RejectedError
        When a path is neither, two instances have the same name, or a file is invalid; includes the place.
    """
    folders = list(dict.fromkeys(chain.from_iterable(folders_of(path) for path in paths)))
    families = {folder: _siblings(folder) for folder in folders}
    traces = {folder: read_folder(folder) for folder in dict.fromkeys([*folders, *chain(*families.values())])}
    known = {parent: read_best(parent / BEST) for parent in {folder.parent for folder in folders}}
    instances: dict[str, Instance] = {}
    for folder in folders:
        if folder.name in instances:
            raise RejectedError(f"another instance is called {folder.name!r} too; rename one", where=str(folder))
        trace = traces[folder]
        mix: tuple[Job, ...] = tuple(chain.from_iterable(traces[other].jobs for other in families[folder]))
        best = {**known[folder.parent], **(best_known or {})}.get(folder.name)
        instances[folder.name] = Instance(folder.name, trace.fleet, trace.jobs, mix, best)
    return [instances[name] for name in sorted(instances)]


def read_folder(folder: Path) -> Trace:
    """Read the fleet and the jobs of one instance.

    Raises
    ------
    RejectedError
        When a file is invalid; includes the place.
    """
    links = folder / LINKS
    return read_trace(TraceFiles(folder / NODES, folder / JOBS, links if links.exists() else None))


def read_best(path: Path) -> dict[str, int]:
    """Read the best known number of jobs by instance; empty if there is no file.

    Raises
    ------
    RejectedError
        When the file is invalid; includes the place.
    """
    if not path.is_file():
        return {}
    best: dict[str, int] = {}
    for line in read_table(path, ("instance", "placed")):
        name = line.name("instance")
        require_unique(line, "instance", name, best)
        best[name] = line.whole("placed")
    return best


def _is_instance(folder: Path) -> bool:
    return (folder / NODES).is_file() and (folder / JOBS).is_file()


def folders_of(path: Path) -> list[Path]:
    """Return the folders of instances of a path: the path itself, or those in it.

    Raises
    ------
    RejectedError
        When it is not a folder, or has no instance.
    """
    if not path.is_dir():
        raise RejectedError(f"folder not found; name one with {NODES} and {JOBS}", where=str(path))
    path = path.resolve()  # for the names of "." and of folders beside it
    if _is_instance(path):
        return [path]
    found = sorted(folder for folder in path.iterdir() if _is_instance(folder))
    if not found:
        raise RejectedError(f"has no {NODES} and {JOBS}, and no folders with them", where=str(path))
    return found


def _siblings(folder: Path) -> list[Path]:
    """Return the other instances in the parent folder whose names differ only by the number at the end."""
    stem = _stem(folder.name)
    if stem == folder.name:
        return []
    beside = (other for other in folder.parent.iterdir() if other != folder and _stem(other.name) == stem)
    return sorted(other for other in beside if _is_instance(other) and other.name != stem)


def _stem(name: str) -> str:
    """Return a name without the number at the end."""
    return name.rstrip("0123456789")
