import csv
import json
from pathlib import Path

import pytest

from seaway.cli.learning import compare
from seaway.cli.main import main

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,96000,393216,2,G2\nn1,64000,262144,2,P100\n"
JOBS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,arrives_s,expected_duration_s\n" + "".join(
    f"job-{at},4000,8192,1,600,{at},100\n" for at in range(6)
)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Write a small trace and return the options that name it. The engine may not be compiled; that is not said."""
    monkeypatch.setattr(compare, "uncompiled", lambda _: ())
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "jobs.csv").write_text(JOBS)
    return ["--nodes", str(tmp_path / "nodes.csv"), "--jobs", str(tmp_path / "jobs.csv")]


def replay(*arguments: str) -> int:
    """Run `seaway replay` and return its exit code."""
    with pytest.raises(SystemExit) as done:
        main(["replay", *arguments])
    return int(done.value.code or 0)


def test_json_is_a_list_with_an_object_for_each_policy(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Scripts read standard output as JSON, in the order in which policies were named."""
    assert replay(*files, "--policy", "bestfit, random", "-o", "json") == 0
    out = capsys.readouterr()
    records = json.loads(out.out)
    assert [record["policy"] for record in records] == ["bestfit", "random"]
    assert [(record["jobs"], record["placed"], record["refused"]) for record in records] == [(6, 4, 2)] * 2
    assert records[0]["gpu_allocated_pct"] == pytest.approx(60)
    assert out.err == ""


def test_the_table_has_a_column_for_each_policy(
    files: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """People read policies side by side, in several tables where the window is narrow."""
    monkeypatch.setenv("COLUMNS", "120")
    assert replay(*files, "--policy", "bestfit,random") == 0
    wide = capsys.readouterr().out
    assert wide.splitlines()[0].split() == ["bestfit", "random"]
    assert ["allocated", "60.00", "60.00"] in [line.split() for line in wide.splitlines()]
    monkeypatch.setenv("COLUMNS", "45")
    assert replay(*files, "--policy", "bestfit,random") == 0
    narrow = capsys.readouterr().out
    assert narrow.count("asked for") == 2 * wide.count("asked for")


def test_the_arrival_of_jobs_can_be_stopped(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """--arrived ends the replay with the job by which so much has been asked for."""
    replay(*files, "--policy", "bestfit", "--arrived", "0.4", "-o", "json")
    assert json.loads(capsys.readouterr().out)[0]["jobs"] == 3


def test_departures_add_waits(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """With departures jobs wait and end, and how long is reported."""
    replay(*files, "--policy", "bestfit", "--departures", "-o", "json")
    record = json.loads(capsys.readouterr().out)[0]
    assert (record["placed"], record["refused"], record["makespan_s"]) == (6, 0, 201)
    assert record["queue_wait_mean_s"] == pytest.approx(2 * 96 / 6)


SWF = "; MaxProcs: 4\n" + "".join(
    f"{at} {at} -1 100 {size} -1 -1 {size} 100 -1 1 {at % 2} -1 -1 -1 -1 -1 -1\n"
    for at, size in enumerate((3, 4, 1, 1), 1)
)


@pytest.mark.parametrize(
    ("backfill", "begun"),
    [("none", [1, 101, 201, 201]), ("easy", [1, 101, 201, 201]), ("greedy", [1, 201, 3, 101])],
)
def test_a_log_is_replayed_and_its_starts_are_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], backfill: str, begun: list[int]
) -> None:
    """--swf needs no other file; --starts has a line for each job, and the measures of queues are reported."""
    log, starts = tmp_path / "log.swf", tmp_path / "starts.csv"
    log.write_text(SWF)
    given = ("--swf", str(log), "--order", "fifo", "--backfill", backfill, "--starts", str(starts), "-o", "json")
    assert replay(*given) == 0
    rows = list(csv.DictReader(starts.read_text().splitlines()))
    assert [row["job"] for row in rows] == ["1", "2", "3", "4"]
    assert [int(row["start_s"]) for row in rows] == begun
    assert all(int(row["end_s"]) == int(row["start_s"]) + 100 for row in rows)
    record = json.loads(capsys.readouterr().out)[0]
    waits = [start - at for at, start in enumerate(begun, 1)]
    slowdowns = [(wait + 100) / 100 for wait in waits]
    assert record["queue_wait_mean_s"] == pytest.approx(sum(waits) / 4)
    assert record["bounded_slowdown_mean"] == pytest.approx(sum(slowdowns) / 4)
    users = [(slowdowns[0] + slowdowns[2]) / 2, (slowdowns[1] + slowdowns[3]) / 2]
    assert record["jain_index"] == pytest.approx(sum(users) ** 2 / (2 * sum(each**2 for each in users)))


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "error: --nodes: is missing; give --nodes and --jobs, or a log with --swf"),
        (["--swf", "none.swf"], "error: none.swf: cannot be read"),
        (["--swf", "none.swf", "--links", "links.csv"], "error: --links: cannot be combined with --swf"),
        (["--processors", "4"], "error: --processors: needs --swf"),
        (["--order", "fifo"], "error: --order: needs --departures or --swf"),
        (["--backfill", "easy"], "error: --backfill: needs --departures or --swf"),
        (["--starts", "starts.csv"], "error: --starts: needs --departures or --swf"),
        (["--queues", "queues.yaml"], "error: --queues: needs --departures or --swf"),
        (["--gpu-weights", "H100=3", "--departures"], "error: --gpu-weights: needs --queues or --order fair"),
        (["--gpu-weights", "H100=no", "--departures", "--order", "fair"], "error: --gpu-weights: the weight of H100"),
        (["--swf", "a.swf", "--policy", "fgd,bestfit", "--starts", "s.csv"], "error: --starts: needs a single policy"),
    ],
)
def test_options_of_queues_are_checked(capsys: pytest.CaptureFixture[str], arguments: list[str], line: str) -> None:
    """An option that has no effect is rejected, and the error names what is missing."""
    assert replay(*arguments) == 2
    assert capsys.readouterr().err.startswith(line)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("queues: [{name: default, order: lifo}]", "queues.yaml: order: must be one of"),
        ("queues: [{name: default, parent: x}]", "queues.yaml: parent: unknown queue 'x'"),
        ("queues: [{name: x}]", "queues.yaml: has no queue 'default' without children, in which job 1 waits"),
    ],
)
def test_a_file_of_queues_is_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, text: str, line: str
) -> None:
    """An invalid tree is reported with its file, before the replay."""
    monkeypatch.chdir(tmp_path)
    Path("log.swf").write_text(SWF)
    Path("queues.yaml").write_text(text)
    assert replay("--swf", "log.swf", "--queues", "queues.yaml") == 2
    assert capsys.readouterr().err.startswith(f"error: {line}")


