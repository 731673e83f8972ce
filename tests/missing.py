"""Skipping of tests whose requirements this machine lacks."""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest


def need_programs(*names: str) -> None:
    """Require programs of Debian's Prometheus package for a test."""
    for name in names:
        if shutil.which(name) is None:
            skip_or_fail(FileNotFoundError(f"there is no {name}: apt-get install prometheus"))


def skip_or_fail(missing: Exception) -> NoReturn:
    """Skip a test that cannot run here; in CI, which must run every test, fail it."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI has to run this test: {missing}", pytrace=False)
    pytest.skip(str(missing))
