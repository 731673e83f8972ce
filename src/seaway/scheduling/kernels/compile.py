"""Compilation and caching of kernels, and their random numbers.

numba keys its cache by the file of the compiled function alone, so that a change in a function
which is called from another file goes unnoticed. The cache therefore lies in a folder named by a
digest of the whole `seaway.scheduling` package.
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
    """Make the folder in which compiled kernels are kept between processes; a temporary one if need be."""
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

setattr(numba.config, "CACHE_DIR", CACHE_FOLDER)  # noqa: B010  (known at run time only, so no type has it)


def never_compiled() -> bool:
    """Tell whether nothing was compiled on this machine yet, so that the first decisions take a minute."""
    return not any(Path(CACHE_FOLDER).rglob("*.nbi"))


def compiled(function: F) -> F:
    """Compile `function` on first use and keep the machine code for the next process."""
    return cast("F", numba.njit(cache=True, nogil=True, error_model="numpy")(function))


def specialises(stub: Callable[..., object], params: type) -> Callable[[F], F]:
    """Make the decorated function what `stub` means when its first argument is a `params`.

    A loop that calls `stub` is compiled once for each type of parameters, with the policy's own
    function in the place of the stub: static dispatch, without a ladder of policy names.
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
    for number in (np.uint64(first), np.uint64(second)):  # of one type, whatever integers they came as
        bits = (bits ^ number) + np.uint64(0x9E3779B97F4A7C15)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        bits ^= bits >> np.uint64(31)
    return int(np.int64(bits >> np.uint64(1)))
