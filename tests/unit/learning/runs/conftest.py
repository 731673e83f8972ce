"""Fixtures of tests of runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.learning.runs.small import write_instance


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """Return the folder of an instance with three clusters and ten jobs, not all of which fit."""
    return write_instance(tmp_path / "toy", jobs=10)
