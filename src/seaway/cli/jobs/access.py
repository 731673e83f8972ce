"""`seaway exec`, `attach` and `port-forward`: sessions with containers of running jobs."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager, nullcontext, suppress
from functools import partial
from threading import Condition, Thread
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seaway.cli.arguments import Job
from seaway.cli.errors import note, print_error
from seaway.cli.remote import connect, connect_to_follow, target
from seaway.domain.errors import RejectedError, SeawayError, UnavailableError

if TYPE_CHECKING:
    from seaway.client.call import Call
    from seaway.client.config import Target
    from seaway.client.sessions import Frames, Outcome

READ_BYTES = 32_768
"""Maximum size of a read from standard input."""

MAX_UNWRITTEN_BYTES = 64 << 20
"""Maximum size of output that waits for a slow reader, such as a pager. Beyond it, the session waits as well."""

BROKEN_PIPE = 141
"""Exit code when the reader of the output leaves, as in shells: 128 and the number of SIGPIPE."""

ReplicaOption = Annotated[int, typer.Option("--replica", "-r", min=0, help="Number of a replica, from 0.")]
ContainerOption = Annotated[str, typer.Option("--container", "-c", help="Name of the container; default: the first.")]
StdinOption = Annotated[
    bool | None,
    typer.Option("--stdin/--no-stdin", "-i", help="Send standard input. Default: only from a terminal."),
]
TtyOption = Annotated[
    bool | None,
    typer.Option("--tty/--no-tty", "-t", help="Use a terminal. Default: if standard input and output are one."),
]


def exec_(  # options by name
    context: typer.Context,
    job: Job,
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[-- COMMAND...]", help="Command; default: a shell.")
    ] = None,
    replica: ReplicaOption = 0,
    container: ContainerOption = "",
    stdin: StdinOption = None,
    tty: TtyOption = None,
) -> None:
    """Run a command in a container of a running job, and exit with its exit code.

    [bold]Examples[/bold]

      [cyan]seaway exec train[/cyan]
      [cyan]seaway exec train --replica 3 -- nvidia-smi[/cyan]
      [cyan]seaway exec train -i -- tee /data/list < list[/cyan]
    """
    from seaway.client.calls.jobs import exec_session

    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    tty = terminal if tty is None else tty
    stdin = tty if stdin is None else stdin
    job = known(context, job)
    call = exec_session(job, command or (), replica=replica, container=container, stdin=stdin, tty=tty)
    raise typer.Exit(run(context, call, stdin=stdin, raw=tty and terminal))


def attach(
    context: typer.Context,
    job: Job,
    replica: ReplicaOption = 0,
    container: ContainerOption = "",
    stdin: Annotated[
        bool, typer.Option("--stdin", "-i", help="Send standard input, if the container reads it.")
    ] = False,
    tty: Annotated[bool, typer.Option("--tty", "-t", help="The container has a terminal.")] = False,
) -> None:
    """Attach to the main process of a container of a running job: follow its output, and send input with -i.

    [bold]Examples[/bold]

      [cyan]seaway attach train[/cyan]
      [cyan]seaway attach train --replica 3 --container main[/cyan]
    """
    from seaway.client.calls.jobs import attach_session

    raw = tty and stdin and sys.stdin.isatty() and sys.stdout.isatty()
    call = attach_session(known(context, job), replica=replica, container=container, stdin=stdin, tty=tty)
    raise typer.Exit(run(context, call, stdin=stdin, raw=raw))


PORT = re.compile(r"(?:([0-9]{1,5})?:)?([0-9]{1,5})")
MAX_PORT = 65_535


def port_forward(
    context: typer.Context,
    job: Job,
    ports: Annotated[
        list[str], typer.Argument(metavar="[LOCAL:]PORT...", help="Ports; `:PORT` takes a free local one.")
    ],
    replica: ReplicaOption = 0,
    address: Annotated[str, typer.Option(help="Local address that accepts connections.")] = "127.0.0.1",
) -> None:
    """Forward ports of this machine to ports of a running job, until Ctrl-C or the end of the job.

    Every connection goes to the place where the job runs at that time.

    [bold]Examples[/bold]

      [cyan]seaway port-forward train 8888[/cyan]
      [cyan]seaway port-forward train 9000:8888 6006 --replica 1[/cyan]
    """
    pairs = [port_pair(each) for each in ports]
    job = known(context, job)
    with suppress(KeyboardInterrupt):
        asyncio.run(forward(context, job, replica, address, pairs))


def port_pair(text: str) -> tuple[int, int]:
    """Read a local and a remote port; the local one is 0 for any.

    Raises
    ------
    RejectedError
        When it is none.
    """
    found = PORT.fullmatch(text)
    remote = int(found[2]) if found else 0
    local = (int(found[1] or 0) if ":" in text else remote) if found else 0
    if not 0 < remote <= MAX_PORT or local > MAX_PORT:
        raise RejectedError(f"{text!r} is no port, like 8888 or 9000:8888", where="PORT")
    return local, remote


async def forward(
    context: typer.Context,
    job: str,
    replica: int,
    address: str,
    pairs: Sequence[tuple[int, int]],
    on_ready: Callable[[list[int]], None] = lambda _: None,
) -> None:
    """Forward ports until the job ends.

    Parameters
    ----------
    on_ready
        Called with the local ports.

    Raises
    ------
    RejectedError
        When a local port cannot be used.
    ConflictError
        When the job has no containers.
    """
    from seaway.client.calls.jobs import port_session
    from seaway.client.errors import UpgradeRequiredError

    server = target(context)
    listeners = []
    async with connect_to_follow(context) as client, AsyncExitStack() as open_:
        with suppress(UpgradeRequiredError):  # nothing else is wrong
            await client.send(port_session(job, pairs[0][1], replica=replica))
        for local, remote in pairs:
            accept = partial(_accept, server, job, replica, remote)
            try:
                listener = await open_.enter_async_context(await asyncio.start_server(accept, address, local))
            except OSError as error:
                why = f"{address}:{local} cannot be used: {error.strerror or error}; choose another local port"
                raise RejectedError(f"{why}, like :{remote}", where="PORT") from None
            listeners.append(listener.sockets[0].getsockname()[1])
            note(f"forwarding {address}:{listeners[-1]} to port {remote} of replica {replica}; stop with Ctrl-C")
        on_ready(listeners)
        ended = await client.wait(job)
    raise UnavailableError(f"the job is {ended.state}: {ended.message}")


async def _accept(
    server: Target, job: str, replica: int, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Connect an accepted connection to a port of the job."""
    from seaway.client.calls.jobs import port_session
    from seaway.client.sessions import Channel, Outcome, open_session

    async def send(session: Frames) -> None:
        while data := await reader.read(READ_BYTES):
            await session.send(bytes([Channel.STDIN]) + data)

    async def receive(session: Frames) -> None:
        while frame := await session.receive():
            if frame[0] == Channel.STATUS:
                if reason := Outcome.of(frame).message:
                    note(f"error: {reason}")
                return
            writer.write(frame[1:])
            await writer.drain()

    try:
        async with open_session(server, port_session(job, port, replica=replica)) as session:
            both = [asyncio.create_task(each(session)) for each in (send, receive)]
            try:
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for each in both:
                    each.cancel()
                await asyncio.gather(*both, return_exceptions=True)
    except SeawayError as error:
        print_error(error)
    finally:
        writer.close()


