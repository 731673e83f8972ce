"""The folder of a run: what it depends on, what it learned, how it went."""

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
"""Of `config.json`; others are refused."""

PACKAGES = ("seaway", "numpy", "torch", "stable-baselines3", "gymnasium")
"""Whose versions are written down."""


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Where a run keeps what.

    Attributes
    ----------
    path
        The folder.
    """

    path: Path

    @property
    def config(self) -> Path:
        """What the run depends on, as JSON."""
        return self.path / "config.json"

    @property
    def checkpoint(self) -> Path:
        """All that is needed to go on."""
        return self.path / "checkpoint.pt"

    @property
    def best(self) -> Path:
        """Weights of the best policy."""
        return self.path / "best.pt"

    @property
    def episodes(self) -> Path:
        """One line an episode, as CSV."""
        return self.path / "episodes.csv"

    @property
    def policy(self) -> Path:
        """The best policy, to be used."""
        return self.path / "best.policy"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Make the folder where there is none, and keep other processes from it.

        Raises
        ------
        RejectedError
            When another process has it, or it cannot be made.
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
        """True if a run began here."""
        return self.config.exists()

    def write_config(self, run: Run, digests: Mapping[str, str]) -> None:
        """Write down what a run depends on."""
        beside = self.config.with_name(f"{self.config.name}.new")
        beside.write_text(json.dumps(config_of(run, digests, self.path), indent=2) + "\n", encoding="utf-8")
        beside.replace(self.config)

    def read_config(self) -> tuple[Run, dict[str, str]]:
        """Read what the run here depends on: its settings, and digests of its instances by name.

        Raises
        ------
        RejectedError
            When no run began here, another version wrote it down, or it cannot be read.
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
    """Write down what a run depends on, as JSON."""
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
    """See that nothing was learned yet where what tells how to go on is not there: a run starts over over the rest.

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
    """Read the checkpoint of a run that is to go on, and see that all else is there that its end will need.

    Parameters
    ----------
    episodes
        How many there are to be in all.
    where
        Where that was given.

    Returns
    -------
    None where the run starts over.

    Raises
    ------
    RejectedError
        When something is missing or spoilt, or more episodes were played.
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
    """Read the weights of a run's best policy, and after which episode it had them.

    Raises
    ------
    RejectedError
        When they are not there, or damaged.
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
"""Key under which an array stands as a tensor: what is read without running anything knows no arrays."""

DAMAGED = "is cut off or damaged: put it back from a copy, or begin a new run"
MORE = "contains more than numbers, so Seaway did not write it: start a new run"


def write(path: Path, state: dict[str, Any]) -> None:
    """Write a state, so that a kill leaves the old file or the new one.

    Parameters
    ----------
    state
        Numbers, texts, truth, None, tensors and arrays, in dicts, lists and tuples.

    Raises
    ------
    UnavailableError
        When it cannot be written, like on a full disk.
    """
    import torch

    beside = path.with_name(f"{path.name}.new")
    try:
        with beside.open("wb") as file:
            torch.save(_packed(state), file)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except (OSError, RuntimeError) as error:  # torch says of a full disk that it is a RuntimeError
        beside.unlink(missing_ok=True)
        raise UnavailableError(f"{path} cannot be written: {error}") from error


def read(path: Path) -> dict[str, Any]:
    """Read a state that `write` wrote.

    Raises
    ------
    RejectedError
        When it is not there, is cut off or damaged, or has something in it that is no state.
    """
    try:
        state = _unpacked(_loaded(path)) if _is_whole(path) else None
    except FileNotFoundError:
        raise RejectedError("is not there", where=str(path)) from None
    except OSError as error:
        raise RejectedError(f"cannot be read: {error.strerror}", where=str(path)) from None
    except pickle.UnpicklingError:
        raise RejectedError(MORE, where=str(path)) from None
    except Exception:  # noqa: BLE001  # torch lets through what its readers raise, in words for those who program
        raise RejectedError(DAMAGED, where=str(path)) from None
    if not isinstance(state, dict):
        raise RejectedError(DAMAGED, where=str(path))
    return state


def _is_whole(path: Path) -> bool:
    """Tell whether it is an archive of which every part has its checksum, which torch does not look at.

    Raises
    ------
    UnpicklingError
        When it is a pickle without an archive: nothing that `write` wrote.
    """
    with path.open("rb") as file:
        if file.read(1) == pickle.PROTO:
            raise pickle.UnpicklingError
    with zipfile.ZipFile(path) as archive:
        return archive.testzip() is None


def _loaded(path: Path) -> object:
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pickles that others wrote
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
