"""Click handlers for buttons in templates."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from seaway.web.fragment import Fragment

Act = Callable[[str, str], Awaitable[None] | None]
"""Function that receives an action and the name of its object."""

PRESSED = """(event) => {
  const button = event.target.closest('[data-act]');
  if (button) { event.preventDefault(); emit({act: button.dataset.act, name: button.dataset.name || ''}); }
}"""


def on_act(fragment: Fragment, act: Act) -> None:
    """Call a function for clicks on a fragment's buttons: `data-act` is the action, `data-name` the object."""
    fragment.element.on("click", lambda event: act(str(event.args["act"]), str(event.args["name"])), js_handler=PRESSED)
