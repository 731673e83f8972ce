import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from seaway import __version__
from seaway.cli import INTERRUPTED
from seaway.cli.errors import naming
from seaway.cli.jobs import submit
from seaway.cli.jobs.file import Written
from seaway.cli.main import main
from seaway.scheduling.policies.registry import policy_names
from seaway.scheduling.registry import plugin_names

SAYS = (
    sys.executable,
    "-c",
    "import sys; from seaway.cli.main import main\n"
    "try: main(['--version'])\n"
    "except SystemExit: print('\\u2588 2 up \\u8bad\\u7ec3', flush=True), print('\\u2013', file=sys.stderr)",
)
"""Says on both streams, as the command line has set them, what ASCII has not."""

PLAIN = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
"""Has Python take the terminal's encoding to be ASCII."""


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run the command line, which has to succeed, and return what it prints."""
    with pytest.raises(SystemExit) as done:
        main(arguments)
    assert not done.value.code
    return capsys.readouterr().out


def test_the_version_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    """--version says which version runs."""
    assert output(capsys, "--version") == f"seaway {__version__}\n"


def test_every_policy_and_plugin_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """`seaway policy` lists every name that --policy takes, and every plugin for profile files."""
    words = output(capsys, "policies").replace(",", " ").split()
    assert {*policy_names(), *plugin_names()} <= set(words)


def test_help_teaches_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    """Anyone who asks for help sees commands to copy."""
    assert "seaway replay --nodes nodes.csv --jobs jobs.csv" in output(capsys, "replay", "--help")


@pytest.mark.slow
def test_the_package_runs_as_a_module_and_without_loading_the_engine_for_help() -> None:
    """`python -m seaway --help` answers at once: what is slow to import waits until it is needed."""
    code = (
        "import sys; from seaway.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: print([m for m in ('numba', 'matplotlib', 'highspy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    module = subprocess.run([sys.executable, "-m", "seaway", "--version"], capture_output=True, text=True, check=True)
    assert module.stdout == f"seaway {__version__}\n"


@pytest.mark.slow
def test_a_terminal_without_the_marks_of_tables_shows_others() -> None:
    """Where the encoding is ASCII, what it has not is a `?`, on both streams, and no command breaks off."""
    reader, terminal = os.openpty()
    try:
        subprocess.run(SAYS, stdout=terminal, stderr=terminal, check=True, env={**os.environ, **PLAIN})
        said = os.read(reader, 10_000).decode("ascii").splitlines()
    finally:
        os.close(terminal)
        os.close(reader)
    assert said[-2:] == ["? 2 up ??", "?"]


@pytest.mark.slow
@pytest.mark.parametrize("encoding", [PLAIN, {"PYTHONIOENCODING": "latin-1"}, {"PYTHONIOENCODING": "gbk"}])
def test_what_is_written_to_a_file_is_whole(encoding: dict[str, str], tmp_path: Path) -> None:
    """Data is UTF-8 there, with every mark, whatever the terminal's encoding; no `?` is in place of a name."""
    file = tmp_path / "said"
    with file.open("wb") as opened:
        done = subprocess.run(SAYS, stdout=opened, stderr=subprocess.PIPE, check=True, env={**os.environ, **encoding})
    assert file.read_text(encoding="utf-8").splitlines()[-1] == "\u2588 2 up \u8bad\u7ec3"
    assert done.stderr.decode("utf-8") == "\u2013\n"


UNWRITABLE = (
    sys.executable,
    "-c",
    "import sys; from seaway.cli import main; from seaway.cli.jobs.submit import print_stored\n"
    "class App:\n"
    "    def __call__(self, **_): print_stored([{'name': 'train', 'id': '6dq'}] * 12)\n"
    "main.run(main.make_app() if sys.argv[1:] else App(), sys.argv[1:], 'seaway')",
)
"""Runs a command line, or without one prints what a submit stored."""


