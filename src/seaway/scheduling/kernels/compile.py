"""Compilation and caching of kernels, and their random numbers.

The key of numba's cache is only the file of the compiled function, so that changes in called functions of other files
have no effect. The name of the cache folder is therefore a digest of the whole `seaway.scheduling` package.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from tempfile import gettempdir
from typing import TypeVar, cast

import numba
import numpy as np
from numba.extending import overload

F = TypeVar("F", bound=Callable[..., object])


def _cache_folder() -> str:
    """Create the cache folder of compiled kernels. If this fails, return a temporary folder."""
    root = Path(os.environ.get("SEAWAY_CACHE") or Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "seaway")
    digest = hashlib.sha256(numba.__version__.encode())
    for file in sorted(Path(__file__).resolve().parents[1].rglob("*.py")):
        digest.update(file.read_bytes())
    folder = root.expanduser() / "kernels" / digest.hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        folder = Path(gettempdir()) / f"seaway-kernels-{os.getuid()}-{digest.hexdigest()[:16]}"
    return str(folder)


CACHE_FOLDER = os.environ.get("NUMBA_CACHE_DIR") or _cache_folder()
"""Folder of compiled kernels, shared between processes."""

setattr(numba.config, "CACHE_DIR", CACHE_FOLDER)  # noqa: B010  (the attribute exists only at run time)


def never_compiled() -> bool:
    """Report whether the cache has no compiled kernels yet. The first decisions then take about a minute."""
    return not any(Path(CACHE_FOLDER).rglob("*.nbi"))


def compiled(function: F) -> F:
    """Compile `function` on first use, and cache the machine code on disk."""
    return cast("F", numba.njit(cache=True, nogil=True, error_model="numpy")(function))


def specialises(stub: Callable[..., object], params: type) -> Callable[[F], F]:
    """Register the decorated function as implementation of `stub` for a first argument of type `params`.

    A loop that calls `stub` is compiled once for each type of parameters, with the policy's function in place of the
    stub (static dispatch).
    """

    def register(function: F) -> F:
        def choose(first: object, *_: object) -> F | None:
            return function if getattr(first, "instance_class", None) is params else None

        overload(stub, strict=False, jit_options={"nogil": True, "error_model": "numpy"})(choose)
        return function

    return register


@compiled
def mixed(seed: int, first: int, second: int) -> int:
    """Mix three numbers into 63 random bits.

    References
    ----------
    Steele, Lea, Flood: Fast splittable pseudorandom number generators. OOPSLA 2014,
    doi:10.1145/2660193.2660195 (the finaliser of SplitMix64, applied after each number).
    """
    bits = np.uint64(seed)
    for number in (np.uint64(first), np.uint64(second)):  # one type for all integer arguments
        bits = (bits ^ number) + np.uint64(0x9E3779B97F4A7C15)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        bits ^= bits >> np.uint64(31)
    return int(np.int64(bits >> np.uint64(1)))
