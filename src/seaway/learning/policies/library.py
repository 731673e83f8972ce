"""Libraries of policies by name."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Protocol

from seaway.domain.errors import RejectedError, UnknownError
from seaway.learning.policies.check import read_policy
from seaway.learning.policies.file import SUFFIX, PolicyFile, read_content


class Library(Protocol):
    """Policies by name."""

    def names(self) -> list[str]:
        """Return all names, sorted."""
        ...

    def load(self, name: str) -> PolicyFile:
        """Read and check a policy.

        Raises
        ------
        UnknownError
            When there is no policy of that name.
        RejectedError
            When the policy may not be used.
        """
        ...


class FolderLibrary:
    """Policy files in a folder, each named after its policy.

    Parameters
    ----------
    folder
        Path of the folder, which need not exist.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def names(self) -> list[str]:
        """Return the names of all policy files, sorted."""
        return sorted(each.name.removesuffix(SUFFIX) for each in self._folder.glob(f"[!.]*{SUFFIX}"))

    def load(self, name: str) -> PolicyFile:
        """Read and check the file of a policy."""
        if name not in self.names():
            raise _unknown(name, self)
        path = self.path(name)
        file = read_policy(path)
        if file.manifest.name != name:
            raise RejectedError(f"is policy {file.manifest.name!r}: import it under the name {name!r}", where=str(path))
        return file

    def path(self, name: str) -> Path:
        """Return the path of a policy's file."""
        return self._folder / f"{name}{SUFFIX}"

    def content(self, name: str) -> bytes:
        """Return the content of a policy's file, unchecked."""
        return read_content(self.path(name))


class ShippedLibrary:
    """Policies in the package."""

    def names(self) -> list[str]:
        """Return all names, sorted."""
        names = (each.name for each in _shipped().iterdir())
        return sorted(name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX))

    def load(self, name: str) -> PolicyFile:
        """Read and check a policy."""
        if name not in self.names():
            raise _unknown(name, self)
        return read_policy(self.content(name))

    def content(self, name: str) -> bytes:
        """Return the content of a policy's file, unchecked."""
        return _shipped().joinpath(f"{name}{SUFFIX}").read_bytes()


class JoinedLibrary:
    """Several libraries as one. The first one with a name takes precedence."""

    def __init__(self, libraries: Sequence[Library]) -> None:
        self._libraries = tuple(libraries)

    def names(self) -> list[str]:
        """Return all names, sorted."""
        return sorted({name for each in self._libraries for name in each.names()})

    def load(self, name: str) -> PolicyFile:
        """Read and check a policy from the first library that has it."""
        for each in self._libraries:
            if name in each.names():
                return each.load(name)
        raise _unknown(name, self)


def _shipped() -> resources.abc.Traversable:
    return resources.files("seaway.learning.policies").joinpath("shipped")


def _unknown(name: str, library: Library) -> UnknownError:
    known = ", ".join(library.names()) or "none at all"
    return UnknownError(f"trained policy {name!r} not found; available: {known}")
