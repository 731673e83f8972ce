"""One event, one line: when, what, why, who."""

from __future__ import annotations

from rich.text import Text

from seaway.terminal.words import STYLES, Body, clock, day

KIND_WIDTH = 10


def line(event: Body, *, dated: bool = False, named: bool = False) -> Text:
    """Write an event.

    Parameters
    ----------
    dated
        Whether the day stands before the time.
    named
        Whether the job's id is said, where several are shown.
    """
    what = event["state"] or event["kind"]
    text = Text.assemble((f"{day(event['at']) if dated else clock(event['at'])}  ", "dim"))
    text.append(f"{what:<{KIND_WIDTH}} ", STYLES.get(what, "bold"))
    if named:
        text.append(f"{event['job_id'] or 'fleet'}  ", "dim")
    text.append(event["reason"])
    text.append(f"  · {event['actor']}", "dim")
    return text
