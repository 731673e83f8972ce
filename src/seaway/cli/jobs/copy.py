"""`seaway cp`: files to and from containers of running jobs, as a tar stream through a command."""

from __future__ import annotations

import asyncio
import io
import re
import tarfile
from concurrent.futures import CancelledError
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from queue import Queue
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seaway.cli.errors import note
from seaway.cli.jobs.access import READ_BYTES, ContainerOption, ReplicaOption, known
from seaway.cli.remote import target
from seaway.domain.errors import ConflictError, RejectedError, UnavailableError

if TYPE_CHECKING:
    from seaway.client.config import Target
    from seaway.client.sessions import Frames, Outcome

REMOTE = re.compile(r"([A-Za-z0-9][\w.-]*):(.+)", re.DOTALL)
"""Form of a path in a container."""

MAX_ERRORS_BYTES = 2000
"""Maximum size of the errors of a command in a message."""

QUEUED = 16
"""Maximum number of pieces that were received, but not written yet."""

NO_COMMAND = 127


@dataclass(frozen=True, slots=True)
class Place:
    """Path in a container of a job, or of this machine if there is no job."""

    job: str
    path: str

    @classmethod
    def of(cls, text: str) -> Place:
        """Read ``JOB:PATH`` or a local path."""
        found = REMOTE.fullmatch(text)
        return cls(found[1], found[2]) if found else cls("", text)


def copy(
    context: typer.Context,
    source: Annotated[str, typer.Argument(help="A local path, or JOB:PATH.", metavar="SOURCE")],
    destination: Annotated[str, typer.Argument(help="A local path, or JOB:PATH.", metavar="DESTINATION")],
    replica: ReplicaOption = 0,
    container: ContainerOption = "",
) -> None:
    """Copy files and directories to or from a container of a running job. The container must have tar.

    As in cp, the copy goes into the destination if that is a directory, and else gets its name.

    [bold]Examples[/bold]

      [cyan]seaway cp train:/data/model.pt .[/cyan]
      [cyan]seaway cp ./input train:/data --replica 1[/cyan]
    """
    ours, theirs = Place.of(source), Place.of(destination)
    if bool(ours.job) == bool(theirs.job):
        raise RejectedError("one of SOURCE and DESTINATION must be JOB:PATH, and the other a local path")
    job = known(context, ours.job or theirs.job)
    remote = Remote(target(context), job, replica, container)
    if ours.job:
        asyncio.run(remote.download(PurePosixPath(ours.path), Path(destination)))
    else:
        asyncio.run(remote.upload(Path(source), PurePosixPath(theirs.path)))


@dataclass(frozen=True, slots=True)
class Remote:
    """Container whose files are copied."""

    server: Target
    job: str
    replica: int
    container: str

    async def download(self, source: PurePosixPath, destination: Path) -> None:
        """Copy a path of the container to this machine.

        Raises
        ------
        ConflictError
            When the command in the container fails.
        """
        if not source.name:
            raise RejectedError("must have a name", where="SOURCE")
        folder = destination if destination.is_dir() else destination.parent
        name = source.name if destination.is_dir() else destination.name
        pieces: Queue[bytes] = Queue(QUEUED)
        unpacking = asyncio.create_task(asyncio.to_thread(_unpack, pieces, source.name, folder, name))
        try:
            await self._run(["tar", "cf", "-", "-C", str(source.parent), "--", source.name], pieces)
        finally:
            await asyncio.to_thread(pieces.put, b"")
            count = await unpacking
        note(f"copied {count} {'file' if count == 1 else 'files'} to {folder / name}")

    async def upload(self, source: Path, destination: PurePosixPath) -> None:
        """Copy a path of this machine to the container; raise as `download`."""
        if not source.exists():
            raise RejectedError(f"{source} does not exist", where="SOURCE")
        source = source.resolve()
        inside = await self._succeeds(["test", "-d", str(destination)])
        folder = destination if inside else destination.parent
        name = source.name if inside else destination.name
        await self._run(["tar", "xmf", "-", "-C", str(folder)], Queue(), source, name)
        note(f"copied {source} to {folder / name}")

    async def _succeeds(self, command: list[str]) -> bool:
        try:
            await self._run(command, Queue())
        except ConflictError:
            return False
        return True

    async def _run(self, command: list[str], pieces: Queue[bytes], source: Path | None = None, name: str = "") -> None:
        """Run a command, with an archive of `source` as its input, and queue its output."""
        from seaway.client.calls.jobs import exec_session
        from seaway.client.sessions import open_session

        call = exec_session(self.job, command, replica=self.replica, container=self.container, stdin=source is not None)
        async with open_session(self.server, call) as session:
            sending = asyncio.create_task(_send(session, source, name)) if source else None
            try:
                outcome, errors = await _receive(session, pieces)
            finally:
                if sending:
                    sending.cancel()
                    await asyncio.gather(sending, return_exceptions=True)
        if outcome.exit_code is None:
            raise UnavailableError(outcome.message)
        if outcome.exit_code == NO_COMMAND:
            raise ConflictError(f"the container has no {command[0]}: {errors}")
        if outcome.exit_code:
            raise ConflictError(f"{command[0]} in the container failed: {errors or f'exit code {outcome.exit_code}'}")


