import subprocess
import sys

import pytest

from seaway.cli.admin.config import masked
from seaway.cli.errors import BAD_INPUT, FAILED, NOT_ALLOWED, UNAVAILABLE, code_of
from seaway.cli.main import COMMANDS, wanted
from seaway.client import errors
from seaway.domain.errors import SeawayError

SLOW = ("numpy", "numba", "matplotlib", "highspy", "fastapi", "sqlalchemy", "seaway.wire", "httpx._main")


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        (["jobs", "-o", "json"], "jobs"),
        (["--server", "replay", "jobs"], "jobs"),
        (["--profile=x", "explain", "jobs"], "explain"),
        (["--server", "x", "--profile", "y", "show"], "show"),
    ],
)
def test_only_the_command_that_is_asked_for_is_imported(typed: list[str], name: str) -> None:
    """The command is what comes after the options before it and their values."""
    assert [each.name for each in wanted(typed)] == [name]


@pytest.mark.parametrize("typed", [[], ["--help"], ["jbos"], ["--version"], ["--server"]])
def test_all_commands_are_there_where_none_is_clear(typed: list[str]) -> None:
    """Help, completion and slips know all commands."""
    assert wanted(typed) == COMMANDS


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
