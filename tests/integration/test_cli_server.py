"""All other commands."""

import json
from collections.abc import Iterator
from pathlib import Path
from threading import Timer

import pytest
import yaml

from seaway.api import log_stream
from seaway.cli.main import COMMANDS
from seaway.client.config import profiles_file
from seaway.learning.policies.file import write_policy
from tests.fakes.policies import cluster_policy
from tests.integration.cli_runs import Cli, command_line

pytestmark = pytest.mark.slow  # each has its own server


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Cli]:
    """Start a server, and a command line connected to it."""
    with command_line(capsys, monkeypatch, tmp_path) as made:
        yield made


@pytest.fixture
def job(cli: Cli) -> str:
    """Return the id of a running job."""
    job_id = cli("submit", "--name", "train", "--gpus", "1", "--gpu-memory", "8Gi", "-o", "name").out.strip()
    cli.step(4)
    return job_id


LISTS = (
    ("jobs",),
    ("fleet",),
    ("fleet", "nodes"),
    ("fleet", "devices"),
    ("fleet", "slices"),
    ("metrics",),
    ("metrics", "vGPUMemoryAllocated", "--cluster", "a"),
    ("links",),
    ("links", "--matrix", "--figure", "loss", "--raw"),
    ("links", "--source", "site", "--cluster", "a"),
    ("links", "history", "site", "gw-a"),
    ("history",),
    ("history", "cluster", "--span", "hour"),
    ("history", "queue", "--span", "month", "--tenant", "default", "--queue", "default"),
    ("jobs", "--mine", "--sort", "-gpu_hours"),
    ("gateways",),
    ("queues",),
    ("queues", "show", "default"),
    ("pools",),
    ("pool", "show", "default"),
    ("tenants",),
    ("tenant", "show", "default"),
    ("token", "list"),
    ("audit",),
    ("policies", "--remote"),
    ("policies", "show", "bestfit", "--remote"),
    ("cordon",),
    ("orphans",),
    ("config", "show"),
    ("show", "train"),
    ("explain", "train"),
    ("events", "train"),
    ("queues", "shadows"),
)


@pytest.mark.usefixtures("job")
def test_lists_and_details_have_all_output_formats(cli: Cli) -> None:
    """Output is a table for users, YAML and JSON for programs, and names for shells."""
    for arguments in LISTS:
        shown = {form: cli(*arguments, "-o", form) for form in ("table", "wide", "json", "yaml", "name")}
        assert [ran.code for ran in shown.values()] == [0] * 5, shown
        assert shown["json"].body == yaml.safe_load(shown["yaml"].out)
        assert shown["table"].out
        assert "{" not in shown["name"].out


def test_finished_jobs_have_their_times_and_gpu_hours(cli: Cli, job: str) -> None:
    """They are found by their end, in any order; options that do not belong together are rejected."""
    assert cli("cancel", job).code == 0
    cli.step(4)
    listed = cli("jobs", "--finished", "--ended-since", "2001-01-01", "--sort", "-gpu_hours", "-o", "json").body
    (found,) = listed["jobs"]
    assert (found["id"], found["state"], found["gpu_hours"] is None) == (job, "cancelled", False)
    assert "GPU-HOURS" in cli("jobs", "--finished").out
    for arguments in (("--waiting", "--sort", "name"), ("--tree", "--sort", "name"), ("--mine", "--by", "me")):
        wrong = cli("jobs", *arguments)
        assert (wrong.code, "cannot be used with" in wrong.err) == (2, True), arguments


def test_events_since_a_time_are_listed(cli: Cli, job: str) -> None:
    """Without a job they are those of all jobs and the fleet; a time without events is reported."""
    since = ("--since", "2001-01-01")
    listed = cli("events", *since, "-o", "json").body["events"]
    assert cli("events", "train", *since, "-o", "json").body["events"] == [e for e in listed if e["job_id"] == job]
    shown = cli("events", *since).out
    assert (job in shown, "fleet  " in shown) == (True, any(not each["job_id"] for each in listed))
    for arguments in (("events", "--since", "2100-01-01"), ("events", "train", "--since", "2100-01-01")):
        none = cli(*arguments)
        assert (none.code, none.out.strip(), "no events since 2100-01-01" in none.err) == (0, "", True)
    for wrong in (cli("events"), cli("events", "--since", "soon")):
        assert (wrong.code, "--since" in wrong.err) == (2, True), wrong.err
    assert "--limit: cannot be used with -f" in cli("events", "-f", "--limit", "5").err


