"""What a user writes and has not sent yet: his browser's tab keeps it, for him alone, until he logs out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from seaway.web import addresses

if TYPE_CHECKING:
    from seaway.wire.tokens import CallerOut

_BEGIN = "seaway-draft"

LEAVING = f"""(() => {{
    const tabs = new BroadcastChannel("seaway");
    const forget = () => Object.keys(sessionStorage).filter(each => each.startsWith("{_BEGIN}"))
        .forEach(each => sessionStorage.removeItem(each));
    tabs.onmessage = () => {{ forget(); location.assign("{addresses.LOGIN}?state={addresses.LEFT}"); }};
    window.leaveSeaway = () => {{ forget(); tabs.postMessage("left"); }};
}})();"""
"""In every page: forgets what is kept when a user logs out, here or in another tab, which is left then, too."""

LEAVE = "() => window.leaveSeaway()"
"""Does so, in JavaScript."""


FOUND = "seaway-draft-found"
"""The event by which a browser tells of a draft that it keeps."""


def keeping(who: CallerOut, text: str) -> str:
    """Return what keeps a user's draft, in JavaScript."""
    return f"sessionStorage.setItem({draft_of(who)}, {json.dumps(text)})"


def telling(who: CallerOut) -> str:
    """Return what tells of a user's draft, in JavaScript: by `FOUND`, with nothing where none is kept."""
    return f"""(() => {{
        let kept = null;
        try {{ kept = sessionStorage.getItem({draft_of(who)}); }} catch {{ /* it keeps nothing at all */ }}
        emitEvent("{FOUND}", kept || "");
    }})()"""


def draft_of(who: CallerOut) -> str:
    """Return under which name a user's draft is kept, as JavaScript has it."""
    return json.dumps(f"{_BEGIN} {who.tenant}/{who.name}")
