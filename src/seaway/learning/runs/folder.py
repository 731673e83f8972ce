"""The folder of a run: configuration, checkpoint, best weights, episodes and policy."""

from __future__ import annotations

import fcntl
import json
import os
import pickle
import platform
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from seaway.domain.errors import RejectedError, UnavailableError
from seaway.learning.runs.assemble import command_of, record_of, run_of
from seaway.learning.runs.table import stored_rows
from seaway.learning.settings import Run
from seaway.learning.training.learner import State

FORMAT = 1
"""Format of `config.json`; others are rejected."""

PACKAGES = ("seaway", "numpy", "torch", "stable-baselines3", "gymnasium")
"""Packages whose versions are recorded."""


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Files of a run.

    Attributes
    ----------
    path
        The folder.
    """

    path: Path

    @property
    def config(self) -> Path:
        """Configuration of the run, as JSON."""
        return self.path / "config.json"

    @property
    def checkpoint(self) -> Path:
        """State to resume from."""
        return self.path / "checkpoint.pt"

    @property
    def best(self) -> Path:
        """Weights of the best policy."""
        return self.path / "best.pt"

    @property
    def episodes(self) -> Path:
        """Table of episodes, as CSV."""
        return self.path / "episodes.csv"

    @property
    def policy(self) -> Path:
        """The best policy as a policy file."""
        return self.path / "best.policy"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Create the folder if necessary, and lock it against other processes.

        Raises
        ------
        RejectedError
            When another process has the lock, or the folder cannot be created.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = (self.path / "lock").open("w")
        except OSError as error:
            raise RejectedError(f"cannot be written to: {error.strerror}", where=str(self.path)) from None
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise RejectedError(
                    "another process is training in this folder: wait for it, or choose another folder",
                    where=str(self.path),
                ) from None
            yield

    @property
    def has_run(self) -> bool:
        """True if the folder has a run."""
        return self.config.exists()

    def write_config(self, run: Run, digests: Mapping[str, str]) -> None:
        """Write the configuration of a run."""
        beside = self.config.with_name(f"{self.config.name}.new")
        beside.write_text(json.dumps(config_of(run, digests, self.path), indent=2) + "\n", encoding="utf-8")
        beside.replace(self.config)

    def read_config(self) -> tuple[Run, dict[str, str]]:
        """Read the configuration: settings, and digests of instances by name.

        Raises
        ------
        RejectedError
            When there is no run, another version wrote it, or it cannot be read.
        """
        try:
            record = json.loads(self.config.read_text(encoding="utf-8"))
            if record["format"] != FORMAT:
                raise RejectedError(f"has format {record['format']}, not {FORMAT}", where=str(self.config))
            digests = {str(name): str(digest) for name, digest in record["digests"].items()}
            return run_of(record["run"]), digests
        except FileNotFoundError:
            raise RejectedError("no run found: config.json is missing", where=str(self.path)) from None
        except OSError as error:
            raise RejectedError(f"cannot be read: {error.strerror}", where=str(self.config)) from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RejectedError(f"is not a configuration of a run: {error}", where=str(self.config)) from None


def config_of(run: Run, digests: Mapping[str, str], path: Path) -> dict[str, Any]:
    """Return the configuration of a run in the form of JSON."""
    return {
        "format": FORMAT,
        "command": command_of(run, path),
        "run": record_of(run),
        "digests": dict(digests),
        "versions": {"python": platform.python_version(), **_versions()},
    }


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


FOREIGN = "is of another run, or of another version: put the run's own back from a copy, or begin a new run"


def check_nothing_lost(folder: RunFolder) -> None:
    """Check that a new run would overwrite no results of an incomplete folder.

    Raises
    ------
    RejectedError
        When there are episodes, weights or a policy without a checkpoint, or any of these without a configuration.
    """
    there = [path.name for path in (folder.policy, folder.best) if path.exists()]
    if folder.episodes.exists() and folder.episodes.read_bytes().count(b"\n") > 1:
        there.append(folder.episodes.name)
    if not folder.checkpoint.exists():
        _check_none(there, folder.checkpoint)
    elif not folder.has_run:
        _check_none([folder.checkpoint.name, *there], folder.config)


def read_saved(folder: RunFolder, episodes: int, where: str) -> State | None:
    """Read the checkpoint of a run to resume, and check that all other files are present.

    Parameters
    ----------
    episodes
        Number of episodes of the whole run.
    where
        Place of this number for errors.

    Returns
    -------
    None for a new run.

    Raises
    ------
    RejectedError
        When a file is missing or damaged, or the run already has more episodes.
    """
    check_nothing_lost(folder)
    if not folder.checkpoint.exists():
        return None
    state = read(folder.checkpoint)
    try:
        done, best = int(state["episodes"]), state["selection"]["best"]
    except (KeyError, TypeError, ValueError):
        raise RejectedError(FOREIGN, where=str(folder.checkpoint)) from None
    if done > episodes:
        raise RejectedError(
            f"{episodes} is fewer than the {done} episodes that were played: give {done} or more", where=where
        )
    stored_rows(folder.episodes, done)
    if best is not None:
        read_best(folder)
    return state


def read_best(folder: RunFolder) -> State:
    """Read the weights of the best policy and the number of its episode.

    Raises
    ------
    RejectedError
        When they are missing or damaged.
    """
    retained = read(folder.best)
    if retained.keys() != {"episode", "weights"}:
        raise RejectedError(FOREIGN, where=str(folder.best))
    return retained


def _check_none(there: list[str], missing: Path) -> None:
    if there:
        raise RejectedError(
            f"is missing, and what the run learned would be written over ({', '.join(there)}): restore "
            "the file, choose another folder with --out, or remove this folder to start over",
            where=str(missing),
        )


ARRAY = "__array__"
"""Key of an array that is stored as a tensor, because safe loading does not support arrays."""

DAMAGED = "is cut off or damaged: put it back from a copy, or begin a new run"
MORE = "contains more than numbers, so Seaway did not write it: start a new run"


def write(path: Path, state: dict[str, Any]) -> None:
    """Write a state atomically.

    Parameters
    ----------
    state
        Numbers, texts, booleans, None, tensors and arrays, in dicts, lists and tuples.

    Raises
    ------
    UnavailableError
        When it cannot be written, for example on a full disk.
    """
    import torch

    beside = path.with_name(f"{path.name}.new")
    try:
        with beside.open("wb") as file:
            torch.save(_packed(state), file)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except (OSError, RuntimeError) as error:  # torch reports a full disk as a RuntimeError
        beside.unlink(missing_ok=True)
        raise UnavailableError(f"{path} cannot be written: {error}") from error


def read(path: Path) -> dict[str, Any]:
    """Read a state that `write` wrote.

    Raises
    ------
    RejectedError
        When it is missing, incomplete, damaged, or contains other objects.
    """
    try:
        state = _unpacked(_loaded(path)) if _is_whole(path) else None
    except FileNotFoundError:
        raise RejectedError("is not there", where=str(path)) from None
    except OSError as error:
        raise RejectedError(f"cannot be read: {error.strerror}", where=str(path)) from None
    except pickle.UnpicklingError:
        raise RejectedError(MORE, where=str(path)) from None
    except Exception:  # noqa: BLE001  # torch raises arbitrary errors of its readers
        raise RejectedError(DAMAGED, where=str(path)) from None
    if not isinstance(state, dict):
        raise RejectedError(DAMAGED, where=str(path))
    return state


def _is_whole(path: Path) -> bool:
    """Report whether all parts of an archive have their checksums, which torch does not check.

    Raises
    ------
    UnpicklingError
        When it is a pickle without an archive, which `write` never writes.
    """
    with path.open("rb") as file:
        if file.read(1) == pickle.PROTO:
            raise pickle.UnpicklingError
    with zipfile.ZipFile(path) as archive:
        return archive.testzip() is None


def _loaded(path: Path) -> object:
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about foreign pickles
        return torch.load(path, map_location="cpu", weights_only=True)


def _packed(value: object) -> object:
    import torch

    if isinstance(value, np.ndarray):
        return {ARRAY: torch.from_numpy(np.ascontiguousarray(value)), "shape": list(value.shape)}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {key: _packed(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_packed(each) for each in value] if isinstance(value, list) else tuple(map(_packed, value))
    return value


def _unpacked(value: object) -> object:
    if isinstance(value, dict):
        if ARRAY in value:
            return np.asarray(value[ARRAY]).reshape(value["shape"])
        return {key: _unpacked(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_unpacked, value))
    return value
