"""Sessions with containers over web sockets: ``/exec``, ``/attach`` and ``/portforward`` of a pod.

Commands are processes of this machine; ports are those of this machine.

References
----------
Kubernetes, ``k8s.io/kubelet/pkg/cri/streaming``: ``remotecommand/websocket.go`` and ``portforward/websocket.go``.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import signal
import struct
import termios
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import orjson

from tests.fakes.kubernetes.failures import bad_request, no_such_path
from tests.fakes.kubernetes.kinds import Json

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
STDIN, STDOUT, STDERR, STATUS, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
PIECE = 32_768
HOME = "/nonexistent"
"""Home folder of commands, so that shells do not run the start-up files of this machine's user."""


@dataclass(slots=True)
class _Socket:
    """An accepted web socket."""

    receive: Receive
    send: Send

    async def give(self, channel: int, data: bytes) -> None:
        await self.send({"type": "websocket.send", "bytes": bytes([channel]) + data})

    async def end(self, code: int) -> None:
        """Send the outcome of a command and close."""
        status: Json = {"metadata": {}, "status": "Success"}
        if code:
            cause = {"reason": "ExitCode", "message": str(code)}
            status |= {
                "status": "Failure",
                "message": f"command terminated with non-zero exit code: exit status {code}",
                "reason": "NonZeroExitCode",
                "details": {"causes": [cause]},
            }
        with suppress(OSError):
            await self.give(STATUS, orjson.dumps(status))
            await self.send({"type": "websocket.close", "code": 1000})


