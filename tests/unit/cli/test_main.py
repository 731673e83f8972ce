import os
import subprocess
import sys

import pytest

from seaway import __version__
from seaway.cli.main import main
from seaway.scheduling.policies import policy_names
from seaway.scheduling.registry import plugin_names


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run the command line, which has to end well, and return what it prints."""
    with pytest.raises(SystemExit) as done:
        main(arguments)
    assert not done.value.code
    return capsys.readouterr().out


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """--version says which version runs."""
    assert output(capsys, "--version") == f"seaway {__version__}\n"


def test_every_policy_and_plugin_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """`seaway policies` lists every name that --policy takes, and every plugin for profile files."""
    words = output(capsys, "policies").replace(",", " ").split()
    assert {*policy_names(), *plugin_names()} <= set(words)


def test_help_teaches_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever asks for help sees commands to copy."""
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
    code = (
        "import sys; from seaway.cli.main import main\n"
        "try: main(['--version'])\n"
        "except SystemExit: print('\\u2588 2 up \\u00b7'), print('\\u2013', file=sys.stderr)"
    )
    plain = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=plain)
    assert (done.stdout.splitlines()[-1], done.stderr) == ("? 2 up ?", "?\n")
