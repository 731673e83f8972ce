"""Logs of pods: the end of one, and lines as they are written.

References
----------
Kubernetes API, "Read log of the specified Pod": ``follow``, ``sinceTime``, ``tailLines``, ``limitBytes``,
``timestamps``. ``sinceTime`` counts whole seconds on its way to a kubelet, whatever is asked for.
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
"""Of a log, from its end, are kept and shown."""

LARGEST_BYTES = 64 << 20
"""Of the lines that are asked for, from their start, a server is to send. Kubelets keep 10 MiB of a log, if not told
otherwise, so this ends what would never."""

LONGEST_LINE = 256 << 10
"""A longer one is cut in pieces."""

IDLE_TIMEOUT_S = 120.0
"""How long a log may be silent before it is requested again, as a dead connection looks the same."""

NS_PER_S = 1_000_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Source:
    """What is read: a container of a pod, by name; empty for the only one there is."""

    pod: PodSummary
    container: str

    @classmethod
    def of(cls, pod: PodSummary, container: str) -> Source:
        """Find a container, or the first where none is named; raises `NoContainerError`."""
        names = [*(each.name for each in pod.containers), *pod.init_containers]
        if container and container not in names:
            raise NoContainerError(container, names)
        return cls(pod, container or (names[0] if names else ""))

    @property
    def path(self) -> str:
        """Where it is read."""
        return f"/api/v1/namespaces/{self.pod.namespace}/pods/{self.pod.name}/log"

    def params(self, tail: int) -> dict[str, str]:
        """Return what asks for it, from its last lines on."""
        params = {"tailLines": str(max(0, min(tail, MAX_LINES)))}
        return {**params, "container": self.container} if self.container else params


async def read_end(api: Api, source: Source, tail: int) -> list[str]:
    """Return the last lines of a container; raises `RejectedError` where there are none."""
    params = {**source.params(tail), "limitBytes": str(LARGEST_BYTES)}
    try:
        said = await api.tail(source.path, params, MAX_BYTES)
    except ApiError as error:
        raise RejectedError(f"{api.name}: {error}") from None
    if len(said) == MAX_BYTES:
        said = said.partition(b"\n")[2] or said  # the first line has lost its start
    return said.decode("utf-8", "replace").splitlines()


async def follow(api: Api, source: Source, tail: int, after: str, give: Give) -> None:
    """Give the lines of a container as they are written, until it ends; see `Following`."""
    sieve = LineFilter(source.pod.uid, after)
    params = {**source.params(tail), "follow": "true", "timestamps": "true"}
    if sieve.since:
        del params["tailLines"]
        params["sinceTime"] = sieve.since
    try:
        async with api.pieces(source.path, params, IDLE_TIMEOUT_S) as pieces:
            async for lines in cut(pieces):
                if fresh := sieve.fresh(lines):
                    give(fresh)
    except ApiError as error:
        raise RejectedError(f"{api.name}: {error}") from None


class LineFilter:
    """Knows which lines come again after a connection broke: those up to a place.

    A place is the pod, the time of a line, and how many lines had that time.

    Parameters
    ----------
    origin
        Which pod is read.
    after
        The place of the last line that is known; of another pod, it is none.
    """

    def __init__(self, origin: str, after: str = "") -> None:
        self._origin = origin
        self._at_ns, self._times = _read_position(origin, after)
        self._skipped = 0
        self._behind = self._times > 0

    @property
    def since(self) -> str:
        """From when on lines are to be asked for; empty for from the start."""
        if not self._times:
            return ""
        return f"{EPOCH + timedelta(seconds=self._at_ns // NS_PER_S):%Y-%m-%dT%H:%M:%SZ}"

    def fresh(self, lines: Sequence[bytes]) -> list[LogLine]:
        """Return those of some lines that are not known, with their places."""
        return [line for each in lines if (line := self._line(each))]

    def _line(self, written: bytes) -> LogLine | None:
        stamp, _, text = written.partition(b" ")
        at_ns = time_of(stamp)
        if at_ns is None:  # a piece of a line that was cut
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


def time_of(stamp: bytes) -> int | None:
    """Read a time with its fraction, RFC 3339, as nanoseconds since 1970; None for what is none."""
    try:
        text = stamp.decode("ascii")
        main, zone = (text[:-1], "+00:00") if text.endswith("Z") else (text[:-6], text[-6:])
        seconds, _, fraction = main.partition(".")
        whole = datetime.fromisoformat(seconds + zone)
        return int((whole - EPOCH) // timedelta(seconds=1)) * NS_PER_S + int(fraction[:9].ljust(9, "0") or 0)
    except (ValueError, TypeError):
        return None


def _read_position(origin: str, place: str) -> tuple[int, int]:
    """Return a place's time, and how many lines had it; zeros for what is none of this pod's."""
    whose, _, rest = place.partition(".")
    at, _, times = rest.partition(".")
    known = whose == origin and all(each.isascii() and each.isdecimal() and len(each) < 20 for each in (at, times))
    return (int(at), int(times)) if known else (0, 0)


async def cut(pieces: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    """Cut an answer into lines, as many at a time as came together."""
    rest = b""
    async for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        if len(rest) > LONGEST_LINE:
            whole, rest = [*whole, rest], b""
        yield whole
    if rest:
        yield [rest]
