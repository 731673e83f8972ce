"""Tables of links."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console, RenderableType

from seaway.terminal.tables import Figure, history, matrix, sparkline, table

RAW = {"latency_ns": 14_000_000, "jitter_ns": 2_000_000, "loss_ppm": 200_000, "sent": 5, "received": 4}


def link(target: str, **fields: Any) -> dict[str, Any]:  # noqa: ANN401  # any JSON
    """Return a link from gw-4 as the API shows it."""
    figures = {"latency_ns": 10_000_000, "jitter_ns": 1_000_000, "loss_ppm": 0, "bandwidth_mbps": 10_000}
    room = {"traffic_mbps": 3_000, "reserved_mbps": 2_000, "free_mbps": 7_500}
    known = {
        "used_mbps": 2_500,
        **room,
        "path": "direct",
        "state": "measured",
        "age_s": 4.2,
        "raw": RAW,
        "smoothed": None,
    }
    return {"source": "gw-4", "target": target, **figures, **known, **fields}


DEAD = link("gw-2", latency_ns=None, jitter_ns=0, loss_ppm=1_000_000, raw=None, bandwidth_mbps=0)
UNKNOWN = link(
    "gw-3",
    **dict.fromkeys(
        (
            "latency_ns",
            "jitter_ns",
            "loss_ppm",
            "bandwidth_mbps",
            "used_mbps",
            "traffic_mbps",
            "free_mbps",
            "age_s",
            "raw",
        )
    ),
    state="unknown",
    path="",
)
LINKS = {"links": [link("gw-1"), DEAD, UNKNOWN]}


def printed(shown: RenderableType, *, colour: bool = False) -> list[str]:
    """Print something on a wide terminal."""
    out = io.StringIO()
    Console(
        file=out, width=160, highlight=False, force_terminal=colour, color_system="standard" if colour else None
    ).print(shown)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_a_link_is_shown_as_decisions_go_by_it() -> None:
    """With bandwidth, how much of it is taken, and how old that is."""
    head, first, *_ = printed(table(LINKS, raw=False, wide=False))
    assert head.split() == ["FROM", "TO", "RTT", "JITTER", "LOSS", "BANDWIDTH", "TAKEN", "FREE", "STATE", "AGE"]
    assert first.split() == [
        "gw-4",
        "gw-1",
        "10",
        "ms",
        "1",
        "ms",
        "0",
        "%",
        "10",
        "Gbit/s",
        "██░░░░░░░░",
        "7.5",
        "Gbit/s",
        "measured",
        "4s",
    ]
    wide = printed(table(LINKS, raw=False, wide=True))
    assert "direct" in wide[1]
    assert [wide[0].split()[at] for at in (7, 8, 9)] == ["CARRIED", "RESERVED", "FREE"]
    assert " 3 Gbit/s " in wide[1]
    assert " 2 Gbit/s " in wide[1]
    assert "7.5 Gbit/s" in wide[1]


def test_raw_figures_are_those_of_the_latest_round() -> None:
    """Where there is one; a link that was never measured shows what was reported."""
    rows = printed(table({"links": [link("gw-1"), link("gw-5", raw=None)]}, raw=True, wide=False))
    assert rows[1].split()[2:8] == ["14", "ms", "2", "ms", "20", "%"]
    assert rows[2].split()[2:8] == ["10", "ms", "1", "ms", "0", "%"]


def test_a_loss_too_small_to_see_is_shown_as_an_upper_bound() -> None:
    """Rounded up, in the table and in the matrix; the latest round shows what it lost."""
    body = {"links": [link("gw-1", loss_bound_ppm=6_667), link("gw-2", loss_ppm=20_000, loss_bound_ppm=None)]}
    first, second = printed(table(body, raw=False, wide=False))[1:]
    assert first.split()[6:9] == ["<", "0.67", "%"]
    assert second.split()[6:8] == ["2", "%"]
    assert "< 0.67 %" in printed(matrix(body, Figure.LOSS, raw=False))[3]
    assert printed(table(body, raw=True, wide=False))[1].split()[6:8] == ["20", "%"]


def test_a_dead_link_is_no_fast_one_and_an_unknown_one_no_dead_one() -> None:
    """In words, and in colour: red for what answers nothing."""
    _, _, dead, unknown = printed(table(LINKS, raw=False, wide=False))
    assert dead.split()[2:6] == ["dead", "dead", "100", "%"]
    assert unknown.split()[2:5] == ["–", "–", "–"]
    assert "\x1b[31m dead" in printed(table(LINKS, raw=False, wide=False), colour=True)[2]
    assert printed(table({"links": []}, raw=False, wide=False)) == ["no links"]


def test_a_matrix_has_a_row_and_a_column_for_each_gateway() -> None:
    """Itself is a dot, what no one knows a dash."""
    rows = [row.split() for row in printed(matrix(LINKS, Figure.LOSS, raw=False))]
    assert rows[0] == ["from", "\\", "to", "gw-1", "gw-2", "gw-3", "gw-4"]
    assert rows[1] == ["gw-1", "·", "–", "–", "–"]
    assert rows[4] == ["gw-4", "0", "%", "100", "%", "–", "·"]
    assert "10 Gbit/s" in printed(matrix(LINKS, Figure.BANDWIDTH, raw=False))[4]
    assert "14 ms" in printed(matrix(LINKS, Figure.RTT, raw=True))[4]


def sample(minute: int, latency_ns: int | None, loss_ppm: int = 0) -> dict[str, Any]:
    """Return a sample as the API shows it."""
    figures: dict[str, Any] = {
        "latency_ns": latency_ns,
        "jitter_ns": 0,
        "loss_ppm": loss_ppm,
        "bandwidth_mbps": 0,
        "used_mbps": 0,
    }
    figures["path"] = f"via-{minute}"
    return {"at": f"2026-01-01T10:{minute:02d}:00.000000Z", "source": "a", "target": "b", **figures}


def test_history_is_a_line_for_each_figure() -> None:
    """With the least, the most and the latest; a time in which nothing answered is a gap, and its loss the whole."""
    samples = [sample(0, 10_000_000), sample(1, 80_000_000), sample(2, None, 1_000_000), sample(3, 20_000_000)]
    _, rtt, _, loss = printed(history(samples, wide=False))
    assert rtt.split() == ["RTT", "▁█", "▂", "10", "ms", "80", "ms", "20", "ms"]
    assert loss.split() == ["LOSS", "▁▁█▁", "0", "%", "100", "%", "0", "%"]
    assert printed(history(samples[:3], wide=False))[1].split()[-1] == "dead"
    assert [line.split()[-1] for line in printed(history(samples, wide=True))] == [
        "PATH",
        "via-0",
        "via-1",
        "via-2",
        "via-3",
    ]
    assert printed(history([], wide=False)) == ["no measurements"]


def test_a_line_is_no_longer_than_there_is_room_and_hides_no_peak() -> None:
    """A thousand samples with one high one: a mark stands for the largest of its share."""
    values: list[int | None] = [1] * 1000
    values[777] = 100
    line = sparkline(values)
    assert len(line) == 60
    assert line.count("█") == 1
    assert sparkline([0, 0]) == "▁▁"