@pytest.mark.parametrize(
    ("arguments", "stored"),
    [(("--help",), ""), (("policy", "--help"), ""), ((), f"; stored: {', '.join(['train (6dq)'] * 10)}, and 2 more")],
)
def test_an_output_that_takes_no_more_is_an_error_of_one_line(arguments: tuple[str, ...], stored: str) -> None:
    """On a full disk the command says so once, exits with 1, and names what was stored."""
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*UNWRITABLE, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, f"error: cannot write the output: No space left on device{stored}\n")


CHANGES = (
    sys.executable,
    "-c",
    "import sys; import typer; from seaway.cli import main; from seaway.cli.errors import CHANGES\n"
    "app = typer.Typer()\n"
    "@app.command()\n"
    "def change(): CHANGES.extend(sys.argv[1:]); typer.echo('queue q is made')\n"
    "main.run(app, [], 'seaway')",
)
"""Runs a command that prints a line, after the changes that its arguments name."""


@pytest.mark.parametrize("why", ["No space left on device", "Broken pipe"])
def test_an_output_that_takes_no_more_names_the_changes_of_the_server(why: str) -> None:
    """A change that the server has made counts, though its line could not be written."""
    reader, pipe = os.pipe()
    os.close(reader)
    output = os.open("/dev/full", os.O_WRONLY) if why.startswith("No") else pipe
    command = [*CHANGES, "PUT /queues/q"]
    done = subprocess.run(command, stdout=output, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        1,
        f"error: cannot write the output: {why}; the server has done: PUT /queues/q\n",
    )


def test_a_submit_whose_preview_cannot_be_written_says_that_nothing_is_stored() -> None:
    """A reader such as ``head -1`` leaves before the job is sent, and expects it to be stored."""
    code = (
        "from seaway.cli import main; from seaway.cli.errors import naming; from seaway.cli.output import console\n"
        "class App:\n"
        "    def __call__(self, **_):\n"
        "        with naming([]): console().print('train: 29 of 29 nodes fit')\n"
        "main.run(App(), [], 'seaway')"
    )
    reader, pipe = os.pipe()
    os.close(reader)
    done = subprocess.run([sys.executable, "-c", code], stdout=pipe, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "error: cannot write the output: Broken pipe; stored: nothing\n")


def test_a_reader_that_leaves_is_no_error_to_report() -> None:
    """A command such as ``seaway jobs | head -1`` that has changed nothing ends without a line."""
    reader, pipe = os.pipe()
    os.close(reader)
    done = subprocess.run(CHANGES, stdout=pipe, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")


def test_a_closed_output_is_discarded() -> None:
    """With ``>&-`` a command does its work without a traceback."""
    command = f"exec {sys.executable} -m seaway --version >&-"
    done = subprocess.run(["/bin/sh", "-c", command], stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c_names_what_was_stored(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A command that is interrupted while it stores many things names those that are stored, and exits with 130."""
    answers: list[dict[str, Any]] = [{"jobs": [{"name": f"j{at}", "id": f"id{at}"} for at in range(1000)]}]

    def answered(*_: object) -> dict[str, Any]:
        if not answers:
            raise KeyboardInterrupt
        return answers.pop()

    monkeypatch.setattr(submit, "_placed", answered)
    jobs = [Written({"name": f"j{at}"}) for at in range(1500)]
    with pytest.raises(typer.Exit) as ended:
        submit.send(None, jobs, "")  # type: ignore[arg-type]  # nothing is sent
    assert ended.value.exit_code == INTERRUPTED
    said = capsys.readouterr().err
    assert said.startswith("\ninterrupted; stored: j0 (id0), j1 (id1)")
    assert "and 990 more. The request on its way may be stored, too" in said
    with pytest.raises(typer.Exit), naming(["batch"]):
        raise KeyboardInterrupt
    assert capsys.readouterr().err == "\ninterrupted; stored: batch\n"
