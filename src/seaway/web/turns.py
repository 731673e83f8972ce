"""A page's address while it is looked at: what is narrowed down changes it, what is turned to can be gone back from."""

from __future__ import annotations

import json

_NOTE = "window.shownAddress = location.pathname + location.search;"

GOING_BACK = f"""{_NOTE}
addEventListener("popstate", () => {{
    if (location.pathname + location.search !== window.shownAddress) location.reload();
}});"""
"""Has a page be loaded anew where somebody goes back to, or on: its address says what was looked at."""


def turning(address: str, *, back: bool) -> str:
    """Return the script that shows an address.

    Parameters
    ----------
    back
        Whether one is to get back to what was there before.
    """
    verb = "pushState" if back else "replaceState"
    return f'history.{verb}({{}}, "", {json.dumps(address)}); {_NOTE}'