def test_a_log_is_replayed_in_queues(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Queues of a file apply, in the format of the API and of other schedulers, and their measures are reported."""
    log, queues = tmp_path / "log.swf", tmp_path / "queues.yaml"
    log.write_text(SWF)
    for text in (
        "queues: [{name: default, order: fifo, limit: {gpus: 3}}]",
        "{queues: [{name: default, maxCapacity: 3}], fairShare: {enabled: false}}",
    ):
        queues.write_text(text)
        assert replay("--swf", str(log), "--queues", str(queues), "-o", "json") == 0
        record = json.loads(capsys.readouterr().out)[0]
        assert (record["placed"], record["refused"], record["failed"], record["preempted"]) == (3, 0, 1, 0)
        assert record["share_error"] >= 0
        assert replay("--swf", str(log), "--queues", str(queues)) == 0
        lines = [line.split() for line in capsys.readouterr().out.splitlines()]
        assert ["beyond", "fair", "shares", f"{record['share_error']:.4f}"] in lines
        assert ["preempted", "0"] in lines
        assert ["preempted,", "GPU", "hours", "0.0"] in lines


def test_the_curve_is_written_for_every_policy(files: list[str], tmp_path: Path) -> None:
    """--curve has a line for each policy and arrival; with departures it has times."""
    curve = tmp_path / "curve.csv"
    replay(*files, "--policy", "bestfit,random", "--curve", str(curve))
    rows = list(csv.DictReader(curve.read_text().splitlines()))
    assert list(rows[0]) == ["policy", "arrived_pct", "allocated_pct"]
    assert [row["policy"] for row in rows] == ["bestfit"] * 6 + ["random"] * 6
    assert (rows[5]["arrived_pct"], rows[5]["allocated_pct"]) == ("90.0000", "60.0000")
    replay(*files, "--policy", "bestfit", "--departures", "--curve", str(curve))
    assert curve.read_text().splitlines()[0].endswith(",time_s")


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_the_picture_is_drawn(files: list[str], tmp_path: Path, suffix: str) -> None:
    """--plot draws over arrivals, and over time with departures, in the format that the name says."""
    for more in [], ["--departures"]:
        picture = tmp_path / f"curve{suffix}"
        assert replay(*files, "--policy", "bestfit,random", "--plot", str(picture), *more) == 0
        assert picture.stat().st_size > 5_000
        picture.unlink()


def test_a_fleet_without_gpus_has_a_curve_of_blanks_and_no_picture(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Anything that is unknown is left blank in the curve, and a picture of nothing is not drawn."""
    (tmp_path / "nodes.csv").write_text("sn,cpu_milli,memory_mib,gpu\nn0,96000,393216,0\n")
    curve = tmp_path / "curve.csv"
    assert replay(*files, "--policy", "bestfit", "--curve", str(curve)) == 0
    assert curve.read_text().splitlines()[1] == "bestfit,,"
    assert replay(*files, "--policy", "bestfit", "--plot", str(tmp_path / "curve.png")) == 2
    assert capsys.readouterr().err.startswith("error: --plot: no GPUs are requested")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--policy", "none"], "error: --policy: unknown policy 'none'; available: "),
        (["--policy", "bestfit,bestfit"], "error: --policy: 'bestfit' appears more than once"),
        (["--policy", "bestfit,"], "error: --policy: a name is missing; separate names with a comma"),
        (["--policy", "fgd", "--level", "cluster"], "error: --policy: policy 'fgd' has no level 'cluster'"),
        (["--policy", "bestfit", "--arrived", "-1"], "error: --arrived: -1.0 is not more than 0"),
        (["--policy", "bestfit", "--offers", "0"], "error: --offers: 0 is not at least 1"),
        (["--policy", "bestfit", "--offers", "2", "--departures"], "error: --offers: cannot be used with --departures"),
        (["--policy", "bestfit", "--arrived", "nan"], "error: --arrived: nan is not more than 0"),
        (["--policy", "random", "--seed", "-1"], "error: --seed: -1 is not between 0 and 2**63 - 1"),
        (
            ["--policy", "bestfit", "--plot", "curve.bmp"],
            "error: --plot: curve.bmp: the name has to end in .png",
        ),
        (
            ["--policy", "bestfit", "--curve", "/no/such/curve.csv"],
            "error: --curve: '/no/such/curve.csv' cannot be written",
        ),
        (
            ["--policy", "bestfit", "--plot", "/no/such/curve.png"],
            "error: --plot: '/no/such/curve.png' cannot be written",
        ),
        (["--policy", "bestfit", "--links", "none.csv"], "error: none.csv: cannot be read: No such file"),
    ],
)
def test_bad_options_get_one_line_and_exit_code_2(
    files: list[str], arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Anything that the user can mend is reported in one line on standard error, without a traceback."""
    assert replay(*files, *arguments) == 2
    err = capsys.readouterr().err
    assert err.startswith(line)
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("file", "old", "new", "line"),
    [
        (
            "jobs",
            "name,cpu_milli",
            "name,cpu",
            "jobs.csv:1:cpu_milli: the column is missing; the header has: name, ",
        ),
        ("jobs", "job-3,4000", "job-3,-4000", "jobs.csv:5:cpu_milli: -4000 is negative"),
        ("jobs", "job-3,4000", "job-3,4e", "jobs.csv:5:cpu_milli: '4e' is not a number"),
        ("jobs", "job-3,", "job-2,", "jobs.csv:5:name: 'job-2' appears more than once"),
        ("jobs", JOBS, "", "jobs.csv:1: the file is empty"),
        ("nodes", NODES, "", "nodes.csv:1: the file is empty"),
        ("nodes", "n1", "n0", "nodes.csv:3:sn: 'n0' appears more than once"),
        ("nodes", ",gpu,", ",gpus,", "nodes.csv:1:gpu: the column is missing; the header has: "),
    ],
)
def test_bad_files_get_one_line_that_names_file_line_and_column(
    files: list[str], file: str, old: str, new: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where in which file the mistake is stands first in the one line."""
    path = Path(files[1] if file == "nodes" else files[3])
    path.write_text(path.read_text().replace(old, new))
    assert replay(*files, "--policy", "bestfit") == 2
    err = capsys.readouterr().err
    assert err.replace(f"{path.parent}/", "").startswith(f"error: {line}")
    assert err.count("\n") == 1


def test_other_nodes_and_jobs_in_order_files_are_rejected(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An order that names what is not there is a mistake, reported like any other."""
    order = tmp_path / "order.csv"
    order.write_text("name\njob-1\njob-9\n")
    assert replay(*files, "--policy", "bestfit", "--job-order", str(order)) == 2
    assert capsys.readouterr().err.endswith(
        "order.csv:3:name: unknown job 'job-9'; the file of jobs does not have it\n"
    )
