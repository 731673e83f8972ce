"""Fixtures for every test: the shared data folder, reproducible runs, and locks between processes."""

import gc
import os
import signal
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

import pytest
from hypothesis import settings

from tests.missing import need_programs
from tests.order import FairLock, sort_key

TESTS = Path(__file__).resolve().parent
SHARED = Path(__file__).resolve().parents[2] / "shared"

# same examples on every machine and in every run; `--hypothesis-profile=explore` searches for new ones
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile("ci")

# the certificates of this machine take 25 ms of each client, command and server; tests that use TLS have their own
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = "/var/empty"

LOCKS = "SEAWAY_TEST_LOCKS"
"""Environment variable with the folder of locks for the processes of a run."""

LOCK = pytest.StashKey[FairLock]()


def pytest_configure(config: pytest.Config) -> None:
    """Create the locks if several processes run tests.

    A run in the background of a shell ignores SIGINT, and its children would, too. Tests interrupt some of them.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(config, "workerinput"):
        config.stash[LOCK] = FairLock(Path(os.environ.pop(LOCKS)))  # a run that a test starts has its own locks
    elif config.getoption("numprocesses", None):
        folder = mkdtemp(prefix="seaway-turns-")
        os.environ[LOCKS] = folder
        config.add_cleanup(lambda: rmtree(folder))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """If several processes run tests, sort the longest files first, and those with quiet tests last."""
    if LOCK in config.stash:
        quiet = {item.path for item in items if _quiet(item)}
        items.sort(key=lambda item: sort_key(str(item.path).removeprefix(f"{TESTS}/"), quiet=item.path in quiet))


def pytest_collection_finish() -> None:
    """Leave modules and collected tests out of garbage collections, which take a tenth of the time otherwise."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Wait for the lock."""
    rounds = item.config.stash.get(LOCK, None)
    with rounds.taken(alone=_quiet(item)) if rounds else nullcontext():
        return (yield)


def _quiet(item: pytest.Item) -> bool:
    return item.get_closest_marker("quiet") is not None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test with the marker ``shared`` without the folder, or ``programs`` without one of them."""
    for marker in item.iter_markers("programs"):
        need_programs(*marker.args)
    if item.get_closest_marker("shared") and not SHARED.is_dir():
        pytest.skip("needs ../shared (benchmark data), which is absent here")


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of shared benchmark data; only for tests with the marker ``shared``."""
    return SHARED