def known(context: typer.Context, job: str) -> str:
    """Return the ID of a job, so that a wrong name or server has the usual error, with the usual retries."""
    from seaway.client.calls.jobs import job as call

    with connect(context) as client:
        return str(client.body(call(job))["id"])


def run(context: typer.Context, call: Call[Any], *, stdin: bool, raw: bool) -> int:
    """Run a session with standard input and output, and return its exit code.

    Parameters
    ----------
    raw
        Whether to hand every key to the session, and the size of the terminal.

    Raises
    ------
    SeawayError
        When the session cannot begin, or ends without an exit code.
    """
    server = target(context)

    async def talk() -> Outcome:
        from seaway.client.sessions import open_session

        async with open_session(server, call) as session:
            with raw_terminal() if raw else nullcontext():
                return await Terminal(session).run(stdin=stdin, sized=raw)

    outcome = asyncio.run(talk())
    if outcome.exit_code is None:
        raise UnavailableError(outcome.message)
    return outcome.exit_code


@contextmanager
def raw_terminal() -> Iterator[None]:
    """Switch the terminal to raw mode, so that Ctrl-C goes to the session too."""
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setraw(descriptor, termios.TCSADRAIN)  # keeps keys that were typed ahead
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


class Output:
    """Writer of standard output and errors in a thread, so that a slow reader delays no answers to pings.

    Attributes
    ----------
    broken
        True after the reader has left.
    """

    def __init__(self) -> None:
        self.broken = False
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._size = 0
        self._changed = Condition()
        self._ended = False
        self._thread = Thread(target=self._write, daemon=True)
        self._thread.start()

    def put(self, descriptor: int, data: bytes) -> bool:
        """Queue data, and report whether there is room for more."""
        with self._changed:
            self._waiting.append((descriptor, data))
            self._size += len(data)
            self._changed.notify_all()
            return self._size < MAX_UNWRITTEN_BYTES

    def wait(self, *, end: bool = False) -> None:
        """Wait for room, or until all is written."""
        with self._changed:
            self._ended = self._ended or end
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._waiting or (self._size < MAX_UNWRITTEN_BYTES and not end))

    def _write(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._ended)
                if not self._waiting:
                    return
                descriptor, data = self._waiting[0]
            try:
                while data:
                    data = data[os.write(descriptor, data) :]
            except OSError:
                self.broken = True
            with self._changed:
                self._size -= len(self._waiting.popleft()[1])
                self._changed.notify_all()


