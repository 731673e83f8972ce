"""Cordon, drain and uncordon of a cluster or node: current state, and buttons for operators."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from seaway.client.calls import fleet
from seaway.web.fragment import Fragment
from seaway.web.parts.form import Field, Form, confirm, notify
from seaway.web.visit import Visit

if TYPE_CHECKING:
    from seaway.wire.fleet import CordonOut


Act = Callable[[str, str], Awaitable[None] | None]
"""Function that receives an action and the name of its object."""

ACTION_SCRIPT = """(event) => {
  const button = event.target.closest('[data-act]');
  if (button) { event.preventDefault(); emit({act: button.dataset.act, name: button.dataset.name || ''}); }
}"""


def on_act(fragment: Fragment, act: Act) -> None:
    """Call a function when a user clicks a button of a fragment: `data-act` is the action, `data-name` the object."""
    fragment.element.on(
        "click", lambda event: act(str(event.args["act"]), str(event.args["name"])), js_handler=ACTION_SCRIPT
    )


class Closing:
    """Line that shows whether a cluster or node accepts new jobs, with buttons."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._of = ("", "")
        self._line = Fragment("closing", visit.words)
        on_act(self._line, lambda act, _: self._ask(act))

    def show(self, cluster: str, node: str, cordon: CordonOut | None, reason: str, *, there: bool = True) -> None:
        """Show the state of a cluster or of one of its nodes.

        Parameters
        ----------
        reason
            Reason other than a cordon why it accepts no new jobs; empty if it does.
        there
            True to show the line.
        """
        self._of = (cluster, node)
        self._line.element.set_visibility(there)
        if there:
            may = self._visit.may("operator")
            self._line.show(name=node or cluster, node=node, cordon=cordon, reason=reason, may=may)

    def _ask(self, act: str) -> None:
        """Open the dialog of an action, which requests a reason or a confirmation."""
        words, (cluster, node) = self._visit.words, self._of
        name = node or cluster
        why = Field("reason", words("Reason"), hint=words("All users see it with your name."))

        async def cordon(given: dict[str, Any]) -> None:
            await self._visit.ask(fleet.cordon(cluster, node, reason=given["reason"]))
            notify(words("{name} gets no new jobs.", name=name))

        async def drain(given: dict[str, Any]) -> None:
            await self._visit.ask(fleet.drain(cluster, node, reason=given["reason"]))
            notify(words("{name} gets no new jobs, and running jobs move elsewhere.", name=name))

        async def uncordon() -> None:
            await self._visit.ask(fleet.uncordon(cluster, node))
            notify(words("{name} accepts new jobs again.", name=name))

        if act == "cordon":
            Form(words, words("Cordon {name}: it gets no new jobs", name=name), [why], words("Cordon"), cordon)
        elif act == "drain":
            title = words("Drain {name}: it gets no new jobs, and running jobs restart elsewhere", name=name)
            Form(words, title, [why], words("Drain"), drain)
        else:
            title = words("Uncordon {name}?", name=name)
            confirm(words, title, words("It can get new jobs immediately."), words("Uncordon"), uncordon)
