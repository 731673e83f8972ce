"""Buttons in text: what a template's buttons do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from seaway.web.fragment import Fragment

Act = Callable[[str, str], Awaitable[None] | None]
"""Takes what is to be done, and to what."""

PRESSED = """(event) => {
  const button = event.target.closest('[data-act]');
  if (button) { event.preventDefault(); emit({act: button.dataset.act, name: button.dataset.name || ''}); }
}"""


def on_act(fragment: Fragment, act: Act) -> None:
    """Have a fragment's buttons do something: `data-act` says what is to be done, `data-name` to what."""
    fragment.element.on("click", lambda event: act(str(event.args["act"]), str(event.args["name"])), js_handler=PRESSED)
