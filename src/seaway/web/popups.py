"""What the library shows over a page by itself, where its server is silent or a message is too long: in our words."""

from __future__ import annotations

import json

from seaway.web.words import Words


def speaking(words: Words) -> str:
    """Return what has its pop-ups speak the page's language, in JavaScript: they are at the end of every page."""
    said = {
        "popup": [words("The connection to the server is lost."), words("It is being tried again…")],
        "too_long_message_popup": [words("This is too long to be sent."), words("Make it shorter, and try again.")],
    }
    return f"""addEventListener("DOMContentLoaded", () => {{
    for (const [popup, lines] of Object.entries({json.dumps(said)}))
        document.querySelectorAll(`#${{popup}} > span`).forEach((line, at) => {{ line.textContent = lines[at]; }});
}});"""
