"""Submission from the command line, and following a job."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from seaway.adapters.kubernetes.templates.runtime import workdir_container
from seaway.adapters.s3 import S3Bucket
from seaway.application.ports.templates import Delivery
from seaway.application.records import BUCKET_PART_BYTES, WorkdirLimits
from seaway.domain.deployment import Deployment
from seaway.domain.runtime import Container
from tests.fakes.s3_server import ACCESS_KEY, SECRET_KEY, s3_server
from tests.integration.cli_runs import Cli, command_line

SMALL = ("--name", "hello", "--gpus", "1", "--gpu-memory", "8Gi", "--expected-duration", "10s")

pytestmark = pytest.mark.slow  # each has its own server


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Cli]:
    """Start a server, and a command line connected to it."""
    with command_line(capsys, monkeypatch, tmp_path) as made:
        yield made


def job_file(folder: Path, text: str) -> str:
    """Write a job file."""
    path = folder / "job.yaml"
    path.write_text(text)
    return str(path)


def test_submit_shows_candidates_and_follows_the_job(cli: Cli) -> None:
    """Submit prints the candidates, the selected node, and each change until the job has completed."""
    with cli.cycling():
        ran = cli("submit", *SMALL, "--gateway", "site", "--", "python", "train.py")
    assert ran.code == 0, ran.err
    head = next(line for line in ran.out.splitlines() if "FITS" in line)
    assert head.split() == ["NODE", "CLUSTER", "FITS", "RTT", "BANDWIDTH", "PRICE/H", "SCORE"]
    chosen = next(line for line in ran.out.splitlines() if line.startswith("→"))
    assert "1 ms" in chosen or "9 ms" in chosen
    assert "1 Gbit/s" in chosen
    states = [line.split()[2] for line in ran.out.splitlines() if "  · " in line]
    assert states[0] == "pending"
    assert states[-2:] == ["running", "completed"]
    command = cli("show", "hello", "-o", "json").body["spec"]["run"]["command"]
    assert command == ["python", "train.py"]


def test_failed_job_sets_the_exit_code(cli: Cli) -> None:
    """It reports that the job did not complete."""
    assert cli("submit", *SMALL, "-d").code == 0
    cli.step(3)
    assert cli("cancel", "hello").code == 0
    ran = cli("events", "-f", "hello")
    assert ran.code == 1
    assert "cancelled by admin" in ran.out


def test_ctrl_c_detaches_and_prints_the_follow_command(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job continues."""
    from seaway.client.sync import Client

    def listen(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Client, "listen", listen)
    ran = cli("submit", *SMALL)
    job = cli("jobs", "-o", "name").out.strip()
    assert ran.code == 0
    assert f"seaway events -f {job}" in ran.out
    assert cli("show", job, "-o", "json").body["state"] in {"pending", "queued"}


def test_a_job_file_needs_no_option(cli: Cli, tmp_path: Path) -> None:
    """A YAML file is submitted with or without -f, with plain numbers as texts and seconds, and options override it."""
    text = "name: plain\nrun: {env: {A: 010}}\nexpected_duration: 60\nlabels: {v: 1.10}\n"
    path = job_file(tmp_path, text)
    assert cli("submit", path, "--time-limit", "120", "-d").code == 0
    spec = cli("show", "plain", "-o", "json").body["spec"]
    assert (spec["run"]["env"], spec["labels"]) == ({"A": "010"}, {"v": "1.10"})
    assert (spec["expected_duration"], spec["time_limit"]) == ("1m", "2m")
    assert cli("update", "plain", "--set", "labels.v=2.0", "--set", "priority=3").code == 0
    said = cli("events", "plain").out
    assert "priority default → 3" in said
    assert "labels.v 1.10 → 2.0" in said


def test_numbers_beyond_64_bits_are_reported_with_their_option(cli: Cli, tmp_path: Path) -> None:
    """A number that JSON cannot carry is an error that names its option or line."""
    huge = str(10**30)
    assert "--priority: is too large" in cli("submit", *SMALL, "--priority", huge).err
    assert "--gpus: is too large" in cli("submit", "--name", "x", "--gpus", huge).err
    assert "job.yaml:2:priority: is too large" in cli("submit", job_file(tmp_path, f"name: x\npriority: {huge}\n")).err
    assert cli("submit", *SMALL, "-d").code == 0
    for arguments in (("reprioritize", "hello", huge), ("whatif", "--add-nodes", "a/n0", "--count", huge)):
        ran = cli(*arguments)
        assert (ran.code, "is too large" in ran.err, "Traceback" in ran.err) == (2, True, False), ran.err


