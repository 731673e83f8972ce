"""Unsent drafts, which a browser tab stores until its user logs out."""

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
"""Script of every page. On log-out, it deletes drafts and leaves the pages in all tabs of the browser."""

LEAVE = "() => window.leaveSeaway()"
"""JavaScript that calls this script."""


FOUND = "seaway-draft-found"
"""Name of the event with which the browser returns a stored draft."""


def store_script(who: CallerOut, text: str) -> str:
    """Return JavaScript that stores a user's draft."""
    return f"sessionStorage.setItem({draft_of(who)}, {json.dumps(text)})"


def load_script(who: CallerOut) -> str:
    """Return JavaScript that emits `FOUND` with a user's draft; the text is empty without a draft."""
    return f"""(() => {{
        let kept = null;
        try {{ kept = sessionStorage.getItem({draft_of(who)}); }} catch {{ /* it keeps nothing at all */ }}
        emitEvent("{FOUND}", kept || "");
    }})()"""


def draft_of(who: CallerOut) -> str:
    """Return the key of a user's draft in the session storage, as JavaScript."""
    return json.dumps(f"{_BEGIN} {who.tenant}/{who.name}")
