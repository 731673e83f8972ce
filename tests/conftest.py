"""What every test may use: the shared data folder, and runs that can be repeated."""

from pathlib import Path

import pytest
from hypothesis import settings

SHARED = Path(__file__).resolve().parents[2] / "shared"

# The same examples on every machine and in every run; `--hypothesis-profile=explore` looks for new ones.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile("ci")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test with the marker ``shared`` where the folder is absent."""
    if item.get_closest_marker("shared") and not SHARED.is_dir():
        pytest.skip("needs ../shared (benchmark data), which is absent here")


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of shared benchmark data; only for tests with the marker ``shared``."""
    return SHARED
