"""The cache of compiled kernels."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from seaway.scheduling.kernels import compile as module
from seaway.scheduling.kernels.compile import DIGEST, is_compiled, mark_compiled

FOLDER = "from seaway.scheduling.kernels.compile import CACHE_FOLDER; print(CACHE_FOLDER)"


def folder_of_process(**variables: str) -> Path:
    """Return the cache folder of a process with these environment variables."""
    environment = {name: text for name, text in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "SEAWAY_CACHE")}
    said = subprocess.run([sys.executable, "-c", FOLDER], env=environment | variables, capture_output=True, check=True)
    return Path(said.stdout.decode().strip())


def test_policy_counts_as_compiled_once_all_of_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of another installation, or some of this one, do not make a policy compiled."""
    monkeypatch.setattr(module, "CACHE_FOLDER", tmp_path)
    (tmp_path / "kernels_of_another_folder").mkdir()
    (tmp_path / "kernels_of_another_folder" / "scan.nbi").touch()
    (tmp_path / "another-greedy.compiled").touch()
    assert not is_compiled("greedy")
    mark_compiled("greedy")
    assert is_compiled("greedy")
    assert not is_compiled("bestfit")


def test_another_processor_has_another_cache(tmp_path: Path) -> None:
    """Machine code for one processor is not taken for that of another, as in an image that runs elsewhere."""
    here = folder_of_process(SEAWAY_CACHE=str(tmp_path))
    elsewhere = folder_of_process(SEAWAY_CACHE=str(tmp_path), NUMBA_CPU_NAME="generic")
    assert here.name == DIGEST != elsewhere.name


def test_new_cache_begins_with_that_of_image(tmp_path: Path) -> None:
    """A server in a container with a read-only file system compiles nothing, since it copies the cache of its image."""
    made, cache = tmp_path / "made", tmp_path / "cache"
    kernels = made / "kernels" / DIGEST
    kernels.mkdir(parents=True)
    (kernels / "scan.nbi").write_bytes(b"code")
    kernels.chmod(0o555)
    for _ in range(2):
        folder = folder_of_process(SEAWAY_CACHE=str(cache), SEAWAY_COMPILED=str(made))
        assert folder == cache / "kernels" / DIGEST
        assert (folder / "scan.nbi").read_bytes() == b"code"
        (folder / "own.nbi").touch()
    assert [each.name for each in (cache / "kernels").iterdir()] == [DIGEST]


@pytest.mark.parametrize("trap", ["link", "writable"])
def test_cache_in_temporary_folder_is_private(tmp_path: Path, trap: str) -> None:
    """Kernels are code, so a folder that another user has prepared under /tmp is not used."""
    file = tmp_path / "a file"
    file.touch()
    expected = tmp_path / f"seaway-kernels-{os.getuid()}-{DIGEST}"
    if trap == "link":
        (tmp_path / "theirs").mkdir()
        expected.symlink_to(tmp_path / "theirs")
    else:
        expected.mkdir()
        expected.chmod(0o777)
    found = folder_of_process(SEAWAY_CACHE=str(file), TMPDIR=str(tmp_path))
    assert found not in (expected, expected.resolve())
    assert found.stat().st_mode & 0o777 == 0o700
    expected.unlink() if trap == "link" else expected.rmdir()
    found = folder_of_process(SEAWAY_CACHE=str(file), TMPDIR=str(tmp_path))
    assert found == expected
    assert found.stat().st_mode & 0o777 == 0o700
