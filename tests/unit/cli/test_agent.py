"""Anything that `seaway agent` shows, and what it refuses."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from unittest.mock import Mock

import pytest
from rich.console import Console

from seaway.application.agent.delivery import Delivered, Delivery
from seaway.application.ports.agent import Reported
from seaway.cli.admin.agent import _print_lines, results_table, status_line
from seaway.cli.main import main

RESULTS = (
    Reported("gw-2", "", 7, 5, 4, 12_340_000, 120_000, 0),
    Reported("gw-3", "via-2", 7, 10, 0, None, 0, 0),
    Reported("gw-4", "", 7, 0, 0, None, 0, 10),
)


def printed(results: Sequence[Reported], width: int = 120) -> list[list[str]]:
    """Print a table; return its cells, a list for each line."""
    out = io.StringIO()
    Console(file=out, width=width, highlight=False).print(results_table(results))
    return [
        line.replace(" ms", "ms").replace(" %", "%").replace("no answer", "none").split()
        for line in out.getvalue().splitlines()
    ]


def delivery(trouble: str = "", **delivered: int) -> Delivery:
    """Have a delivery with some figures."""
    made = Mock(spec=Delivery, trouble=trouble, waiting=1234)
    made.delivered = Delivered(**delivered)
    return made


def test_table_has_a_line_for_each_way() -> None:
    """Figures stand with their units, who did not answer has no latency, and where nothing counts there is no loss."""
    head, *lines = printed(RESULTS)
    assert head == ["TARGET", "PATH", "LATENCY", "JITTER", "LOSS", "ANSWERS", "DISCARDED"]
    assert lines == [
        ["gw-2", "–", "12.34ms", "0.12ms", "20%", "4/5", "–"],
        ["gw-3", "via-2", "none", "–", "100%", "0/10", "–"],
        ["gw-4", "–", "none", "–", "–", "0/0", "10"],
    ]


def test_narrow_table_keeps_what_matters() -> None:
    """On a narrow terminal latency, jitter and loss stay."""
    assert printed(RESULTS[:1], width=36)[0] == ["TARGET", "LATENCY", "JITTER", "LOSS"]


def test_status_says_how_reporting_goes() -> None:
    """Below the table stands how old it is, what was reported, what waits, and what is in the way."""
    assert status_line(None, None).plain == "no round yet; no server"
    fine = status_line(delivery(rounds=56_789), 3.2).plain
    assert fine == "round of 3 s ago; 56,789 results reported, 1,234 wait"
    bad = status_line(delivery("no one answers", dropped=7, refused=1), 3.2).plain
    assert bad == "round of 3 s ago; 0 results reported, 1,234 wait, 8 lost: no one answers"


def test_lines_are_json(capsys: pytest.CaptureFixture[str]) -> None:
    """Each result is an object of its own line, with the names that reports have."""
    _print_lines(RESULTS)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["jitter_ns"] is None for line in lines] == [not each.received for each in RESULTS]  # a dead link
    assert [Reported(**line | {"jitter_ns": line["jitter_ns"] or 0}) for line in lines] == [*RESULTS]


def test_token_is_not_taken_from_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    """There is no option for the token itself, which everybody on the machine could read there."""
    with pytest.raises(SystemExit) as ended:
        main(["agent", "--gateway", "gw-1", "--server", "http://127.0.0.1:1", "--token", "sw_1_secret"])
    assert ended.value.code == 2
    assert "--token" in capsys.readouterr().err


def test_agent_without_a_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Anything that is missing is reported in a line, and nothing starts."""
    with pytest.raises(SystemExit) as ended:
        main(["agent", "--server", "http://127.0.0.1:1"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == "error: [agent] gateway: say which gateway this is: --gateway NAME\n"
