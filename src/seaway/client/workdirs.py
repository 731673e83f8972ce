"""Folders as archives, which are sent to a server once and named by their digest."""

from __future__ import annotations

import gzip
import hashlib
import os
import stat
import tarfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from heapq import nlargest
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit

from seaway.client.calls.workdirs import complete_workdir, send_workdir_part, workdirs
from seaway.client.connection import import_httpx, trusted
from seaway.client.errors import RejectedError, UnavailableError
from seaway.domain.units import size_text

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

    from seaway.client.sync import Client

IGNORE_FILES = (".seawayignore", ".skyignore")
"""Files in the folder with patterns of what to leave out; the first that exists replaces all `GIT_IGNORE`."""

GIT_IGNORE = ".gitignore"
ALWAYS_IGNORED = frozenset({".git"})
SHOWN = 5
"""Maximum number of files that an error names."""

FIXED_S = 315_532_800
"""Time of all files, seconds since 1970: the first that the ZIP format has. An archive then depends on content only."""

UPLOAD_S = 60.0
"""Time limit of each block that is sent to a bucket, seconds."""

Progress = Callable[[str, int, int], None]
"""Receives a verb, and the done and the total number of bytes."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file, link or empty folder of an archive, by its path within the folder."""

    path: str
    size: int


def entries(folder: Path) -> list[Entry]:
    """List the content of a folder without what its ignore files exclude, by path.

    Raises
    ------
    RejectedError
        If it is no folder, cannot be read, or has a link out of the folder or a special file.
    """
    if not folder.is_dir():
        raise RejectedError(f"{folder} is not a folder of this machine", where="workdir")
    own = next((folder / name for name in IGNORE_FILES if (folder / name).is_file()), None)
    try:
        ignoring = [_spec(own)] if own else []
        return sorted(_walk(folder.resolve(), "", ignoring, nested=own is None), key=lambda each: each.path)
    except OSError as error:
        raise RejectedError(f"{error.filename or folder} cannot be read: {error.strerror}", where="workdir") from None


Ignoring = tuple[str, "GitIgnoreSpec"]
"""Folder of an ignore file, and its patterns."""


def _spec(path: Path, inside: str = "") -> Ignoring:
    from pathspec import GitIgnoreSpec

    return inside, GitIgnoreSpec.from_lines(path.read_text(encoding="utf-8", errors="replace").splitlines())


def _walk(root: Path, inside: str, ignoring: list[Ignoring], *, nested: bool) -> Iterator[Entry]:
    folder = root / inside
    if nested and (folder / GIT_IGNORE).is_file():
        ignoring = [*ignoring, _spec(folder / GIT_IGNORE, inside)]
    empty = True
    with os.scandir(folder) as found:
        for each in found:
            path = f"{inside}{each.name}"
            if each.name in ALWAYS_IGNORED or _ignored(f"{path}/" if each.is_dir() else path, ignoring):
                continue
            empty = False
            if each.is_symlink():
                _require_inside(root, path)
                yield Entry(path, 0)
            elif each.is_dir():
                yield from _walk(root, f"{path}/", ignoring, nested=nested)
            elif each.is_file():
                yield Entry(path, each.stat().st_size)
            else:
                raise RejectedError(f"{path} is a special file; list it in {IGNORE_FILES[0]}", where="workdir")
    if empty and inside:
        yield Entry(inside.rstrip("/"), 0)


def _ignored(path: str, ignoring: list[Ignoring]) -> bool:
    """Report whether a path is left out. The innermost file that has a matching pattern decides, as in Git."""
    for inside, spec in reversed(ignoring):
        include = spec.check_file(path.removeprefix(inside)).include
        if include is not None:
            return include
    return False


def _require_inside(root: Path, path: str) -> None:
    target = (root / path).readlink()
    whole = Path(os.path.normpath(root / Path(path).parent / target))
    if target.is_absolute() or not whole.is_relative_to(root):
        said = f"{path} is a link to {target}, outside the folder; list it in {IGNORE_FILES[0]}"
        raise RejectedError(said, where="workdir")


class _Bounded:
    """File that is written up to a limit."""

    def __init__(self, file: IO[bytes], limit: int) -> None:
        self._file, self._limit = file, limit
        self.full = False

    def write(self, data: bytes) -> int:
        """Write data, or drop it beyond the limit."""
        self.full = self.full or self._file.tell() + len(data) > self._limit
        return len(data) if self.full else self._file.write(data)

    def flush(self) -> None:
        """Do nothing; the file is read by the same program."""


