"""The menu: what it needs to know of a page, and how it is turned on and off."""

from __future__ import annotations

from typing import Protocol

TURNING = """(() => {
    const narrow = matchMedia("(max-width: 900px)"), button = () => document.querySelector(".menu-button");
    const other = () => document.body.classList.contains("menu-other");
    const turn = on => {
        document.body.classList.toggle("menu-other", on);
        button().ariaExpanded = String(on === narrow.matches);
    };
    window.turnMenu = () => {
        turn(!other());
        if (narrow.matches && other()) document.querySelector(".menu-line").focus();
    };
    addEventListener("load", () => turn(other()));
    narrow.addEventListener("change", () => turn(false));
    addEventListener("keydown", event => {
        if (event.key === "Escape" && narrow.matches && other()) { turn(false); button().focus(); }
    });
})();"""
"""In every page: on narrow screens, as the style sheet has them, the menu is off at first, and Escape turns it off."""

TURN = "() => turnMenu()"
"""Has the menu be seen where it is not, and the other way round."""


class Entry(Protocol):
    """A line of the menu."""

    @property
    def path(self) -> str:
        """Where it leads."""
        ...

    @property
    def title(self) -> str:
        """What it is called, in English."""
        ...

    @property
    def icon(self) -> str:
        """Its sign."""
        ...
