"""Cordon, drain and uncordon of a cluster or node: current state, and buttons for operators."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from nicegui import ui

from seaway.client.calls import fleet, service
from seaway.domain.errors import SeawayError
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
        self._drains = False
        self._jobs = 0
        self._line = Fragment("closing", visit.words)
        on_act(self._line, lambda act, _: self._ask(act))

    def show(  # all parts of the line
        self, cluster: str, node: str, cordon: CordonOut | None, reason: str, jobs: int = 0, *, there: bool = True
    ) -> None:
        """Show the state of a cluster or of one of its nodes.

        Parameters
        ----------
        reason
            Reason other than a cordon why it accepts no new jobs; empty if it does.
        jobs
            Number of jobs that it runs, which a drain moves.
        there
            True to show the line.
        """
        self._of, self._jobs = (cluster, node), jobs
        self._line.element.set_visibility(there)
        if there:
            may = self._visit.may("operator")
            self._drains = cordon is not None and cordon.drain
            self._line.show(name=node or cluster, node=node, cordon=cordon, reason=reason, jobs=jobs, may=may)

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
            form = Form(words, title, [why], words("Drain"), drain, lambda: Impact(self._visit, cluster, node))
            if self._jobs:
                form.mark_dangerous()
        else:
            title = words("Uncordon {name}?", name=name)
            text = words("It can get new jobs immediately.")
            if self._drains:
                text = words("It can get new jobs immediately. Jobs that moved stay where they are.")
            confirm(words, title, text, words("Uncordon"), uncordon)


MAX_MOVES = 8
"""Maximum number of jobs in a dialog that drains."""


class Impact:
    """Consequences of a drain, by a what-if question: jobs that move or wait, with their expected starts."""

    def __init__(self, visit: Visit, cluster: str, node: str) -> None:
        self._visit, self._name, self._node = visit, f"{cluster}/{node}" if node else cluster, node
        self._shown = Fragment("impact", visit.words)
        self._shown.element.classes("impact").props("role=status")
        self._shown.show(answer=None, wrong="", moves=[], left=0, href="")
        ui.timer(0, self._ask, once=True)

    async def _ask(self) -> None:
        wrong, answer = "", None
        try:
            answer = await self._visit.ask(service.whatif({"drain": [self._name]}))
        except SeawayError as error:
            wrong = str(error)
        if self._shown.element.is_deleted:
            return
        moves = [*answer.stopped, *answer.moved] if answer else []
        href = f"/whatif?{urlencode({'nodes' if self._node else 'lose': self._name})}"
        left = max(0, len(moves) - MAX_MOVES)
        self._shown.show(answer=answer, wrong=wrong, moves=moves[:MAX_MOVES], left=left, href=href)