class Terminal:
    """Standard input and output of a session."""

    def __init__(self, session: Frames) -> None:
        self._session = session
        self._output = Output()

    async def run(self, *, stdin: bool, sized: bool) -> Outcome:
        """Exchange frames until the session ends, and return its outcome."""
        loop = asyncio.get_running_loop()
        sending = asyncio.create_task(self._send(stdin=stdin, sized=sized))
        try:
            return await self._receive()
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            await loop.run_in_executor(None, lambda: self._output.wait(end=True))

    async def _receive(self) -> Outcome:
        from seaway.client.sessions import Channel, Outcome

        loop, files = asyncio.get_running_loop(), {Channel.STDOUT: 1, Channel.STDERR: 2}
        while frame := await self._session.receive():
            channel, data = frame[0], frame[1:]
            if channel == Channel.STATUS:
                return Outcome.of(frame)
            if self._output.broken:
                return Outcome(BROKEN_PIPE)
            if channel in files and not self._output.put(files[Channel(channel)], data):
                await loop.run_in_executor(None, self._output.wait)
        return Outcome(None, "the connection broke before the command ended")

    async def _send(self, *, stdin: bool, sized: bool) -> None:
        loop = asyncio.get_running_loop()
        frames: asyncio.Queue[bytes] = asyncio.Queue(2)
        if sized:
            self._follow_size(frames)
        if stdin:
            Thread(target=_read, args=(loop, frames), daemon=True).start()
        while True:
            await self._session.send(await frames.get())

    def _follow_size(self, frames: asyncio.Queue[bytes]) -> None:
        """Send the size of the terminal, now and when it changes."""
        import signal

        loop = asyncio.get_running_loop()
        sizes: set[asyncio.Task[None]] = set()

        def send() -> None:
            task = loop.create_task(frames.put(_size()))
            sizes.add(task)
            task.add_done_callback(sizes.discard)

        send()
        loop.add_signal_handler(signal.SIGWINCH, send)


def _size() -> bytes:
    from seaway.client.sessions import Channel

    columns, rows = os.get_terminal_size(sys.stdout.fileno())
    return bytes([Channel.RESIZE]) + f'{{"Width": {columns}, "Height": {rows}}}'.encode()


def _read(loop: asyncio.AbstractEventLoop, frames: asyncio.Queue[bytes]) -> None:
    """Queue standard input, in a thread, because files have no other way to be read."""
    from seaway.client.sessions import Channel

    with suppress(RuntimeError, asyncio.CancelledError):  # the session is over
        while data := os.read(0, READ_BYTES):
            asyncio.run_coroutine_threadsafe(frames.put(bytes([Channel.STDIN]) + data), loop).result()
        asyncio.run_coroutine_threadsafe(frames.put(bytes([Channel.CLOSE, Channel.STDIN])), loop).result()
