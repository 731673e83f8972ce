"""Sessions with containers: commands, attached processes, and connections to ports, for backends that support them.

A session exchanges frames. The first byte of a frame is its channel, and the rest is data. This is the protocol of
Kubernetes, so frames pass through Seaway unchanged.

References
----------
KEP-4006, Transition from SPDY to WebSockets: the subprotocol ``v5.channel.k8s.io``.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Protocol, runtime_checkable

import orjson

SUBPROTOCOL = "v5.channel.k8s.io"
"""Name of the protocol in the handshake of a web socket."""

MAX_FRAME_BYTES = 1 << 20
"""Maximum size of a frame."""


class Channel(IntEnum):
    """Channel of a frame. A connection to a port uses `STDIN` and `STDOUT` for its two directions."""

    STDIN = 0
    STDOUT = 1
    STDERR = 2
    STATUS = 3
    """The outcome, as a ``Status`` of Kubernetes; the last frame."""
    RESIZE = 4
    """Size of the terminal, such as ``{"Width": 80, "Height": 24}``."""
    CLOSE = 255
    """End of a channel. The data is the number of the channel."""


class SessionKind(StrEnum):
    """Kind of session; the value is the name of the subresource of a pod."""

    EXEC = "exec"
    ATTACH = "attach"
    PORT_FORWARD = "portforward"


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """Requested session with a container.

    Attributes
    ----------
    container
        Name of the container; empty for the first.
    command
        Command to run with its arguments; only for `SessionKind.EXEC`.
    stdin
        Whether the client sends input.
    tty
        Whether the command runs in a terminal. Its output is then one stream.
    port
        Port to connect to; only for `SessionKind.PORT_FORWARD`.
    """

    kind: SessionKind
    container: str = ""
    command: tuple[str, ...] = ()
    stdin: bool = False
    tty: bool = False
    port: int = 0


class Session(Protocol):
    """Open session. Thread-safe, with one sender and one receiver."""

    def send(self, frame: bytes) -> Future[None]:
        """Send a frame. The future completes when the session accepts the next one.

        It fails with `UnavailableError` if the connection is lost, and with `RejectedError` if the cluster does not
        support the channel.
        """

    def receive(self) -> Future[bytes]:
        """Return the next frame, or no bytes at the end. The future fails with `UnavailableError` as in `send`."""

    def close(self) -> None:
        """End the session without waiting; a second call has no effect."""


@runtime_checkable
class Accessible(Protocol):
    """Backend with containers that users can reach; optional."""

    def open_session(self, copy: str, replica: int, wanted: SessionRequest) -> Future[Session]:
        """Open a session with a container of a replica.

        Returns
        -------
        future
            Fails with `RejectedError` if the cluster refuses the session, `NoContainerError` if there is no such
            container, and `UnavailableError` if the cluster does not respond.

        Raises
        ------
        RejectedError, UnavailableError
            As the future, for errors that are known immediately.
        """


def status_frame(message: str = "") -> bytes:
    """Return the frame of an outcome: of a failure with a message, or of a success."""
    status = {"status": "Failure", "message": message} if message else {"status": "Success"}
    return bytes([Channel.STATUS]) + orjson.dumps(status)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a session.

    Attributes
    ----------
    exit_code
        Exit code of the command; None if the session ended in another way.
    message
        Reason of a failure without an exit code; empty for none.
    """

    exit_code: int | None
    message: str = ""

    @classmethod
    def of(cls, frame: bytes) -> Outcome:
        """Read the outcome in a frame of the channel `STATUS`."""
        try:
            status = orjson.loads(frame[1:])
            if status.get("status") == "Success":
                return cls(0)
            causes = (status.get("details") or {}).get("causes") or ()
            codes = [each["message"] for each in causes if each.get("reason") == "ExitCode"]
            if status.get("reason") == "NonZeroExitCode" and codes:
                return cls(int(codes[0]))
            return cls(None, str(status.get("message") or "the session failed"))
        except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError, ValueError):
            return cls(None, "the cluster sent an invalid status")
