"""Files of tensors: written whole or not at all, read without running anything that stands in them."""

from __future__ import annotations

import os
import pickle
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from seaway.domain.errors import RejectedError, UnavailableError

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
