"""Files of tensors: written whole or not at all, read without running anything that stands in them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

import numpy as np

from seaway.domain.errors import RejectedError, UnavailableError

ARRAY = "__array__"
"""Key under which an array stands as a tensor: what is read without running anything knows no arrays."""


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
        When it is not there, is cut off, or has something in it that is no state.
    """
    import torch

    try:
        return cast("dict[str, Any]", _unpacked(torch.load(path, map_location="cpu", weights_only=True)))
    except FileNotFoundError:
        raise RejectedError("is not there", where=str(path)) from None
    except Exception as error:  # noqa: BLE001  # torch lets through what its readers of zip files and pickles raise
        says = str(error).strip().partition("\n")[0] or type(error).__name__
        raise RejectedError(f"is damaged, or no checkpoint: {says}", where=str(path)) from None


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