async def _receive(session: Frames, pieces: Queue[bytes]) -> tuple[Outcome, str]:
    """Queue output until the outcome; return it with the errors."""
    from seaway.client.sessions import Channel, Outcome

    errors = b""
    while frame := await session.receive():
        if frame[0] == Channel.STATUS:
            return Outcome.of(frame), errors.decode(errors="replace").strip()
        if frame[0] == Channel.STDOUT:
            await asyncio.to_thread(pieces.put, frame[1:])
        elif frame[0] == Channel.STDERR:
            errors = (errors + frame[1:])[-MAX_ERRORS_BYTES:]
    return Outcome(None, "the connection broke before the copy was complete"), ""


async def _send(session: Frames, source: Path, name: str) -> None:
    from seaway.client.sessions import Channel

    loop = asyncio.get_running_loop()

    class Pipe(io.RawIOBase):
        """File that sends what is written."""

        def writable(self) -> bool:
            return True

        def write(self, data: Any) -> int:  # noqa: ANN401  # any buffer
            asyncio.run_coroutine_threadsafe(session.send(bytes([Channel.STDIN]) + bytes(data)), loop).result()
            return len(data)

    def pack() -> None:
        with (
            io.BufferedWriter(Pipe(), READ_BYTES) as pipe,
            tarfile.open(fileobj=pipe, mode="w|", format=tarfile.PAX_FORMAT, bufsize=READ_BYTES) as archive,
        ):
            archive.add(source, name)

    try:
        await asyncio.to_thread(pack)
        await session.send(bytes([Channel.CLOSE, Channel.STDIN]))
    except (UnavailableError, CancelledError):  # the outcome has the reason
        return


class _Pieces(io.RawIOBase):
    """File of the received pieces; an empty one is its end."""

    def __init__(self, pieces: Queue[bytes]) -> None:
        self._pieces, self._rest, self._ended = pieces, b"", False

    def readable(self) -> bool:
        """Report that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401  # any buffer
        """Read into a buffer, and return the number of bytes."""
        if not self._rest and not self._ended:
            self._rest = self._pieces.get()
            self._ended = not self._rest
        size = min(len(self._rest), len(buffer))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size

    def drain(self) -> None:
        """Drop the other pieces, so that their sender can end."""
        while not self._ended:
            self._ended = not self._pieces.get()


def _unpack(pieces: Queue[bytes], root: str, folder: Path, name: str) -> int:
    """Write an archive under another name; return the number of files.

    Names, links and modes that could reach beyond the folder are refused, because the container may send anything.
    """
    file, count = _Pieces(pieces), 0
    try:
        with tarfile.open(fileobj=io.BufferedReader(file, READ_BYTES), mode="r|") as archive:
            for member in archive:
                member.name = _renamed(member.name, root, name)
                if member.islnk():
                    member.linkname = _renamed(member.linkname, root, name)
                archive.extract(member, folder, filter="data")
                count += not member.isdir()
    except tarfile.FilterError as error:
        raise RejectedError(f"the container sent a file that is not safe to write: {error}") from None
    except OSError as error:
        raise RejectedError(f"cannot write {error.filename or folder}: {error.strerror}", where="DESTINATION") from None
    except tarfile.ReadError:
        if count:
            raise UnavailableError("the archive from the container is incomplete") from None
    finally:
        file.drain()
    return count


def _renamed(path: str, root: str, name: str) -> str:
    """Return a path in an archive with another first part."""
    parts = PurePosixPath(path).parts
    if parts[:1] != (root,):
        raise RejectedError(f"the container sent {path!r}, which was not requested")
    return str(PurePosixPath(name, *parts[1:]))