def test_dry_run_of_a_gang_shows_each_replica_and_the_total_price(cli: Cli) -> None:
    """The nodes of all replicas are listed, with the price of all; the list of jobs has the GPUs of all replicas."""
    arguments = ("--name", "gang", "--gpus", "1", "--gpu-memory", "50%", "--replicas", "3", "--gang")
    for name in "ab":
        ran = cli("cluster", "set", name, "--price-per-gpu-hour", "2.00")
        assert ran.code == 0, ran.err
    cli.step(2)
    ran = cli("submit", *arguments, "--dry-run")
    assert ran.code == 0, ran.err
    assert "REPLICAS" in ran.out
    assert "3 replicas, price " in ran.out
    assert cli("submit", *arguments, "-d").code == 0
    assert "3 × 50%" in cli("jobs").out


def test_a_price_bound_and_labels_of_clusters_are_options(cli: Cli) -> None:
    """They exclude clusters as in a job file, and a wrong value is reported with its option."""
    assert cli("cluster", "set", "a", "--price-per-gpu-hour", "3.00", "--label", "tier=gold").code == 0
    assert cli("cluster", "set", "b", "--price-per-gpu-hour", "1.00").code == 0
    cli.step(1)
    for options, cluster in (
        (("--max-price-per-gpu-hour", "2.50"), "b"),
        (("--cluster-label", "tier=gold"), "a"),
    ):
        ran = cli("submit", *SMALL, *options, "--dry-run", "-o", "json")
        assert {each["cluster"] for each in ran.body["candidates"]} == {cluster}
    both = cli("submit", *SMALL, "--max-price-per-gpu-hour", "2.50", "--cluster-label", "tier=gold", "--dry-run")
    assert (both.code, "2 nodes: price above the maximum" in both.err) == (2, True)
    refused = cli("submit", *SMALL, "--max-price-per-gpu-hour", "cheap", "--dry-run")
    assert (refused.code, "--max-price-per-gpu-hour" in refused.err) == (2, True)
    assert "--cluster-label: 'gold' has no '='" in cli("submit", *SMALL, "--cluster-label", "gold", "--dry-run").err


def test_dry_run_exit_code_predicts_the_start(cli: Cli) -> None:
    """A dry run uses the real scheduler, stores nothing, and exits with 1 if the job would wait."""
    assert cli("submit", *SMALL, "--dry-run").code == 0
    assert cli("jobs").code == 1
    assert cli("submit", "--name", "all", "--gpus", "2", "--replicas", "4", "-d").code == 0
    cli.step(3)
    ran = cli("submit", *SMALL, "--dry-run")
    assert ran.code == 1
    assert "0 of 4 nodes fit" in ran.out
    assert cli("submit", *SMALL, "--dry-run", "-o", "json").body["fits"] is False


def test_job_is_placed_near_its_data(cli: Cli) -> None:
    """Data locality and SLO violations have options; candidates and the stored job have transfer times."""
    options = (*SMALL, "--data", "b", "--data-size", "200GB", "--on-violation", "move")
    tried = cli("submit", *options, "--dry-run")
    assert "its data is at b; the transfer time is unknown to a" in " ".join(tried.out.split())
    assert cli("submit", *options, "-d").code == 0
    cli.step(3)
    shown = cli("show", "hello", "-o", "json").body
    assert shown["clusters"] == ["b"]
    assert (shown["spec"]["data"], shown["spec"]["network"]) == (
        {"location": "b", "size": "200GB"},
        {"on_violation": "move"},
    )
    assert "; its data is at b" in cli("explain", "hello", "-o", "json").body["placement_reason"]["message"]
    changed = cli("update", "hello", "--set", "data.location=a", "--set", "network.on_violation=report")
    assert "stopped and restarted" not in changed.out
    assert cli("show", "hello", "-o", "json").body["attempt"] == shown["attempt"]


