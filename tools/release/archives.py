"""The source archive and the wheel: built, and compared with the repository."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path
from zipfile import ZipFile

from tools.release.readiness import git

PACKAGE = "src/seaway/"
BESIDE_SOURCE = {
    *(".gitignore", "CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "constraints.txt", "pyproject.toml"),
    "hatch_build.py",
}
"""Files of the source archive outside the package; hatchling adds .gitignore and PKG-INFO."""

DASHBOARDS = "seaway/dashboards/"
"""Folder of the wheel with dashboards, which the build writes with the package `dashboards` of the source archive."""


def build(root: Path, folder: Path) -> tuple[Path, Path]:
    """Build the source archive, and the wheel from what is in that archive.

    Returns
    -------
    The source archive and the wheel, both in `folder`.
    """
    _hatchling(root, "sdist", folder)
    (source,) = folder.glob("*.tar.gz")
    unpacked = folder / "unpacked"
    with tarfile.open(source) as archive:
        archive.extractall(unpacked, filter="data")
    (tree,) = unpacked.iterdir()
    _hatchling(tree, "wheel", folder)
    (wheel,) = folder.glob("*.whl")
    return source, wheel


def _hatchling(root: Path, target: str, folder: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    subprocess.run(command, cwd=root, check=True, stdout=subprocess.DEVNULL)


def package_files(root: Path) -> set[str]:
    """Return the files of the package in the repository, relative to `src`."""
    listed = git(root, "ls-files", "--cached", "--others", "--exclude-standard", PACKAGE).splitlines()
    return {each.removeprefix("src/") for each in listed if (root / each).is_file()}


def wheel_problems(names: Iterable[str], package: set[str]) -> list[str]:
    """List what is wrong with the files of a wheel.

    Parameters
    ----------
    names
        Files in the wheel.
    package
        Files of the package in the repository, relative to `src`.
    """
    names = set(names)
    inside = {each for each in names if each.startswith("seaway/")}
    outside = {each for each in names - inside if ".dist-info/" not in each}
    dashboards = {each for each in inside if each.startswith(DASHBOARDS) and each.endswith(".json")}
    return [
        *_each("is outside seaway/", outside),
        *_each("is not in the repository", inside - package - dashboards),
        *([] if dashboards else [f"{DASHBOARDS} is missing"]),
        *_each("is missing", package - inside),
        *_each("is a test", filter(is_test, inside)),
    ]


def source_problems(names: Iterable[str], package: set[str]) -> list[str]:
    """List what is wrong with the files of a source archive, whose names begin with its own folder."""
    names = {each.partition("/")[2] for each in names}
    inside = {each.removeprefix("src/") for each in names if each.startswith(PACKAGE)}
    outside = {each for each in names if not each.startswith((PACKAGE, "dashboards/"))} - BESIDE_SOURCE
    return [
        *_each("is neither in src/seaway/ nor expected beside it", outside),
        *_each("is not in the repository", inside - package),
        *_each("is missing", package - inside),
    ]


def is_test(name: str) -> bool:
    """Return whether a file is a test or part of a test suite."""
    *folders, file = name.split("/")
    return "tests" in folders or file.startswith("test_") or file == "conftest.py"


def _each(what: str, names: Iterable[str]) -> list[str]:
    return [f"{name} {what}" for name in sorted(names)]


def content_problems(root: Path, source: Path, wheel: Path) -> list[str]:
    """List what is wrong with the contents of both archives."""
    package = package_files(root)
    with ZipFile(wheel) as archive:
        found = [f"{wheel.name}: {each}" for each in wheel_problems(archive.namelist(), package)]
    with tarfile.open(source) as tree:
        names = [each.name for each in tree.getmembers() if each.isfile()]
    return found + [f"{source.name}: {each}" for each in source_problems(names, package)]
