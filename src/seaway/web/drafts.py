"""What somebody writes and has not sent yet: his browser's tab keeps it, for him alone, until he logs out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seaway.wire.tokens import WhoOut

_BEGIN = "seaway-draft"

FORGET = f"""() => Object.keys(sessionStorage).filter(each => each.startsWith("{_BEGIN}"))
    .forEach(each => sessionStorage.removeItem(each))"""
"""Forgets all that is kept, in JavaScript."""


def draft_of(who: WhoOut) -> str:
    """Return under which name somebody's draft is kept, as JavaScript has it."""
    return json.dumps(f"{_BEGIN} {who.tenant}/{who.name}")
