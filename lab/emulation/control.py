"""Unix socket to query and change a running emulator: one line of JSON per request, several per response."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Answer = Iterator[dict[str, object]]
Handler = Callable[[dict[str, object]], Answer]

MOST = 1 << 20
"""Maximum size of a request, octets."""


class Asker:
    """Connection of a client. The emulator writes the response in pieces, so that packets do not wait."""

    def __init__(self, connection: socket.socket, handler: Handler) -> None:
        connection.setblocking(False)
        self._connection = connection
        self._handler = handler
        self._came = b""
        self._goes = b""
        self._answer: Answer = iter(())
        self.waits = False
        """True if there is more to write."""

    def fileno(self) -> int:
        """Return the file descriptor for `select`."""
        return self._connection.fileno()

    def read(self) -> bool:
        """Read from the connection; False if the client disconnected."""
        try:
            data = self._connection.recv(MOST)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._came += data
        line, found, rest = self._came.partition(b"\n")
        if found:
            self._came, self._answer, self.waits = rest, self._reply(line), True
        return bool(data) and len(self._came) <= MOST

    def write(self) -> bool:
        """Write a piece of the response; False if the client disconnected."""
        if not self._goes:
            following = next(self._answer, None)
            if following is None:
                self.waits = False
                return True
            self._goes = json.dumps(following).encode() + b"\n"
        try:
            self._goes = self._goes[self._connection.send(self._goes) :]
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True

    def _reply(self, line: bytes) -> Answer:
        try:
            yield from self._handler(json.loads(line))
        except Exception as error:  # noqa: BLE001  # no request may stop the packets
            yield {"error": str(error) or type(error).__name__}
        yield {"end": True}

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def listen(path: Path) -> socket.socket:
    """Listen on a unix socket."""
    path.unlink(missing_ok=True)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.bind(str(path))
    made.listen()
    made.setblocking(False)
    return made


def ask(path: Path, question: dict[str, object], timeout_s: float = 5.0) -> list[dict[str, Any]]:
    """Send a request to a running emulator, and return its response.

    Raises
    ------
    OSError
        If no emulator listens there, or it does not answer.
    ValueError
        If the request is invalid.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout_s)
        connection.connect(str(path))
        connection.sendall(json.dumps(question).encode() + b"\n")
        found: list[dict[str, Any]] = []
        with connection.makefile("rb") as lines:
            for line in lines:
                answer = json.loads(line)
                if "error" in answer:
                    raise ValueError(answer["error"])
                if "end" in answer:
                    return found
                found.append(answer)
    raise ConnectionError("the emulator hung up")
