"""Logs of pods: their last lines, and a stream of new lines.

References
----------
Kubernetes API, "Read log of the specified Pod": ``follow``, ``sinceTime``, ``tailLines``, ``limitBytes``,
``timestamps``. Kubernetes rounds ``sinceTime`` to whole seconds before it reaches a kubelet.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from seaway.adapters.kubernetes.collect.pods import PodSummary
from seaway.adapters.kubernetes.connection.api import Api
from seaway.adapters.kubernetes.connection.responses import ApiError
from seaway.application.ports.logs import Give, LogLine, NoContainerError
from seaway.domain.errors import RejectedError

MAX_LINES = 10_000
MAX_BYTES = 4 << 20
"""Maximum number of bytes from the end of a log that Seaway stores and shows."""

LARGEST_BYTES = 64 << 20
"""Maximum size of an answer in bytes, counted from the first requested line.

Kubelets store 10 MiB of a log by default, so this limit only stops endless responses.
"""

LONGEST_LINE = 256 << 10
"""Maximum number of bytes of a line. Longer lines are split."""

IDLE_TIMEOUT_S = 120.0
"""Time without new lines after which Seaway requests the log again, in seconds. The connection may be dead."""

NS_PER_S = 1_000_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Source:
    """Container of a pod. The name is empty for the only container."""

    pod: PodSummary
    container: str

    @classmethod
    def of(cls, pod: PodSummary, container: str) -> Source:
        """Return the named container, or the first if no name is given; raise `NoContainerError`."""
        names = [*(each.name for each in pod.containers), *pod.init_containers]
        if container and container not in names:
            raise NoContainerError(container, names)
        return cls(pod, container or (names[0] if names else ""))

    @property
    def path(self) -> str:
        """Path of the log."""
        return f"/api/v1/namespaces/{self.pod.namespace}/pods/{self.pod.name}/log"

    def params(self, tail: int) -> dict[str, str]:
        """Return the query parameters for the last lines."""
        params = {"tailLines": str(max(0, min(tail, MAX_LINES)))}
        return {**params, "container": self.container} if self.container else params


async def read_end(api: Api, source: Source, tail: int, since_ns: int = 0, *, times: bool = False) -> list[str]:
    """Return the last lines of a container from a second on; raise `RejectedError` if it has no log."""
    params = {**source.params(tail), "limitBytes": str(LARGEST_BYTES)}
    if times:
        params["timestamps"] = "true"
    if since_ns:
        params["sinceTime"] = _second(since_ns)
    try:
        said = await api.tail(source.path, params, MAX_BYTES)
    except ApiError as error:
        raise RejectedError(f"{api.name}: {error}") from None
    if len(said) == MAX_BYTES:
        said = said.partition(b"\n")[2] or said  # the first line is incomplete
    return said.decode("utf-8", "replace").splitlines()


async def follow(  # which log, and from where
    api: Api, source: Source, tail: int, after: str, give: Give, since_ns: int = 0
) -> None:
    """Stream the lines of a container until it ends; see `Following`."""
    sieve = LineFilter(source.pod.uid, after)
    params = {**source.params(tail), "follow": "true", "timestamps": "true"}
    if sieve.since:
        del params["tailLines"]
        params["sinceTime"] = sieve.since
    elif since_ns:
        params["sinceTime"] = _second(since_ns)
    try:
        async with api.pieces(source.path, params, IDLE_TIMEOUT_S) as pieces:
            async for lines in cut(pieces):
                if fresh := sieve.fresh(lines):
                    give(fresh)
    except ApiError as error:
        raise RejectedError(f"{api.name}: {error}") from None


class LineFilter:
    """Filter for lines that a server sends again after a reconnect.

    A position consists of the pod, the time of a line, and the number of lines with that time.

    Parameters
    ----------
    origin
        The pod whose log is read.
    after
        Position of the last known line; ignored if it belongs to another pod.
    """

    def __init__(self, origin: str, after: str = "") -> None:
        self._origin = origin
        self._at_ns, self._times = _read_position(origin, after)
        self._skipped = 0
        self._behind = self._times > 0

    @property
    def since(self) -> str:
        """Time from which to request lines; empty to request all."""
        if not self._times:
            return ""
        return _second(self._at_ns)

    def fresh(self, lines: Sequence[bytes]) -> list[LogLine]:
        """Return the new lines with their positions."""
        return [line for each in lines if (line := self._line(each))]

    def _line(self, written: bytes) -> LogLine | None:
        stamp, _, text = written.partition(b" ")
        at_ns = time_of(stamp)
        if at_ns is None:  # part of a split line
            at_ns, text = self._at_ns, written
        if self._behind:
            if at_ns < self._at_ns:
                return None
            if at_ns == self._at_ns and self._skipped < self._times:
                self._skipped += 1
                return None
            self._behind = False
        if at_ns > self._at_ns:
            self._at_ns, self._times = at_ns, 1
        elif at_ns == self._at_ns:
            self._times += 1
        return LogLine(text.decode("utf-8", "replace"), f"{self._origin}.{self._at_ns}.{self._times}")


def _second(at_ns: int) -> str:
    return f"{EPOCH + timedelta(seconds=at_ns // NS_PER_S):%Y-%m-%dT%H:%M:%SZ}"


def time_of(stamp: bytes) -> int | None:
    """Convert an RFC 3339 time with fraction to nanoseconds since 1970; return None if it is invalid."""
    try:
        text = stamp.decode("ascii")
        main, zone = (text[:-1], "+00:00") if text.endswith("Z") else (text[:-6], text[-6:])
        seconds, _, fraction = main.partition(".")
        whole = datetime.fromisoformat(seconds + zone)
        return int((whole - EPOCH) // timedelta(seconds=1)) * NS_PER_S + int(fraction[:9].ljust(9, "0") or 0)
    except (ValueError, TypeError):
        return None


def _read_position(origin: str, place: str) -> tuple[int, int]:
    """Return the time and the number of lines of a position; zeros if it is invalid or belongs to another pod."""
    whose, _, rest = place.partition(".")
    at, _, times = rest.partition(".")
    known = whose == origin and all(each.isascii() and each.isdecimal() and len(each) < 20 for each in (at, times))
    return (int(at), int(times)) if known else (0, 0)


async def cut(pieces: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    """Split an answer into lines, in batches as they arrive."""
    rest = b""
    async for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        if len(rest) > LONGEST_LINE:
            whole, rest = [*whole, rest], b""
        yield whole
    if rest:
        yield [rest]