def test_events_are_listed_in_parts(cli: Cli, job: str) -> None:
    """A list has at most --limit events, and names the option that continues it; the parts are the whole list."""
    for named in (("--since", "2001-01-01"), (job,)):
        whole = cli("events", *named, "-o", "json").body["events"]
        first = cli("events", *named, "--limit", "1")
        assert f"there are more events: add --after {whole[0]['id']}" in first.err
        rest = cli("events", *named, "--after", str(whole[0]["id"]), "-o", "json").body
        assert (rest["events"], rest["next"]) == (whole[1:], None)
        none = cli("events", *named, "--after", str(whole[-1]["id"]))
        assert (none.code, none.out.strip(), none.err.startswith("no ")) == (0, "", True)


@pytest.mark.usefixtures("job")
def test_tables_fit_a_narrow_terminal(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a narrow terminal a table drops the least important columns."""
    monkeypatch.setenv("COLUMNS", "60")
    for arguments in LISTS:
        if arguments[0] not in {"events", "explain"}:
            lines = cli(*arguments).out.splitlines()
            assert max(map(len, lines)) <= 60, arguments


def test_json_output_equals_the_api_response(cli: Cli, job: str) -> None:
    """`-o json` prints the API's body, field for field."""
    with cli.served.client("admin") as client:
        said = {
            path: client.get(f"/api/v1/{path}").json() for path in ("jobs?limit=50", f"jobs/{job}", "fleet/clusters")
        }
    assert cli("jobs", "-o", "json").body == said["jobs?limit=50"]
    assert cli("show", "train", "-o", "json").body == said[f"jobs/{job}"]
    assert cli("fleet", "-o", "json").body == said["fleet/clusters"]


def test_jobs_have_a_row_with_node_and_reason(cli: Cli, job: str) -> None:
    """The row has the node of a running job and the reason of a waiting one."""
    head, row = cli("jobs").out.splitlines()
    assert head.split() == ["NAME", "ID", "QUEUE", "STATE", "GPUS", "WHERE", "AGE", "REASON"]
    assert row.split()[:4] == ["train", job, "default", "running"]
    assert "runs on" in row


def test_jobs_are_filtered_and_paged(cli: Cli, job: str) -> None:
    """Filters shorten the list; a partial list names the next page; an empty result exits with 1."""
    other = cli("submit", "--name", "other", "--gpus", "1", "-o", "name").out.strip()
    assert cli("jobs", "-s", "running", "-o", "name").out.split() == [job]
    assert cli("jobs", "--name", "oth", "-o", "name").out.split() == [other]
    assert cli("jobs", "--name", "none").code == 1
    assert "unknown queue 'none'; available: default" in cli("jobs", "--queue", "none").err
    first = cli("jobs", "--limit", "1")
    mark = first.out.split()[-1]
    assert cli("jobs", "--limit", "1", "--after", mark, "-o", "name").out.split() == [job]
    ran = cli("jobs", "-s", "runing")
    assert (ran.code, ran.err.count("\n")) == (2, 1)


def test_explain_has_three_levels_of_detail(cli: Cli) -> None:
    """Explain prints one sentence and what helps, then rules and queue position, then all candidates and remedies."""
    cli("submit", "--name", "all", "--gpus", "2", "--replicas", "4", "-d")
    cli.step(3)
    cli("submit", "--name", "late", "--gpus", "1", "-d")
    cli.step(2)
    said = [cli("explain", "late", *layer).out for layer in ((), ("-v",), ("-vv",))]
    sentence, *advice = said[0].splitlines()
    assert sentence.startswith("late: ")
    assert advice == ["  user 'admin' of tenant 'default' holds 8 gpus in queue 'default'"]
    assert "number 1 in its queue" in said[1]
    assert "REFUSED BY" in said[1]
    assert len(said[2]) >= len(said[1])
    placed = cli("explain", "all", "-vv").out
    assert "chosen because" in placed


def test_update_prints_its_changes(cli: Cli, job: str, tmp_path: Path) -> None:
    """Changes are in the fields of job files; an update without changes does nothing."""
    version = cli("show", job, "-o", "json").body["version"]
    shown = cli("update", "train", "--set", "resources.gpus=2", "--dry-run")
    assert (shown.code, "resources.gpus: 1 → 2" in shown.out) == (0, True)
    assert cli("show", job, "-o", "json").body["version"] == version
    patch = tmp_path / "patch.yaml"
    patch.write_text("labels: {team: a}\n", encoding="utf-8")
    assert "is changed and" in cli("update", "train", "-f", str(patch), "--set", "priority=7").out
    after = cli("show", job, "-o", "json").body
    assert (after["priority"], after["spec"]["labels"]) == (7, {"team": "a"})
    assert "has these values already" in cli("update", "train", "--set", "priority=7").out
    wrong = cli("update", "train", "--set", "resources.gpu=2")
    assert (wrong.code, "it belongs in 'resources.gpus'" in wrong.err) == (2, True), wrong.err


def test_actions_print_the_new_state_of_jobs(cli: Cli, job: str) -> None:
    """Suspend, resume, reprioritize, cancel and delete print the new state of each job."""
    assert "has priority 9" in cli("reprioritize", "train", "9").out
    assert "is suspended" in cli("suspend", job, "--reason", "until Monday").out
    assert "until Monday" in cli("events", "train").out
    assert "is queued" in cli("resume", "train").out
    assert cli("resume", "train").code == 2
    some = cli("cancel", "train", "nope")
    assert (some.code, "train" in some.out, "job 'nope' not found" in some.err) == (1, True, True)
    assert "is deleted" in cli("delete", "train").out
    assert cli("show", "train").code == 1


def test_logs_and_manifests_are_printed_unchanged(cli: Cli, job: str) -> None:
    """Output equals the response of the server."""
    assert "replica 0" in cli("logs", "train").out
    objects = list(yaml.safe_load_all(cli("manifest", "train").out))
    assert json.loads(cli("manifest", job, "-o", "json").out) == objects


def test_log_follow_ends_with_the_job(cli: Cli, job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line is printed once."""
    monkeypatch.setattr(log_stream, "EVERY_S", 0.02)
    over = Timer(0.5, lambda: cli.served.rig.plane.jobs.cancel(job, "test"))
    over.start()
    ran = cli("logs", "-f", "train")
    over.join()
    assert (ran.code, "replica 0" in ran.out) == (0, True)
    assert len(ran.out.splitlines()) == len(set(ran.out.splitlines()))


def test_logs_of_several_replicas_are_labelled(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs of all or some replicas are printed, stored or live; a missing replica does not stop the others."""
    monkeypatch.setattr(log_stream, "EVERY_S", 0.02)
    job = cli("submit", "--name", "many", "--gpus", "1", "--replicas", "3", "-o", "name").out.strip()
    cli.step(4)
    ends = [line.split()[0] for line in cli("logs", "many", "--all", "--tail", "1").out.splitlines()]
    assert ends == ["[0]", "[1]", "[2]"]
    ran = cli("logs", job, "--replica", "2", "--replica", "7", "--container", "main", "--tail", "1")
    assert (ran.code, ran.out.split()[0]) == (2, "[2/main]")
    assert ran.err.startswith("[7/main] error: the job has replicas 0 to 2, not 7")
    ran = cli("logs", "many", "--container", "side")
    assert (ran.code, ran.err) == (2, "error: container: container 'side' not found; available: main\n")
    over = Timer(0.5, lambda: cli.served.rig.plane.jobs.cancel(job, "test"))
    over.start()
    ran = cli("logs", "-f", "many", "--all", "--all-containers")
    over.join()
    assert (ran.code, ran.err) == (0, "")
    assert {line.split()[0] for line in ran.out.splitlines()} == {"[0/main]", "[1/main]", "[2/main]"}
    assert len(ran.out.splitlines()) == len(set(ran.out.splitlines()))


def test_cordon_and_drain(cli: Cli, job: str) -> None:
    """A cordon shows its reason in lists and moves nothing; a drain moves jobs; uncordon ends both."""
    node = cli("show", job, "-o", "json").body["nodes"][0]
    cluster = cli("show", job, "-o", "json").body["clusters"][0]
    assert cli("cordon", f"{cluster}/{node}", "--reason", "new driver").code == 0
    assert "new driver" in cli("cordon").out
    cli.step()
    assert "new driver" in cli("fleet", "nodes").out
    assert cli("drain", cluster).code == 0
    cli.step(6)
    assert cli("show", job, "-o", "json").body["clusters"] != [cluster]
    assert "accepts new jobs again" in cli("uncordon", cluster).out
    assert cli("uncordon", f"{cluster}/{node}").code == 0
    assert "was not cordoned" in cli("uncordon", cluster).out
    assert cli("cordon").out == "nothing is cordoned\n"
    assert cli("cordon", "nowhere").code == 1


def test_a_node_and_a_device_are_described_by_name(cli: Cli, job: str) -> None:
    """A name matches exactly, with its cluster or without; an unknown node is reported."""
    cluster, node = (cli("show", job, "-o", "json").body[kind][0] for kind in ("clusters", "nodes"))
    for name in (node, f"{cluster}/{node}"):
        described = cli("describe", "node", name, "-o", "json").body["nodes"]
        assert f"{cluster}/{node}" in [f"{each['cluster']}/{each['name']}" for each in described]
        assert {each["name"] for each in described} == {node}
    ran = cli("describe", "node", node[:-1])
    assert (ran.code, "not found" in ran.err) == (1, True)
    device = cli("fleet", "devices", "-o", "json").body["devices"][0]["uuid"]
    assert [each["uuid"] for each in cli("get", "device", device, "-o", "json").body["devices"]] == [device]


def test_nodes_and_the_map_have_the_filters_of_devices(cli: Cli) -> None:
    """A UUID, free memory and free cores select the nodes with such a device."""
    device = cli("fleet", "devices", "-o", "json").body["devices"][0]
    chosen = [f"{device['cluster']}/{device['node']}"]
    for command in ("nodes", "map"):
        assert len(cli("fleet", command, "-o", "name").out.split()) > 1
        assert cli("fleet", command, "--device", device["uuid"], "-o", "name").out.split() == chosen
        assert cli("fleet", command, "--free-memory", "9Ti", "-o", "name").out == ""
        assert cli("fleet", command, "--free-cores", "101%", "-o", "name").out == ""


def test_queues_pools_and_tenants_are_set(cli: Cli) -> None:
    """Only the given fields change; the deletion of an object in use names its users."""
    assert cli("pools", "set", "one", "--cluster", "a").out == "pool one: a\n"
    assert cli("queues", "set", "batch", "--pool", "one", "--policy", "seaway", "--shadow", "bestfit").code == 0
    assert "closed" in cli("queues", "set", "batch", "--closed").out
    queue = next(each for each in cli("queues", "-o", "json").body["queues"] if each["name"] == "batch")
    assert (queue["pool"], queue["policy"], queue["shadow"], queue["open"]) == ("one", "seaway", "bestfit", False)
    assert cli("pools", "delete", "one").code == 2
    facts = [line.split() for line in cli("describe", "pool", "one").out.splitlines()]
    assert facts == [["pool", "one"], ["clusters", "a"], ["queues", "batch"]]
    assert cli("get", "pool", "two").code == 1
    assert cli("queues", "set", "batch", "--policy", "nope").code == 2
    weights = ("--policy", "balanced", "--policy-option", "weights.price=3", "--policy-option", "weights.free=2")
    assert "policy balanced (weights.free=2, weights.price=3)" in cli("queues", "set", "batch", *weights).out
    assert "weights.price=3" in cli("queues", "set", "batch", "--description", "kept").out
    assert "weights" not in cli("queues", "set", "batch", "--policy", "utilization").out
    assert "level=cluster" in cli("queues", "set", "batch", "--policy-option", "level=cluster").out
    assert "level" not in cli("queues", "set", "batch", "--policy-option", "").out
    assert cli("queues", "set", "batch", "--policy-option", "weights.price=3").code == 2
    assert cli("queues", "set", "batch", "--policy-option", "level").code == 2
    assert cli("queues", "set", "batch", "--policy", "seaway").code == 0
    assert cli("queues", "delete", "batch").code == 0
    assert cli("pools", "delete", "one").code == 0
    assert cli("tenants", "set", "vision", "--description", "they see").code == 0
    assert "they see" in cli("tenants").out
    assert cli("tenants", "set", "vision", "--limit", "gpus=32,jobs=100", "--max-waiting", "500").code == 0
    assert cli("tenants", "set", "vision", "--user-limit", "gpus=8", "--weight", "2").code == 0
    (row,) = [line.split() for line in cli("tenants").out.splitlines() if "vision" in line]
    limits = ["32,", "100", "jobs", "0/100"]
    assert row == ["vision", "default", "0", "–", *limits, "0/500", "0.0", "–", "2", "they", "see"]
    shown = cli("get", "tenant", "vision").out
    for said in ("they see", "0/100 running, 0/500 waiting", "limit of each user", "8 gpus"):
        assert said in shown
    assert [line.split() for line in shown.splitlines() if line.startswith("gpus")] == [["gpus", "–", "–", "–", "32"]]
    assert cli("tenant", "show", "vision", "-o", "json").body["quotas"]["default"]["max_waiting"] == 500
    assert cli("get", "tenant", "unknown").code == 1
    refused = cli("tenants", "set", "vision", "--pool", "gold", "--limit", "gpus=1")
    assert "error: quotas.gold: unknown pool; available: default" in refused.err
    refused = cli("tenants", "set", "vision", "--guarantee", "gpus=64")
    assert "quotas.default.guarantee.gpus: guarantees 64 gpus, more than its limit of 32 gpus" in refused.err
    assert "--max-waiting: 'many' is not a whole number" in cli("tenants", "set", "vision", "--max-waiting", "many").err
    cleared = ("--limit", "", "--user-limit", "", "--max-waiting", "")
    assert cli("tenants", "set", "vision", *cleared).code == 0
    assert json.loads(cli("tenants", "-o", "json").out)["tenants"][-1]["quotas"] == {}
    assert cli("tenants", "delete", "vision").code == 0


def test_token_is_created_used_and_revoked(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard output has only the new token, which works until it is revoked."""
    secret = cli("token", "create", "ada", "--tenant", "other", "--expires-in", "30d").out.strip()
    token = next(each["id"] for each in cli("token", "list", "-o", "json").body["tokens"] if each["name"] == "ada")
    assert "user" in cli("get", "token", token).out
    assert cli("token", "show", token, "-o", "json").body["tenant"] == "other"
    assert "token 'unknown' not found" in cli("token", "show", "unknown").err
    monkeypatch.setenv("SEAWAY_TOKEN", secret)
    assert cli("queues", "-o", "name").out.split() == ["default", "theirs"]
    assert cli("audit").code == 3
    cli.sign_in("admin")
    assert cli("token", "revoke", token).code == 0
    monkeypatch.setenv("SEAWAY_TOKEN", secret)
    ran = cli("jobs")
    assert ran.code == 3
    assert "hint: sign in with `seaway login`" in ran.err
    assert secret not in ran.err + ran.out


def test_login_stores_a_private_profile(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """A successful login stores a profile that only its owner can read; later commands use it."""
    secret = cli.served.rig.tokens["user"]
    assert cli("login", "--name", "work", stdin="sw_x_wrong\n").code == 3
    assert not profiles_file().exists()
    ran = cli("login", "--name", "work", stdin=f"{secret}\n")
    assert (ran.code, secret in ran.out) == (0, False)
    assert profiles_file().stat().st_mode & 0o077 == 0
    monkeypatch.delenv("SEAWAY_SERVER")
    monkeypatch.delenv("SEAWAY_TOKEN")
    assert cli("queues").code == 0
    shown = cli("config", "show", "-o", "json")
    assert secret not in shown.out
    assert shown.body["settings"]["token"]["from"] == "profile work"
    assert cli("login", "--name", "other", stdin=f"{secret}\n").code == 0
    assert cli("config", "show", "-o", "json").body["profiles"] == ["other", "work"]
    assert cli("login", "--name", "../x", stdin=f"{secret}\n").code == 2


def test_what_if_changes_nothing(cli: Cli, job: str) -> None:
    """A what-if query shows values before and after, and the moved jobs."""
    before = cli("fleet", "-o", "json").body
    cluster = cli("show", job, "-o", "json").body["clusters"][0]
    ran = cli("whatif", "--drain", cluster, "--policy", "seaway")
    assert ran.code == 0, ran.err
    assert "BEFORE" in ran.out
    assert "train" in ran.out
    added = cli(
        "whatif",
        "--add-nodes",
        "a/" + cli("fleet", "nodes", "-o", "json").body["nodes"][0]["name"],
        "--count",
        "2",
        "-o",
        "json",
    )
    assert added.code == 0, added.err
    assert cli("fleet", "-o", "json").body["clusters"][0]["nodes"] == before["clusters"][0]["nodes"]
    assert cli("whatif").code == 2
    assert cli("whatif", "--add-nodes", "a").code == 2


def test_whatif_applies_the_moves_of_its_answer(cli: Cli, job: str) -> None:
    """`--apply` drains and restarts jobs on the nodes of the answer, in one call that the audit log has."""
    cluster = cli("show", job, "-o", "json").body["clusters"][0]
    ran = cli("whatif", "--drain", cluster, "--apply", "--yes", "-o", "json")
    assert ran.code == 0, ran.err
    (move,) = ran.body["moves"]
    assert (move["job"], move["attempt"]) == (job, 1)
    assert "jobs moved: 1, stopped: 0" in ran.err
    shown = cli("show", job, "-o", "json").body
    assert shown["message"] == f"moved to {move['to'][0]} by admin; attempt 1 is being removed from {cluster}"
    assert cli("cordon", "-o", "json").body["cordons"][0]["reason"] == "after a what-if question"
    entry = next(each for each in cli("audit", "-o", "json").body["entries"] if each["verb"] == "POST move_jobs")
    assert (entry["target"], entry["status"]) == (f"1 jobs, {cluster}", 200)
    assert "no running job moves" in cli("whatif", "--replay", "--apply", "--yes").err
    assert "works with --drain" in cli("whatif", "--queue", "new", "--apply").err


def test_whatif_tries_queues_and_quotas(cli: Cli, tmp_path: Path) -> None:
    """Options and files change queues and tenants on the copy only, and the table has the waits of both sides."""
    assert cli("queues", "set", "vision", "--limit", "gpus=1,cpu=64").code == 0
    for at in range(3):
        fields = ("--queue", "vision", "--gpus", "1", "--expected-duration", "30m")
        assert cli("submit", "--name", f"train-{at}", *fields, "--detach").code == 0
    cli.step(3)
    for kind, name in (("queue", "visoin"), ("tenant", "other-team")):
        typo = cli("whatif", f"--{kind}", name, "--set", "weight=3")
        assert (typo.code, typo.err.startswith(f"error: --{kind}: unknown {kind} '{name}'; available: ")) == (2, True)
    assert cli("whatif", "--queue", "fresh", "--set", "weight=3", "--move", "vision=fresh").code == 0
    ran = cli("whatif", "--queue", "vision", "--set", "limit.gpus=2", "--set", "weight=2")
    assert ran.code == 0, ran.err
    for text in ("MEAN WAIT", "44m58s → 14m59s", "GPU SHARE", "TENANT", "would start"):
        assert text in ran.out, ran.out
    by_option = cli("whatif", "--queue", "vision", "--set", "limit=gpus=2,cpu=64", "-o", "json").body["waits"]
    assert (
        by_option["queues"]
        == cli("whatif", "--queue", "vision", "--set", "limit.gpus=2", "-o", "json").body["waits"]["queues"]
    )
    file = tmp_path / "queues.yaml"
    exported = yaml.safe_load(cli("queues", "-o", "yaml").out)
    exported["queues"] = [{**each, "limit": {"gpus": 2, "cpu": 64}} for each in exported["queues"]]
    file.write_text(yaml.safe_dump(exported))
    assert cli("whatif", "-f", str(file), "-o", "json").body["waits"]["queues"] == by_option["queues"]
    tenant = cli("whatif", "--tenant", "default", "--set", "weight=2", "--set", "limit.jobs=9", "-o", "json")
    assert tenant.body["waits"]["earlier"] == 0
    move = ("--queue", "new", "--move", "vision/default=new", "--remove-queue", "vision", "--window", "2h")
    moved = cli("whatif", *move, "-o", "json").body["waits"]
    assert (moved["window"], moved["earlier"]) == ("2h", 2)
    assert cli("queues", "show", "vision", "-o", "json").body["limit"] == {"cpu": 64, "gpus": 1}
    for arguments, said in (
        (("--set", "weight=2"), "--set: needs --queue or --tenant"),
        (("--queue", "vision"), "--set: name what changes in queue 'vision'"),
        (("--queue", "vision", "--set", "weight"), "use FIELD=VALUE"),
        (("--queue", "vision", "--set", "weight=-1"), "--set weight: must be at least 0"),
        (("--queue", "vision", "--set", "weights=2"), "did you mean 'weight'"),
        (("--queue", "vision", "--tenant", "default", "--set", "weight=2"), "change both with -f FILE"),
        (("--move", "vision"), "use QUEUE=QUEUE or QUEUE/TENANT=QUEUE"),
        (("--remove-queue", "vision"), "move them to another queue"),
        (("--drain", "a", "--window", "0"), "window: must be at least 1s"),
    ):
        ran = cli("whatif", *arguments)
        assert ran.code == 2, arguments
        assert said in ran.err, arguments
    file.write_text("queues: []\nquotas: []\n")
    assert "unknown part 'quotas'" in cli("whatif", "-f", str(file)).err


def test_whatif_replays_traces(cli: Cli, tmp_path: Path) -> None:
    """A log, a table without device memory, and the past jobs are replayed on the fleet with its queues."""
    log, table = tmp_path / "log.swf", tmp_path / "jobs.csv"
    line = "{} {} -1 60 {} -1 -1 {} 60 -1 1 {} -1 -1 -1 -1 -1 -1\n"
    log.write_text("".join(line.format(at, at, 4, 4, at % 2) for at in range(1, 7)))
    ran = cli("whatif", "--swf", str(log), "--add-nodes", "a/node-0", "--count", "2")
    assert ran.code == 0, ran.err
    for text in ("replay: 6 jobs over 5s", "placed by bestfit", "mean wait", "NOT STARTED", "user-1", "default"):
        assert text in ran.out, ran.out
    head = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time,qos\n"
    table.write_text(head + "".join(f"j{at},1000,1024,1,500,{10 + at},{70 + at},LS\n" for at in range(20)))
    found = cli("whatif", "--trace", str(table), "-o", "json").body["trace"]
    assert (found["jobs"], found["before"]["placed"], found["before"]["queue_wait_mean_s"]) == (
        20,
        20,
        pytest.approx(8.8),
    )
    assert found["before"]["gpu_allocated_pct"] > 0
    cli("submit", "--name", "short", "--gpus", "1", "--expected-duration", "10s", "--detach")
    cli.step(20)
    found = cli("whatif", "--last", "1d", "--tenant", "default", "--set", "weight=2", "-o", "json").body["trace"]
    assert (found["jobs"], found["skipped"]) == (1, 0)
    table.write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\nj,1,1,1,500\n")
    for arguments, said in (
        (("--trace", str(table)), "has no times"),
        (("--trace", str(tmp_path / "none.csv")), "none.csv"),
        (("--swf", str(log), "--last", "1d"), "choose one of --trace, --swf and --last"),
        (("--last", "soon"), "last"),
    ):
        ran = cli("whatif", *arguments)
        assert ran.code == 2, arguments
        assert said in ran.err, arguments


def test_unreachable_server_exits_with_4(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the URL."""
    monkeypatch.setattr("seaway.cli.remote.PATIENCE_S", 0.0)
    ran = cli("--server", "http://127.0.0.1:1", "jobs")
    assert ran.code == 4
    assert "http://127.0.0.1:1 cannot be reached" in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.usefixtures("job")
def test_watch_refreshes_until_ctrl_c(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends `--watch` without an error."""
    from seaway.cli.jobs import list as jobs

    looks: list[float] = []

    def pause(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(jobs.keep_showing, "__defaults__", (pause,))
    assert cli("jobs", "--watch").code == 0
    assert len(looks) == 3


COMPLETED = {
    "seaway show tr": ["train"],
    "seaway cordon ": ["a", "b"],
    "seaway submit -q th": ["theirs"],
    "seaway queue set x --policy seaw": ["seaway"],
    "seaway fleet nodes --cluster ": ["a", "b"],
    "seaway reprio": ["reprioritize"],
}


@pytest.mark.usefixtures("job")
def test_shell_completes_names_from_the_server(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs, clusters, queues and policies come from the server, commands from the program."""
    monkeypatch.setenv("_SEAWAY_COMPLETE", "complete_bash")
    for line, offered in COMPLETED.items():
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        assert cli().out.split() == offered


def test_completion_is_unreachable_without_a_server(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shell completion never prints errors."""
    monkeypatch.setattr("seaway.cli.remote.PATIENCE_S", 0.0)
    monkeypatch.setenv("SEAWAY_SERVER", "http://127.0.0.1:1")
    monkeypatch.setenv("_SEAWAY_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "seaway show ")
    monkeypatch.setenv("COMP_CWORD", "2")
    ran = cli()
    assert (ran.out.strip(), ran.err) == ("", "")


def test_names_with_brackets_are_printed_unchanged(cli: Cli, job: str) -> None:
    """User-defined names are never markup."""
    cli("suspend", job, "--reason", "[red]not [bold]markup[/bold]")
    assert "[red]not [bold]markup[/bold]" in cli("events", "train").out
    assert "[red]not [bold]markup[/bold]" in cli("jobs").out


def test_every_command_has_help_and_an_example(cli: Cli) -> None:
    """Groups have a description too."""
    for command in COMMANDS:
        ran = cli(command.name, "--help")
        assert ran.code == 0
        text = ran.out.replace("Usage: seaway", "")
        if command.module not in {"", "admin.db", "serving.simulate"}:
            assert f"seaway {command.name}" in text or f"{command.name} --" in text, command.name


def test_trained_policy_import_and_export(cli: Cli, tmp_path: Path) -> None:
    """A trained policy is imported, listed with its author, exported unchanged and removed."""
    file, back = tmp_path / "best.policy", tmp_path / "back.policy"
    write_policy(file, cluster_policy("mine"))
    assert cli("policies", "import", str(file), "--remote").code == 0
    assert "mine" in cli("policies", "--remote", "-o", "name").out.split()
    shown = cli("policies", "show", "mine", "--remote", "-o", "json").body
    assert shown["trained"]["imported_by"]
    assert cli("policies", "export", "mine", str(back), "--remote").code == 0
    assert back.read_bytes() == file.read_bytes()
    assert cli("policies", "activate", "greedy", "--queue", "default").out == (
        "policy greedy decides for queue default now\n"
    )
    assert cli("policies", "rm", "mine", "--remote").code == 0
    assert cli("policies", "rm", "mine", "--remote").code == 1


QUEUE_FILE = """
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: leaf}
spec:
  cohort: branch
  resourceGroups:
  - coveredResources: [nvidia.com/gpu, pods]
    flavors: [{name: any, resources: [{name: nvidia.com/gpu, nominalQuota: 2}, {name: pods, nominalQuota: 9}]}]
"""


def test_queues_are_imported_with_a_report(cli: Cli, tmp_path: Path) -> None:
    """A dry run changes nothing; the import sets parents first, reports what is left out, and keeps other settings."""
    file = tmp_path / "kueue.yaml"
    file.write_text(QUEUE_FILE)
    assert cli("queues", "set", "leaf", "--description", "mine").code == 0
    tried = cli("queues", "import", str(file), "--dry-run")
    assert (tried.code, "2 queues can be imported; nothing is changed" in tried.out) == (0, True)
    assert "queues do not count this resource" in tried.out
    assert cli("queues", "-o", "name").out.split() == ["default", "leaf", "theirs"]
    done = cli("queues", "import", str(file))
    assert done.out.splitlines()[-2:] == ["queue branch is made", "queue leaf is changed"]
    shown = cli("queues", "show", "leaf", "-o", "json").body
    assert (shown["parent"], shown["guarantee"], shown["description"]) == ("branch", {"gpus": 2}, "mine")
    assert cli("queues", "show", "branch", "-o", "json").body["totals"]["guarantee"] == {"gpus": 2}
    assert "leaf" in cli("queues", "show", "branch").out


def test_an_import_that_would_not_fit_changes_nothing(cli: Cli, tmp_path: Path) -> None:
    """The tree is checked with the queues of the server before the first change."""
    file = tmp_path / "queues.yaml"
    assert cli("queues", "set", "all", "--guarantee", "gpus=3").code == 0
    file.write_text("queues: [{name: ok}, {name: large, parent: all, guaranteedCapacity: 4}]")
    failed = cli("queues", "import", str(file))
    assert (failed.code, "guarantees 3 gpus, but its children guarantee 4 gpus together" in failed.err) == (2, True)
    file.write_text("queues: [{name: ok}, {name: narrow, maxCapacity: 2, guaranteedCapacity: 4}]")
    failed = cli("queues", "import", str(file))
    assert (failed.code, "queue narrow: " in failed.err) == (2, True)
    assert cli("queues", "-o", "name").out.split() == ["all", "default", "theirs"]