def test_submit_of_several_jobs_does_not_follow_them(cli: Cli, tmp_path: Path) -> None:
    """Options apply to each job of the file."""
    text = "name: one\nresources: {gpus: 1}\n---\n---\nname: two\nresources: {gpus: 1}\nlabels: {sweep: a}\n"
    ran = cli("submit", "-f", job_file(tmp_path, text), "--priority", "7", "-l", "by=test")
    assert ran.code == 0
    assert "submitted one as" in ran.out
    jobs = cli("jobs", "-l", "by=test", "-o", "json").body["jobs"]
    assert [(job["name"], job["priority"]) for job in jobs] == [("two", 7), ("one", 7)]
    assert jobs[0]["spec"]["labels"] == {"by": "test", "sweep": "a"}


def test_jobs_of_a_file_come_after_each_other(cli: Cli, tmp_path: Path) -> None:
    """A file is a small workflow: stored together, shown as a tree, with errors at their lines."""
    text = "name: one\nresources: {gpus: 1}\n---\nname: two\nresources: {gpus: 1}\nafter: [{job: one, when: WHEN}]\n"
    assert cli("submit", job_file(tmp_path, text.replace("WHEN", "failed")), "-d").code == 0
    single = cli("submit", "--name", "three", "--gpus", "1", "--after", "one:finished", "--after", "two", "-o", "json")
    assert [each["when"] for each in single.body["awaits"]] == ["finished", "succeeded"]
    tree = cli("jobs", "--tree").out.splitlines()
    assert [line[:12].rstrip() for line in tree[1:]] == ["one", "└─ two", "   └─ three"]
    assert "one failed" in tree[2]
    assert "one finished, two" in tree[3]
    file = job_file(tmp_path, text.replace("WHEN", "ended"))
    assert f"error: {file}:6:after[0].when: " in cli("submit", file).err
    cycle = "name: one\nafter: two\n---\nname: two\nafter: one\n"
    assert "one → two → one" in cli("submit", job_file(tmp_path, cycle)).err


def test_arrays_are_listed_as_one_row_that_opens(cli: Cli) -> None:
    """The row has the indexes and the numbers of tasks, and tasks are listed, cancelled and retried by index."""
    options = ("--name", "sweep", "--gpus", "1", "--expected-duration", "1h")
    assert cli("submit", *options, "--array", "0-7%2", "-d").code == 0
    assert "sweep_[0-7%2]" in cli("jobs").out
    assert "at most 2 at once" in cli("show", "sweep").out
    assert cli("cancel", "sweep_7").out.endswith("is cancelled\n")
    listed = cli("jobs", "--array", "sweep", "-s", "cancelled", "-o", "json").body["jobs"]
    assert [(each["name"], each["index"]) for each in listed] == [("sweep", 7)]
    assert "sweep_7" in cli("jobs", "--array", "sweep").out
    assert cli("retry", "sweep_7").code == 0
    assert "--array: --queue cannot be used" in cli("jobs", "--array", "sweep", "-q", "default").err
    matrix = cli(
        "submit", "--name", "grid", "--gpus", "1", "--matrix", "A=1,2,3", "--matrix", "B=x,y", "-o", "json"
    ).body
    assert (matrix["spec"]["array"], matrix["tasks"]["total"]) == ("0-5", 6)
    assert "A=2 B=y" in cli("jobs", "--array", "grid").out
    assert "A=2 B=y" in cli("show", "grid_3").out
    assert cli("submit", *options, "--array", "7-0", "-d").err.startswith("error: --array: ")


def test_file_with_an_invalid_job_is_not_submitted(cli: Cli, tmp_path: Path) -> None:
    """Every error has its file, line and field, and a suggested field name."""
    file = job_file(
        tmp_path, "name: fine\nresources: {gpus: 1}\n---\nname: Not Fine\nresources:\n  gpus: 1\n  gpu_memry: 8GB\n"
    )
    ran = cli("submit", "-f", file)
    assert ran.code == 2
    assert f"error: {file}:4:name: " in ran.err
    assert f"error: {file}:7:resources.gpu_memry: unknown field 'gpu_memry'; did you mean 'gpu_memory'?" in ran.err
    assert cli("jobs").code == 1


def test_invalid_option_is_named(cli: Cli) -> None:
    """The error names the option, not the field."""
    ran = cli("submit", "--name", "x", "--gpus", "1", "--gpu-memory", "8")
    assert (ran.code, ran.err.startswith("error: --gpu-memory: '8' is not valid")) == (2, True)
    assert cli("submit", "--name", "x", "--data", "a", "--data-size", "8").err.startswith("error: --data-size: '8'")
    assert cli("submit", "--name", "x", "--env", "A").err.startswith("error: --env: 'A' has no '='")
    assert cli("submit").code == 2


