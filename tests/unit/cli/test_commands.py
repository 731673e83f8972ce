import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from seaway.cli import INTERRUPTED
from seaway.cli.admin.config import masked
from seaway.cli.arguments import moment
from seaway.cli.errors import BAD_INPUT, FAILED, NOT_ALLOWED, UNAVAILABLE, code_of
from seaway.cli.groups import GROUPS
from seaway.cli.main import COMMANDS, main
from seaway.client import errors
from seaway.domain.errors import RejectedError, SeawayError

SLOW = (
    "numpy",
    "numba",
    "matplotlib",
    "highspy",
    "fastapi",
    "sqlalchemy",
    "seaway.wire",
    "seaway.domain.job",
    "pydantic",
    "httpx._main",
)


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Run a command without a server; return its exit code, and what it prints without frames and line breaks."""
    with pytest.raises(SystemExit) as done:
        main(arguments)
    said = capsys.readouterr()
    return int(done.value.code or 0), " ".join((said.out + said.err).replace("│", " ").split())


@pytest.fixture(autouse=True)
def _no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("SERVER", "PROFILE"):
        monkeypatch.delenv(f"SEAWAY_{variable}", raising=False)
    monkeypatch.setenv("SEAWAY_DATA", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("ps", "ps"),
        ("ls", "ls"),
        ("get jobs", "jobs"),
        ("help jobs", "jobs"),
        ("job list", "job list"),
        ("job ls", "job ls"),
        ("describe", "describe"),
        ("describe job x", "show"),
        ("rm", "rm"),
        ("job rm", "job rm"),
        ("status", "status"),
        ("whoami", "whoami"),
        ("wait", "wait"),
        ("queues", "queues"),
        ("queue show", "queue show"),
        ("queues show", "queues show"),
        ("get queue x", "queue show"),
        ("get nodes", "fleet nodes"),
        ("describe node n1", "fleet nodes"),
        ("describe node a/n1", "fleet nodes"),
        ("get device GPU-1", "fleet devices"),
        ("describe pool p", "pool show"),
        ("describe tenant t", "tenant show"),
        ("get token 1a2b", "token show"),
        ("get clusters", "fleet"),
        ("get cluster x", "cluster show"),
        ("get links", "links"),
        ("policies rm", "policies rm"),
        ("cluster cordon", "cluster cordon"),
        ("cordon", "cordon"),
        ("cluster orphans delete", "cluster orphans delete"),
        ("network links", "network links"),
        ("token revoke", "token revoke"),
    ],
)
def test_commands_have_the_names_that_people_type(capsys: pytest.CaptureFixture[str], typed: str, found: str) -> None:
    """A command is found by its name, as part of its group, by its usual aliases, and by a kind after `get`."""
    code, said = ran(capsys, *typed.split(), "--help")
    assert code == 0
    assert f"Usage: seaway {found} " in said


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("kill x", "seaway cancel"),
        ("sbatch job.sh", "seaway submit"),
        ("squeue", "seaway jobs --waiting"),
        ("usage", "seaway history"),
        ("nodes", "seaway fleet nodes"),
        ("submt", "seaway submit"),
        ("queue sett", "seaway queue set"),
        ("polices", "seaway policy"),
        ("xyzzy", "seaway --help"),
    ],
)
def test_unknown_commands_get_a_hint(capsys: pytest.CaptureFixture[str], typed: str, hint: str) -> None:
    """The error for an unknown command names the likely one: a similar name, or ours for another tool's."""
    code, said = ran(capsys, *typed.split())
    assert code == BAD_INPUT
    assert f"`{hint}`" in said


@pytest.mark.parametrize(
    ("typed", "error"),
    [
        ("jobs --output xml", "Invalid value for '--output' / '-o': 'xml' is not one of 'table'"),
        ("whatif --count two", "Invalid value for '--count': must be a whole number"),
        ("whatif --count 0", "Invalid value for '--count': must be greater than or equal to 1"),
        ("cluster set east --price 2", "No such option: --price (Possible options: --price-per-gpu-hour)"),
    ],
)
def test_errors_of_options_are_plain(capsys: pytest.CaptureFixture[str], typed: str, error: str) -> None:
    """They say what is wrong with the value, and name the options that begin like an unknown one."""
    code, said = ran(capsys, *typed.split())
    assert code == BAD_INPUT
    assert error in said


