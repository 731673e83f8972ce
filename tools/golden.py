"""Write the recordings below `tests/golden` again.

Do so after a change of decisions that `changes.md` there explains::

    python -m tools.golden

Each history has a line with a digest in `digests.txt`. Some have their decisions and answers as text, without reasons.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from rich.progress import track

from tools.draw_histories import history
from tools.record_cycle import Json, Recorder

FOLDER = Path(__file__).resolve().parents[1] / "tests" / "golden"

HISTORIES = range(49)
"""Seeds of all recorded histories."""

WHOLE = (4, 8, 12, 15, 19, 22, 28, 30, 32, 34, 38, 46)
"""Seeds of those that are stored as text."""


def recorded(seed: int) -> str:
    """Return what the present code does in a history, and what it predicts there."""
    return as_text(Recorder(history(seed)).run())


def as_text(recording: Json) -> str:
    """Return a recording as lines. Texts for people do not count."""
    return "".join(f"{line}\n" for line in _lines(recording))


def _lines(recording: Json) -> Iterator[str]:
    for at_s, what, *rest in recording["decisions"]:
        if what == "refused":
            yield f"{at_s:g} event {rest[0]} is refused"
        else:
            number, attempt, found = rest
            yield f"{at_s:g} {number}.{attempt} {what} {'' if what == 'ends' else _places(found)}".rstrip()
    for answer in recording["answers"]:
        at_s, plan = answer["at_s"], answer["plan"]
        yield f"{at_s:g} expected {_error(plan) or ' '.join(_at(*each) for each in plan)}"
        for found in answer["dry_runs"]:
            yield f"{at_s:g} dry run {_error(found) or _places(found['places']) or 'waits'}"
        for found in answer["what_if"]:
            yield f"{at_s:g} what if {_error(found) or _moves(found)}"
    yield "ends with " + " ".join(recording["states"])


def _error(answer: Any) -> str:  # noqa: ANN401  # JSON
    return str(answer["error"]).partition(":")[0] if isinstance(answer, dict) and "error" in answer else ""


def _places(places: Sequence[Any]) -> str:
    """Return the replicas with their nodes, and the last parts of the names of their devices."""
    texts = []
    for replica, cluster, node, devices in places:
        of = [str(each).removeprefix(f"GPU-{cluster}-{node}-") for each in devices]
        texts.append(f"{replica}:{cluster}/{node}" + (f"[{','.join(of)}]" if of else ""))
    return " ".join(texts)


def _at(job: str, starts_s: float | None) -> str:
    return f"{job}@{'unknown' if starts_s is None else f'{starts_s:g}'}"


def _moves(found: Json) -> str:
    kinds = {name: [each[0] for each in found[name]] for name in ("started", "moved", "stopped", "shrunk")}
    texts = [f"{name} {' '.join(jobs)}" for name, jobs in kinds.items() if jobs]
    starts = [_at(*each) for each in found["starts"]]
    return "; ".join([*texts, *([f"waits {' '.join(starts)}"] if starts else [])]) or "nothing"


def digest(text: str) -> str:
    """Return the beginning of the SHA-256 digest of a recording."""
    return sha256(text.encode()).hexdigest()[:16]


def main() -> int:
    """Write all recordings."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    logging.disable()  # clusters that are cut
    lines = []
    for seed in track(HISTORIES, "Recording"):
        text = recorded(seed)
        lines.append(f"{seed:03} {digest(text)}\n")
        if seed in WHOLE:
            (FOLDER / f"{seed:03}.txt").write_text(text, encoding="utf-8")
    (FOLDER / "digests.txt").write_text("".join(lines), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
