"""What a test needs and this machine does not have."""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest


def need_programs(*names: str) -> None:
    """Let a test run only where programs are that Debian's package of Prometheus brings."""
    for name in names:
        if shutil.which(name) is None:
            skip_or_fail(FileNotFoundError(f"there is no {name}: apt-get install prometheus"))


def skip_or_fail(missing: Exception) -> NoReturn:
    """Skip a test that cannot run here; in CI, which has to run every test, let it fail."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI has to run this test: {missing}", pytrace=False)
    pytest.skip(str(missing))