def test_the_help_is_short(capsys: pytest.CaptureFixture[str]) -> None:
    """The help lists everyday commands and groups; each other command is in the help of its group."""
    _, said = ran(capsys, "--help")
    listed = [each for each in COMMANDS if each.panel]
    assert len(listed) <= 41
    assert all(f" {each.name} " in said and each.summary in said for each in listed)
    groups = {each.name for each in COMMANDS if each.panel == GROUPS}
    for each in COMMANDS:
        assert each.panel or each.group.partition(" ")[0] in groups


def test_without_a_server_the_client_asks_for_one(capsys: pytest.CaptureFixture[str]) -> None:
    """No address is guessed: the error says how to start or set a server, and the settings show that there is none."""
    code, said = ran(capsys, "jobs")
    assert (code, "no server" in said, "seaway up" in said, "8080" in said) == (UNAVAILABLE, True, True, False)
    assert "server –" in ran(capsys, "config", "show")[1]


def test_an_interrupt_ends_a_command_with_a_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C prints a line and no traceback; the exit code is that of shells."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("seaway.cli.jobs.list.connect", interrupt)
    assert ran(capsys, "jobs") == (INTERRUPTED, "interrupted")


@pytest.mark.slow
@pytest.mark.parametrize("module", ["typer", "seaway.cli.jobs.list"])
def test_an_interrupt_before_a_command_runs_is_silent(module: str) -> None:
    """Ctrl-C while modules are imported prints no traceback; the exit code is that of shells."""
    code = (
        "import os, signal, sys\n"
        "class Interrupts:\n"
        "    def find_spec(name, *_):\n"
        f"        if name == {module!r}: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupts)\n"
        "sys.argv[1:] = ['jobs']\n"
        "from seaway.__main__ import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (INTERRUPTED, "", "")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.RejectedError("x"), BAD_INPUT),
        (errors.ConflictError("x"), BAD_INPUT),
        (errors.UnknownError("x"), FAILED),
        (errors.WaitedTooLongError("x"), FAILED),
        (errors.UnauthenticatedError("x"), NOT_ALLOWED),
        (errors.ForbiddenError("x"), NOT_ALLOWED),
        (errors.UnavailableError("x"), UNAVAILABLE),
        (errors.AnswerError("x"), UNAVAILABLE),
    ],
)
def test_exit_codes_say_what_kind_of_error_it_was(error: SeawayError, code: int) -> None:
    """Scripts can tell wrong input, missing leave and a missing server apart."""
    assert code_of(error) == code


def test_a_token_is_masked() -> None:
    """Of our own tokens the part that names them is shown; of others nothing."""
    assert masked("sw_1a2b_secret") == "sw_1a2b_…"
    assert masked("eyJhbGciOi.x.y") == "set, not shown"
    assert masked("") == ""


@pytest.mark.slow
def test_settings_are_read_without_the_control_plane() -> None:
    """An agent reads them too: they bring neither an event loop nor encryption into its memory."""
    code = "import sys, seaway.bootstrap.settings; print([name for name in ('asyncio', 'ssl') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.slow
def test_remote_commands_import_nothing_slow() -> None:
    """A command that asks the server needs neither the engine nor the models of messages."""
    code = (
        "import sys; from seaway.cli.main import main\n"
        "try: main(['--server', 'http://127.0.0.1:1', 'jobs'])\n"
        f"except SystemExit as end: print(end.code, [name for name in {SLOW!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "4 []"


@pytest.mark.parametrize(
    ("text", "age_s"),
    [("90", 90), ("1h", 3600), ("2d", 172_800), ("1h30m", 5400), ("2026-11-21T10:00:00Z", None), ("2026-11-21", None)],
)
def test_times_are_ages_dates_or_timestamps(text: str, age_s: int | None) -> None:
    """An age counts back from now, and a time without a zone is in that of this machine; the result has a zone."""
    found = datetime.fromisoformat(moment(text, "--since"))
    assert found.tzinfo is not None
    if age_s is not None:
        assert abs((datetime.now(UTC) - found).total_seconds() - age_s) < 60
    else:
        given = datetime.fromisoformat(text)
        assert found == (given if given.tzinfo else given.astimezone())


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "1 fortnight", "-1h", "9" * 30 + "h"])
def test_other_times_are_rejected(text: str) -> None:
    """The error names the option and the forms."""
    with pytest.raises(RejectedError, match=r"--since: .* is not a time; use an age like 1h"):
        moment(text, "--since")
