"""Which kind of answer is liked best.

References
----------
RFC 9110, section 12.5.1.
"""

from __future__ import annotations

from fastapi import Request

from seaway.api.errors import BadRequestError


def chosen(request: Request, *kinds: str) -> str:
    """Return which of `kinds` is liked best; among equals the first.

    Raises
    ------
    BadRequestError
        When none will do.
    """
    header = request.headers.get("accept", "*/*")
    likes = dict(_like(part) for part in header.split(",")[:32] if part.strip())
    best = max(kinds, key=lambda kind: _liked(kind, likes))
    if _liked(best, likes) <= 0:
        raise BadRequestError(406, f"there is {' or '.join(kinds)}")
    return best


def _like(part: str) -> tuple[str, float]:
    kind, *parameters = (each.strip().lower() for each in part.split(";"))
    weight = next((each[2:] for each in parameters if each.startswith("q=")), "1")
    try:
        return kind, float(weight)
    except ValueError:
        return kind, 0.0


def _liked(kind: str, likes: dict[str, float]) -> float:
    return next((likes[each] for each in (kind, f"{kind.partition('/')[0]}/*", "*/*") if each in likes), 0.0)
