"""Where policies are looked up by name."""

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
        """Return the names of all, sorted."""
        ...

    def load(self, name: str) -> PolicyFile:
        """Read and check one.

        Raises
        ------
        UnknownError
            When it has none of that name.
        RejectedError
            When what it has of that name may not be used.
        """
        ...


class FolderLibrary:
    """Policy files in a folder, each named after its policy.

    Parameters
    ----------
    folder
        Which one; it need not be there.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def names(self) -> list[str]:
        """Return the names of all files that end as policy files do."""
        return sorted(each.name.removesuffix(SUFFIX) for each in self._folder.glob(f"[!.]*{SUFFIX}"))

    def load(self, name: str) -> PolicyFile:
        """Read and check the file of that name."""
        if name not in self.names():
            raise _unknown(name, self)
        path = self.path(name)
        file = read_policy(path)
        if file.manifest.name != name:
            raise RejectedError(f"is policy {file.manifest.name!r}: import it under the name {name!r}", where=str(path))
        return file

    def path(self, name: str) -> Path:
        """Return where the file of that name is."""
        return self._folder / f"{name}{SUFFIX}"

    def content(self, name: str) -> bytes:
        """Return the file as it stands there, unchecked."""
        return read_content(self.path(name))


class ShippedLibrary:
    """The policies that come with the package."""

    def names(self) -> list[str]:
        """Return the names of all."""
        names = (each.name for each in _shipped().iterdir())
        return sorted(name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX))

    def load(self, name: str) -> PolicyFile:
        """Read and check one."""
        if name not in self.names():
            raise _unknown(name, self)
        return read_policy(self.content(name))

    def content(self, name: str) -> bytes:
        """Return its file, unchecked."""
        return _shipped().joinpath(f"{name}{SUFFIX}").read_bytes()


class JoinedLibrary:
    """Several libraries as one; the first that has a name is asked for it."""

    def __init__(self, libraries: Sequence[Library]) -> None:
        self._libraries = tuple(libraries)

    def names(self) -> list[str]:
        """Return the names that any of them has."""
        return sorted({name for each in self._libraries for name in each.names()})

    def load(self, name: str) -> PolicyFile:
        """Ask the first that has it."""
        for each in self._libraries:
            if name in each.names():
                return each.load(name)
        raise _unknown(name, self)


def _shipped() -> resources.abc.Traversable:
    return resources.files("seaway.learning.policies").joinpath("shipped")


def _unknown(name: str, library: Library) -> UnknownError:
    known = ", ".join(library.names()) or "none at all"
    return UnknownError(f"trained policy {name!r} not found; available: {known}")