def test_submit_reads_standard_input(cli: Cli) -> None:
    """With `-o name` only the ID is printed, and the command does not follow the job."""
    ran = cli("submit", "-f", "-", "-o", "name", stdin="name: piped\nresources: {gpus: 1}\n")
    assert ran.code == 0
    assert cli("show", ran.out.strip(), "-o", "json").body["name"] == "piped"
    assert cli("submit", "-f", "-", stdin="name: x\n- y\n").err.startswith("error: stdin:2: this is not YAML")


def test_idempotency_key_prevents_duplicate_jobs(cli: Cli) -> None:
    """Two submissions of one job with the same key create one job."""
    first = cli("submit", *SMALL, "--key", "k", "-o", "name").out
    assert cli("submit", *SMALL, "--key", "k", "-o", "name").out == first


def test_submit_accepts_the_shown_spec(cli: Cli) -> None:
    """`submit -f` accepts the output of `show --spec`."""
    cli("submit", *SMALL, "-d")
    spec = cli("show", "hello", "--spec").out
    ran = cli("submit", "-f", "-", "--name", "again", "-d", stdin=spec)
    assert ran.code == 0, ran.err
    first, second = (cli("show", name, "-o", "json").body["request"] for name in ("hello", "again"))
    assert first == second


def test_a_folder_is_sent_once_and_arrives_in_the_container(cli: Cli, tmp_path: Path) -> None:
    """`workdir` of a job file is packed and sent; the command of its init container fetches and unpacks it."""
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "train.py").write_text("print(1)")
    (folder / "src" / "run.sh").write_text("echo run")
    (folder / "src" / "run.sh").chmod(0o755)
    (folder / "data.bin").write_bytes(os.urandom(700 << 10))
    (folder / "ignored.log").write_text("x")
    (folder / ".seawayignore").write_text("*.log")
    file = job_file(folder, "name: hello\nresources: {gpus: 1, gpu_memory: 8Gi}\nworkdir: .\n")
    assert cli("submit", file, "--dry-run").code == 0
    assert cli.served.rig.store.workdirs() == []
    jobs = [cli("submit", *args, "-o", "json").body for args in ((file,), (*SMALL, "--workdir", str(folder)))]
    (archive,) = cli.served.rig.store.workdirs()
    assert [each["spec"]["workdir"] for each in jobs] == [archive.digest] * 2
    cli.step(3)
    job = cli.served.rig.store.job(jobs[0]["id"])
    assert job is not None
    deployment = Deployment(job.id, job.attempt, "a", job.spec, ())
    fetcher = workdir_container(deployment, Delivery(cli.served.url, token=cli.served.rig.plane.workdirs.token))
    for downloader in ("curl", "wget", "python3"):
        if shutil.which(downloader):
            done = fetched(fetcher, tmp_path / downloader, downloader)
            assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
            assert (tmp_path / downloader / "train.py").read_text() == "print(1)"
    assert fetched(fetcher, tmp_path / "right").returncode == 0
    found = {str(each.relative_to(tmp_path / "right")) for each in (tmp_path / "right").rglob("*") if each.is_file()}
    assert found == {"train.py", "src/run.sh", "data.bin", ".seawayignore", "job.yaml"}
    assert os.access(tmp_path / "right" / "src" / "run.sh", os.X_OK)
    assert (tmp_path / "right" / "data.bin").read_bytes() == (folder / "data.bin").read_bytes()
    refused = fetched(workdir_container(deployment, Delivery(cli.served.url, token=lambda _: "swd_x")), tmp_path / "no")
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1].startswith("the working directory is missing: http://")
    listed = cli("workdir", "list", "-o", "json").body["workdirs"]
    assert [(each["digest"], each["needed"]) for each in listed] == [(archive.digest, True)]
    ran = cli("workdir", "delete", archive.digest)
    assert (ran.code, "cancel them first" in ran.err) == (2, True), ran.err


