"""Compilation and caching of kernels, and their random numbers.

The key of numba's cache is only the file of the compiled function, so that changes in called functions of other files
have no effect. The name of the cache folder is therefore a digest of the whole `seaway.scheduling` package. It also
includes what else makes numba compile again: its version, the folder of the package, and the processor.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import gettempdir, mkdtemp
from typing import TypeVar, cast

import numba
import numpy as np
from llvmlite import binding
from numba.extending import overload

F = TypeVar("F", bound=Callable[..., object])


def _digest() -> str:
    """Return a digest of everything that the compiled kernels depend on."""
    package = Path(__file__).resolve().parents[1]
    processor = os.environ.get("NUMBA_CPU_NAME") or binding.get_host_cpu_name()
    digest = hashlib.sha256(f"{numba.__version__} {package} {processor}".encode())
    for file in sorted(package.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _cache_folder(digest: str) -> Path:
    """Create the cache folder of compiled kernels. If this fails, return a temporary folder.

    A new folder begins with the kernels of `SEAWAY_COMPILED`, a cache that need not be writable, such as an image's.
    """
    if given := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(given)
    root = Path(os.environ.get("SEAWAY_CACHE") or Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "seaway")
    folder = root.expanduser() / "kernels" / digest
    try:
        if not folder.exists() and (made := os.environ.get("SEAWAY_COMPILED")):
            _copy(Path(made) / "kernels" / digest, folder)
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return _private_folder(Path(gettempdir()) / f"seaway-kernels-{os.getuid()}-{digest}")
    return folder


def _copy(made: Path, folder: Path) -> None:
    """Copy a cache as a whole; no effect if it does not exist, or if another process was faster."""
    if not made.is_dir():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(mkdtemp(dir=folder.parent))
    shutil.copytree(made, fresh, dirs_exist_ok=True, copy_function=shutil.copyfile)
    try:
        fresh.rename(folder)
    except OSError:
        shutil.rmtree(fresh)


def _private_folder(folder: Path) -> Path:
    """Create a folder that only this user can write to. Loading a kernel of another user would run that user's code."""
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022:
            return folder
    return Path(mkdtemp(prefix=f"{folder.name}-"))


DIGEST = _digest()
CACHE_FOLDER = _cache_folder(DIGEST)
"""Folder of compiled kernels, shared between processes."""

setattr(numba.config, "CACHE_DIR", str(CACHE_FOLDER))  # noqa: B010  (the attribute exists only at run time)


def is_compiled(policy: str) -> bool:
    """Report whether the cache has all kernels of a built-in policy. Otherwise, compiling takes up to a minute."""
    return _mark(policy).exists()


def mark_compiled(policy: str) -> None:
    """Record that the cache has all kernels of a built-in policy."""
    with suppress(OSError):
        _mark(policy).touch()


def _mark(policy: str) -> Path:
    return CACHE_FOLDER / f"{DIGEST}-{policy}.compiled"


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
