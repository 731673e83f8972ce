"""Jobs that fit and that their policy holds back for a better place: none of them for ever."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from seaway.application.control.waiting import Entry, Kind

AGAIN_NS = 5_000_000_000
"""How soon those are tried again, even if nothing changed: what held them back may be over."""

NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class _Held:
    since_ns: int
    why: str


class HeldBack:
    """Knows since when jobs are held back, by kind: when one is overdue, so are those that wait behind it.

    Parameters
    ----------
    now_ns
        Monotonic clock.
    longest_s
        How long a kind may be held back.
    """

    def __init__(self, now_ns: Callable[[], int], longest_s: float) -> None:
        self._now_ns = now_ns
        self._longest_ns = int(longest_s * NS_PER_S)
        self._held: dict[Kind, _Held] = {}
        self._again_ns: int | None = None

    def overdue(self, batch: Sequence[Entry]) -> frozenset[int]:
        """Return the numbers of the jobs of a batch that may not be held back any longer."""
        now_ns = self._now_ns()
        if not self._longest_ns:
            return frozenset(range(len(batch)))
        return frozenset(
            at
            for at, entry in enumerate(batch)
            if (held := self._held.get(entry.kind)) and now_ns - held.since_ns >= self._longest_ns
        )

    def note(self, batch: Sequence[Entry], held: Mapping[int, str], overdue: Collection[int]) -> None:
        """Note of a batch that was tried which of its jobs were held back, and why; `overdue` as it was then."""
        now_ns = self._now_ns()
        for at, entry in enumerate(batch):
            if at in held:
                known = self._held.get(entry.kind)
                self._held[entry.kind] = _Held(known.since_ns if known else now_ns, held[at])
            elif at not in overdue:
                self._held.pop(entry.kind, None)
        if held and self._again_ns is None:
            self._again_ns = now_ns + AGAIN_NS

    def why(self, kind: Kind) -> str:
        """Return why jobs of a kind are held back; empty when they are not."""
        held = self._held.get(kind)
        return held.why if held else ""

    def due(self, waiting: Iterable[Entry]) -> bool:
        """Tell whether it is time to try them again, given all that waits; those that do not are forgotten."""
        if self._again_ns is None or self._now_ns() < self._again_ns:
            return False
        kinds = {entry.kind for entry in waiting}
        self._held = {kind: held for kind, held in self._held.items() if kind in kinds}
        self._again_ns = self._now_ns() + AGAIN_NS if self._held else None
        return bool(self._held)