def pack(folder: Path, file: IO[bytes], limit_bytes: int, progress: Progress | None = None) -> str:
    """Write the content of a folder as a compressed tar file; return its digest.

    The same content gives the same bytes: names, modes, and fixed times and owners.

    Raises
    ------
    RejectedError
        If the archive is larger than the limit; names the largest files. Also as `entries`.
    """
    found = entries(folder)
    if not found:
        raise RejectedError(f"{folder} has no files, or all of them are ignored", where="workdir")
    total, done = sum(each.size for each in found), 0
    bounded = _Bounded(file, limit_bytes)
    with (
        gzip.GzipFile("", "wb", 6, bounded, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w|") as archive,
    ):
        for each in found:
            path = folder / each.path
            try:
                _add(archive, path, each.path)
            except OSError as error:
                raise RejectedError(f"{path} cannot be read: {error.strerror or error}", where="workdir") from None
            done += each.size
            if bounded.full:
                break
            if progress:
                progress("Packing", done, total)
    if bounded.full:
        raise _too_large(folder, found, limit_bytes)
    digest = hashlib.sha256()
    file.seek(0)
    while block := file.read(1 << 20):
        digest.update(block)
    return f"sha256:{digest.hexdigest()}"


def _add(archive: tarfile.TarFile, path: Path, name: str) -> None:
    info = archive.gettarinfo(str(path), name)
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.mtime = FIXED_S
    if info.islnk():  # a second name of a file: its content is sent again
        info.type, info.linkname, info.size = tarfile.REGTYPE, "", path.stat().st_size
    info.mode = 0o755 if info.isdir() or info.mode & stat.S_IXUSR else 0o644
    if info.isfile():
        with path.open("rb") as file:
            archive.addfile(info, file)
    else:
        archive.addfile(info)


def _too_large(folder: Path, found: list[Entry], limit_bytes: int) -> RejectedError:
    largest = ", ".join(
        f"{each.path} ({size_text(each.size)})" for each in nlargest(SHOWN, found, lambda each: each.size)
    )
    total = size_text(sum(each.size for each in found))
    return RejectedError(
        f"{folder} has {total} in {len(found):,} files, and its archive may have {size_text(limit_bytes)}. "
        f"List what jobs do not need in {IGNORE_FILES[0]}. Largest: {largest}",
        where="workdir",
    )


def send_folder(client: Client, folder: Path, *, tenant: str = "", progress: Progress | None = None) -> str:
    """Send a folder, unless the server has it; return the digest for the field `workdir` of jobs.

    Parameters
    ----------
    tenant
        Tenant of the jobs. Default: the caller's.

    Raises
    ------
    RejectedError
        If the folder cannot be sent; as `pack`.
    ConflictError
        If its tenant has no room for it.
    """
    limits = client.body(workdirs(tenant=tenant))
    with TemporaryFile() as file:
        digest = pack(folder, file, limits["limit_bytes"], progress)
        size, part_bytes, sent = file.tell(), limits["part_bytes"], 0
        found = client.body(complete_workdir(digest, size, tenant=tenant))
        missing = found["missing"]
        if found["uploads"]:
            found = _upload_all(client, found, digest, tenant, file, progress)
        for number in missing:
            file.seek(number * part_bytes)
            content = file.read(part_bytes)
            client.send(send_workdir_part(digest, number, content, tenant=tenant))
            sent += len(content)
            if progress:
                progress("Sending", sent, min(len(missing) * part_bytes, size))
        if not found["stored"] and not client.body(complete_workdir(digest, size, tenant=tenant))["stored"]:
            raise RejectedError("the server did not store the whole archive; submit again", where="workdir")
    return digest


def _upload_all(
    client: Client, found: dict[str, Any], digest: str, tenant: str, file: IO[bytes], progress: Progress | None
) -> dict[str, Any]:
    """Send what a bucket lacks of an archive; return the answer of the server after that.

    After a failure, ask the server again for what is missing, as long as something arrives.

    Raises
    ------
    UnavailableError
        If the bucket does not respond, or refuses a part.
    """
    size = file.seek(0, os.SEEK_END)
    while found["uploads"]:
        uploads, failure = found["uploads"], None
        for each in uploads:
            try:
                _upload(client, each, file, size, progress)
            except UnavailableError as error:
                failure = error
                break
        found = client.body(complete_workdir(digest, size, tenant=tenant))
        if len(found["uploads"]) >= len(uploads):
            missing = sum(each["size_bytes"] for each in found["uploads"])
            has = f"; it has {size_text(size - missing)} of {size_text(size)}, and the next submit sends the rest"
            why = failure or f"the bucket did not store what it accepted of {digest}"
            raise UnavailableError(f"{why}{has if missing < size else ''}")
    return found


def _upload(client: Client, upload: Mapping[str, Any], file: IO[bytes], size: int, progress: Progress | None) -> None:
    """Send a part of an archive to a bucket.

    Raises
    ------
    UnavailableError
        If the bucket does not respond, or refuses it.
    """
    httpx = import_httpx()
    begin, end = upload["offset_bytes"], upload["offset_bytes"] + upload["size_bytes"]

    def blocks() -> Iterator[bytes]:
        file.seek(begin)
        while block := file.read(min(1 << 20, end - file.tell())):
            yield block
            if progress:
                progress("Sending", file.tell(), size)

    place, trust = urlsplit(upload["url"]).netloc, trusted(client.target) or True
    try:
        reply = httpx.put(upload["url"], content=blocks(), headers=upload["headers"], timeout=UPLOAD_S, verify=trust)
    except httpx.HTTPError as error:
        raise UnavailableError(f"the bucket at {place} did not respond: {error}") from None
    if not reply.is_success:
        raise UnavailableError(
            f"the bucket at {place} refuses the archive: HTTP {reply.status_code} {reply.text[:300]}"
        )
