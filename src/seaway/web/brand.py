"""Seaway's sign, on pages and as their icon."""

from __future__ import annotations

_WAVES = (
    '<path d="M5 12q5.5-5 11 0t11 0M5 18q5.5-5 11 0t11 0M5 24q5.5-5 11 0t11 0" fill="none" stroke="#fff" '
    'stroke-width="2.4" stroke-linecap="round"/>'
)


def _sign(attributes: str, colour: str) -> str:
    return f'<svg viewBox="0 0 32 32" {attributes}><rect width="32" height="32" rx="7" fill="{colour}"/>{_WAVES}</svg>'


BRAND = _sign('width="26" height="26" aria-hidden="true" focusable="false"', "var(--brand)")
"""In a page, in the colours of its theme."""

ICON = _sign('xmlns="http://www.w3.org/2000/svg"', "#0b6e8a")
"""In the browser's tab, a picture of its own."""