def test_a_folder_goes_through_a_bucket(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`submit` sends the archive to the bucket, and each downloader of a pod fetches it there without its token."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "data.bin").write_bytes(os.urandom(700 << 10))
    workdirs = cli.served.rig.plane.workdirs
    with s3_server() as store:
        workdirs.bucket = S3Bucket("archives", "", store.url, "eu-west-1")
        ran = cli("submit", *SMALL, "--workdir", str(folder), "-o", "json")
        assert (ran.code, len(store.objects)) == (0, 1), ran.err
        cli.step(3)
        job = cli.served.rig.store.job(ran.body["id"])
        assert job is not None
        deployment = Deployment(job.id, job.attempt, "a", job.spec, ())
        pem = "-----BEGIN CERTIFICATE-----"  # written to a file, which plain HTTP does not need
        delivery = Delivery(cli.served.url, token=workdirs.token, in_bucket=workdirs.in_bucket, ca=pem)
        for downloader in ("curl", "wget", "python3"):
            if shutil.which(downloader):
                done = fetched(workdir_container(deployment, delivery), tmp_path / downloader, downloader)
                assert (done.returncode, done.stdout) == (0, ""), (downloader, done.stderr)
                found = [each.name for each in (tmp_path / downloader).iterdir()]
                assert (found, store.refused) == (["data.bin"], [])
        store.objects.clear()
        gone = fetched(workdir_container(deployment, delivery), tmp_path / "gone")
        assert (gone.returncode, "did not send it" in gone.stderr) == (1, True)


def test_an_upload_to_a_bucket_goes_on_where_it_stopped(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broken connection is tried again. The error names what the bucket has, and the next submit sends the rest."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "data.bin").write_bytes(os.urandom(2 * BUCKET_PART_BYTES + 1000))
    with s3_server() as store:
        cli.served.rig.plane.workdirs.bucket = S3Bucket("archives", "", store.url, "eu-west-1")
        store.breaks_after = 1
        ran = cli("submit", *SMALL, "--workdir", str(folder))
        assert (ran.code, store.objects) == (4, {}), ran.err
        said = " ".join(ran.err.split())
        assert f"the bucket at {store.url.removeprefix('http://')} did not respond" in said
        assert "it has 16.0 MiB of 32.0 MiB, and the next submit sends the rest" in said
        store.breaks_after, (before,) = -1, store.uploads.values()
        first = next(iter(before.values()))
        assert cli("submit", *SMALL, "--workdir", str(folder), "-o", "json").code == 0
        (content,) = store.objects.values()
        assert before[1] is first
        assert (
            hashlib.sha256(content).hexdigest()
            == cli("workdir", "list", "-o", "json").body["workdirs"][0]["digest"][7:]
        )
        assert store.refused == []


def fetched(container: Container, folder: Path, downloader: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command of an init container, which tries once, with a folder of this machine as its volume.

    Parameters
    ----------
    downloader
        The only program for downloads of the image; python3 is alone, without tar. Empty for all of this machine.
    """
    folder.mkdir()
    env = {**dict(container.run.env), "SEAWAY_WORKDIR": str(folder), "SEAWAY_WORKDIR_TRIES": "1"}
    env |= {"PATH": os.environ["PATH"], "no_proxy": "127.0.0.1"}
    if downloader:
        programs = folder.with_name(f"{folder.name}-bin")
        programs.mkdir()
        for each in (downloader, "rm") if downloader == "python3" else (downloader, "rm", "tar", "gzip", "sha256sum"):
            found = sys.executable if each == "python3" else shutil.which(each) or each  # `python3` may be a script
            (programs / each).symlink_to(Path(found).resolve())
        env["PATH"] = str(programs)
    return subprocess.run(container.run.command, env=env, capture_output=True, text=True, check=False)


def test_a_folder_that_cannot_be_sent_is_an_error_of_its_field(cli: Cli, tmp_path: Path) -> None:
    """The error names the line of the job file, or the option, and no job is stored."""
    cli.served.rig.plane.workdirs.limits = WorkdirLimits(1024)
    (tmp_path / "large.bin").write_bytes(os.urandom(4096))
    file = job_file(tmp_path, "name: hello\nresources: {gpus: 1, gpu_memory: 8Gi}\nworkdir: .\n")
    ran = cli("submit", file, "-d")
    assert (ran.code, f"{file}:3:workdir" in ran.err) == (2, True), ran.err
    assert "Largest: large.bin" in ran.err
    ran = cli("submit", *SMALL, "--workdir", str(tmp_path / "none"), "-d")
    assert (ran.code, "--workdir" in ran.err) == (2, True), ran.err
    assert cli("jobs", "-o", "json").body["jobs"] == []
