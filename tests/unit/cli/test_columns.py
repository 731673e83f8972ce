import io
from datetime import UTC, datetime

import pytest
from rich.console import Console

from seaway.cli.output import console
from seaway.terminal import words
from seaway.terminal.tables import Column, Rows, details
from seaway.terminal.words import line

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)

COLUMNS = (
    Column("NAME", lambda row: row["name"]),
    Column("ID", lambda row: row["id"], drop=2),
    Column("AGE", lambda _: "3m", right=True, drop=1),
    Column("EXTRA", lambda _: "more", wide=True),
    Column("REASON", lambda row: row["reason"], cut=True),
)
ROWS = [
    {"name": "train", "id": "6gzx9takdjhgz", "reason": "waits for a node with enough free memory on one device"},
    {"name": "[red]serve", "id": "6gzx9takdjhg0", "reason": "runs"},
]


def printed(width: int, *, wide: bool = False) -> list[str]:
    """Print the table on a terminal of some width."""
    out = io.StringIO()
    Console(file=out, width=width, highlight=False).print(Rows(COLUMNS, ROWS, wide=wide))
    return [text.rstrip() for text in out.getvalue().splitlines()]


def test_a_wide_terminal_shows_all_that_is_not_asked_for_specially() -> None:
    """With enough width, all columns but those for wide tables are shown, and texts are not cut."""
    head, first, second = printed(120)
    assert head.split() == ["NAME", "ID", "AGE", "REASON"]
    assert first.endswith("on one device")
    assert second.startswith("[red]serve")
    assert "EXTRA" in printed(120, wide=True)[0]


def test_a_pipe_gets_whole_lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A sentence is one line and a cell is whole, however long they are."""
    monkeypatch.delenv("COLUMNS", raising=False)
    reason = "a reason " * 200
    console().print(reason)
    console().print(Rows(COLUMNS, [{**ROWS[0], "reason": reason}], wide=False))
    sentence, _, row = capsys.readouterr().out.splitlines()
    assert sentence.rstrip() == reason.rstrip()
    assert reason.rstrip() in row


@pytest.mark.parametrize(
    ("width", "columns"),
    [(60, ["NAME", "ID", "AGE", "REASON"]), (40, ["NAME", "AGE", "REASON"]), (30, ["NAME", "REASON"])],
)
def test_a_narrow_terminal_loses_what_matters_least(width: int, columns: list[str]) -> None:
    """The narrower it is, the fewer columns there are; each row keeps to one line and to the width."""
    lines = printed(width)
    assert lines[0].split() == columns
    assert len(lines) == 1 + len(ROWS)
    assert max(map(len, lines)) <= width
    assert "…" in lines[1]


def test_details_leave_out_what_is_empty() -> None:
    """A name without a value is not shown."""
    out = io.StringIO()
    Console(file=out, width=40).print(details([("name", "[b]x"), ("ended", "")]))
    assert out.getvalue().split() == ["name", "[b]x"]


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0s"), (-5, "0s"), (59.9, "59s"), (60, "1m"), (187, "3m7s"), (3600, "1h"), (90_000, "1d1h")]
)
def test_times_are_reported_in_their_two_largest_units(count: float, text: str) -> None:
    """A time is as short as it can be and still say something."""
    assert words.seconds(count) == text


def test_moments_are_reported_as_ages() -> None:
    """Anything that happened is reported by how long ago it was; what has not ended lasts until now."""
    assert words.ago("2026-11-21T11:58:00.000000Z", NOW) == "2m"
    assert words.ago(None, NOW) == "–"
    assert words.lasted("2026-11-21T11:00:00Z", "2026-11-21T11:00:30Z", NOW) == "30s"
    assert words.lasted("2026-11-21T11:00:00Z", None, NOW) == "1h"
    assert words.lasted(None, None, NOW) == "–"


def test_figures_are_written_with_their_units() -> None:
    """Amounts are short and say what they are of."""
    assert [words.gib(mib) for mib in (0, 512, 1024, 7630, 81_920)] == ["0", "512Mi", "1Gi", "7.5Gi", "80Gi"]
    assert [words.cores(milli) for milli in (0, 500, 4000)] == ["0", "0.5", "4"]
    assert [words.rtt(ns) for ns in (600_000, 12_000_000)] == ["0.6 ms", "12 ms"]
    assert [words.loss(ppm) for ppm in (0, 1000)] == ["0 %", "0.1 %"]
    assert [words.rate(mbps) for mbps in (500, 1500, 10_000)] == ["500 Mbit/s", "1.5 Gbit/s", "10 Gbit/s"]


@pytest.mark.parametrize(
    ("held", "wanted", "resources", "texts"),
    [
        (4, 8, {"gpus": 2}, ("8/16", "4/8")),
        (2, 8, {"gpus": 1, "gpu_memory": "8GB"}, ("2/8 × 8GB", "2/8")),
        (8, 8, {"gpus": 2}, ("16", "8")),
        (0, 8, {"gpus": 2}, ("16", "8")),
        (1, 2, {}, (words.NONE, "1/2")),
    ],
)
def test_a_shrunk_job_shows_what_it_holds_and_wants(
    held: int, wanted: int, resources: dict[str, object], texts: tuple[str, str]
) -> None:
    """The columns of GPUs and replicas have both numbers while a job with a place holds fewer than it wants."""
    job = {"held_replicas": held, "replicas": wanted, "spec": {"resources": resources}}
    assert (words.all_gpus(job), words.replicas(job)) == texts


def test_a_bar_shows_a_little_as_a_little() -> None:
    """Anything that is taken at all is seen, nothing is nothing, and more than all is all."""
    drawn = [words.bar(used, 100).plain.count("█") for used in (0, 1, 50, 100, 120)]
    assert drawn == [0, 1, 5, 10, 10]
    assert words.bar(0, 0).plain == "░" * 10


@pytest.mark.parametrize(
    ("nodes", "clusters", "text"),
    [([], [], "–"), (["n"], ["a"], "a/n"), (["n", "m", "o"], ["a"], "a/n +2"), (["n", "m"], ["a", "b"], "a, b")],
)
def test_places_are_reported_short(nodes: list[str], clusters: list[str], text: str) -> None:
    """A job's place is its node; of several in one cluster how many more; of several clusters their names."""
    assert words.places({"nodes": nodes, "clusters": clusters, "state": "running"}) == text


def test_an_event_says_when_what_why_and_who() -> None:
    """One event is one line."""
    event = {
        "at": "2026-11-21T10:00:00Z",
        "state": "running",
        "kind": "state",
        "message": "runs on a/n",
        "actor": "ada",
        "job_id": "x",
    }
    said = line(event, named=True).plain
    assert said.split()[1:] == ["UTC", "running", "x", "runs", "on", "a/n", "·", "ada"]
    assert "fleet" in line({**event, "state": "", "kind": "drained", "job_id": ""}, named=True).plain
