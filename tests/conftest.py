"""What every test may use: the shared data folder, runs that can be repeated, and turns where several run at once."""

import os
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

import pytest
from hypothesis import settings

from tests.missing import need_programs
from tests.turns import Turns, in_turn

TESTS = Path(__file__).resolve().parent
SHARED = Path(__file__).resolve().parents[2] / "shared"

# The same examples on every machine and in every run; `--hypothesis-profile=explore` looks for new ones.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile("ci")

LOCKS = "SEAWAY_TEST_LOCKS"
"""Variable by which the processes of a run know where their locks are."""

TURNS = pytest.StashKey[Turns]()


def pytest_configure(config: pytest.Config) -> None:
    """Where several processes run tests, agree on locks."""
    if hasattr(config, "workerinput"):
        config.stash[TURNS] = Turns(Path(os.environ.pop(LOCKS)))  # a run that a test starts has turns of its own
    elif config.getoption("numprocesses", None):
        folder = mkdtemp(prefix="seaway-turns-")
        os.environ[LOCKS] = folder
        config.add_cleanup(lambda: rmtree(folder))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where several processes run tests, have the longest begin first and the quiet end."""
    if TURNS in config.stash:
        items.sort(key=lambda item: in_turn(str(item.path).removeprefix(f"{TESTS}/"), quiet=_quiet(item)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Wait for a turn."""
    turns = item.config.stash.get(TURNS, None)
    with turns.taken(alone=_quiet(item)) if turns else nullcontext():
        return (yield)


def _quiet(item: pytest.Item) -> bool:
    return item.get_closest_marker("quiet") is not None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test with the marker ``shared`` where the folder is absent, with ``programs`` where one of them is."""
    for marker in item.iter_markers("programs"):
        need_programs(*marker.args)
    if item.get_closest_marker("shared") and not SHARED.is_dir():
        pytest.skip("needs ../shared (benchmark data), which is absent here")


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of shared benchmark data; only for tests with the marker ``shared``."""
    return SHARED
