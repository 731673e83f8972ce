"""What somebody writes and has not sent yet: his browser's tab keeps it, for him alone, until he logs out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from seaway.web import addresses

if TYPE_CHECKING:
    from seaway.wire.tokens import WhoOut

_BEGIN = "seaway-draft"

LEAVING = f"""(() => {{
    const tabs = new BroadcastChannel("seaway");
    const forget = () => Object.keys(sessionStorage).filter(each => each.startsWith("{_BEGIN}"))
        .forEach(each => sessionStorage.removeItem(each));
    tabs.onmessage = () => {{ forget(); location.assign("{addresses.LOGIN}?state={addresses.LEFT}"); }};
    window.leaveSeaway = () => {{ forget(); tabs.postMessage("left"); }};
}})();"""
"""In every page: forgets what is kept when somebody logs out, here or in another tab, which is left then, too."""

LEAVE = "() => window.leaveSeaway()"
"""Does so, in JavaScript."""


def draft_of(who: WhoOut) -> str:
    """Return under which name somebody's draft is kept, as JavaScript has it."""
    return json.dumps(f"{_BEGIN} {who.tenant}/{who.name}")
