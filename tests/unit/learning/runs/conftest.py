"""Anything that tests of training share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.learning.runs.small import write_instance


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """Write an instance of three clusters and ten jobs, of which not all fit; return its folder."""
    return write_instance(tmp_path / "toy", jobs=10)