class Containers:
    """Processes in containers.

    Attributes
    ----------
    protocols
        Supported subprotocols of commands; servers before Kubernetes 1.30 lack the first.
    main
        Main process of every container, which a session attaches to; it begins with the session.
    folder
        Folder in which commands run; None for the current one.
    opened
        Query of each session, in order.
    """

    def __init__(self) -> None:
        self.protocols = [V5, V4]
        self.main = ["cat"]
        self.opened: list[list[tuple[str, str]]] = []
        self.folder: Path | None = None
        self._running: dict[str, set[Process]] = {}

    def end(self, uid: str) -> None:
        """Kill the processes of a pod."""
        for process in self._running.pop(uid, ()):
            _kill(process)

    async def run(self, pod: Json, part: str, scope: Message, receive: Receive, send: Send) -> None:
        """Serve a session.

        Raises
        ------
        FailureError
            400 or 404 before the handshake if the server refuses it.
        """
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        asked = dict(query)
        protocols = [V4] if part == "portforward" else self.protocols
        chosen = next((each for each in protocols if each in scope["subprotocols"]), None)
        if part not in ("exec", "attach", "portforward"):
            raise no_such_path()
        if chosen is None:
            raise bad_request("unable to upgrade connection: no common protocol")
        names = [each["name"] for each in pod["spec"]["containers"]]
        if asked.get("container", names[0]) not in names:
            raise bad_request(f"container {asked['container']} is not valid for pod {pod['metadata']['name']}")
        if pod["status"].get("phase") in ("Succeeded", "Failed"):
            raise bad_request("cannot exec into a container in a completed pod; current phase is Succeeded")
        if part == "exec" and "command" not in asked:
            raise bad_request("you must specify at least 1 command for the container")
        if asked.get("tty") == "true" and asked.get("stderr") == "true":
            raise bad_request("tty and stderr cannot both be true")
        self.opened.append(query)
        await receive()
        await send({"type": "websocket.accept", "subprotocol": chosen, "headers": []})
        socket = _Socket(receive, send)
        if part == "portforward":
            await _forward(socket, int(asked["ports"]))
            return
        command = self.main if part == "attach" else [value for name, value in query if name == "command"]
        run = self._run_in_terminal if asked.get("tty") == "true" else self._run
        await run(pod["metadata"]["uid"], socket, command, stdin=asked.get("stdin") == "true")

    async def _run(self, uid: str, socket: _Socket, command: list[str], *, stdin: bool) -> None:
        try:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=PIPE if stdin else DEVNULL, stdout=PIPE, stderr=PIPE, cwd=self.folder,
                env={**os.environ, "HOME": HOME}, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            await socket.give(STDERR, f"exec failed: {error.strerror}\n".encode())
            await socket.end(127)
            return
        self._running.setdefault(uid, set()).add(process)

        async def write(data: bytes) -> None:
            with suppress(OSError):
                if process.stdin:
                    process.stdin.write(data)
                    await process.stdin.drain()

        def close() -> None:
            if process.stdin:
                process.stdin.close()

        async def pump(reader: asyncio.StreamReader | None, channel: int) -> None:
            assert reader is not None
            while data := await reader.read(PIECE):
                await socket.give(channel, data)

        taking = asyncio.ensure_future(_take(socket, write, close, lambda _: None, process))
        with suppress(OSError):  # the client has left
            await asyncio.gather(pump(process.stdout, STDOUT), pump(process.stderr, STDERR))
        await self._end(uid, socket, process, taking)

    async def _run_in_terminal(self, uid: str, socket: _Socket, command: list[str], *, stdin: bool) -> None:
        del stdin
        loop = asyncio.get_running_loop()
        leader, follower = pty.openpty()
        process = await asyncio.create_subprocess_exec(  # in a session of its own, so that keys send signals
            "setsid", "--ctty", *command, stdin=follower, stdout=follower, stderr=follower, cwd=self.folder,
            env={**os.environ, "HOME": HOME},
        )  # fmt: skip
        os.close(follower)
        self._running.setdefault(uid, set()).add(process)

        async def write(data: bytes) -> None:
            with suppress(OSError):
                await loop.run_in_executor(None, os.write, leader, data)

        def resize(data: bytes) -> None:
            size = orjson.loads(data)
            fcntl.ioctl(leader, termios.TIOCSWINSZ, struct.pack("HHHH", size["Height"], size["Width"], 0, 0))

        taking = asyncio.ensure_future(_take(socket, write, lambda: None, resize, process))
        with suppress(OSError):  # the terminal is closed, or the client has left
            while data := await loop.run_in_executor(None, os.read, leader, PIECE):
                await socket.give(STDOUT, data)
        await self._end(uid, socket, process, taking)
        os.close(leader)

    async def _end(self, uid: str, socket: _Socket, process: Process, taking: asyncio.Future[None]) -> None:
        code = await process.wait()
        self._running.get(uid, set()).discard(process)
        await socket.end(code if code >= 0 else 128 - code)
        taking.cancel()


async def _take(
    socket: _Socket,
    write: Callable[[bytes], Awaitable[None]],
    close: Callable[[], None],
    resize: Callable[[bytes], None],
    process: Process,
) -> None:
    """Take frames of the client, and kill the process when it leaves."""
    while (message := await socket.receive())["type"] == "websocket.receive":
        frame = message["bytes"]
        if frame[0] == STDIN:
            await write(frame[1:])
        elif frame[0] == RESIZE:
            resize(frame[1:])
        elif frame[0] == CLOSE:
            close()
    _kill(process)


def _kill(process: Process) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


async def _forward(socket: _Socket, port: int) -> None:
    """Connect a web socket to a port of this machine."""
    for channel in (0, 1):
        await socket.give(channel, struct.pack("<H", port))
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError as error:
        await socket.give(1, f"error forwarding port {port} to pod: {error.strerror}".encode())
        await socket.send({"type": "websocket.close", "code": 1000})
        return

    async def take() -> None:
        while (message := await socket.receive())["type"] == "websocket.receive":
            writer.write(message["bytes"][1:])
            await writer.drain()
        writer.close()

    taking = asyncio.ensure_future(take())
    with suppress(OSError):
        while data := await reader.read(PIECE):
            await socket.give(0, data)
        await socket.send({"type": "websocket.close", "code": 1000})
    taking.cancel()
    writer.close()
