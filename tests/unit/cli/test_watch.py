"""A user who watches a run is reported the truth about its end."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from seaway.cli.learning.watch import Ended, RunWatch, ended_by_signals
from seaway.learning.training.listener import Plan


@pytest.mark.parametrize(
    ("exporting", "says"), [(False, "stopping after this episode"), (True, "writes its policy file")]
)
def test_a_signal_is_answered_by_cause_it_does(exporting: bool, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    """No episode ends, and there is nothing to go on with, once the policy file is being written."""
    ended = Ended()
    with ended_by_signals(ended), RunWatch(ended) as watch:
        watch.doing("reading instances")
        watch.begins(Plan(Path("run"), "ppo", 1))
        if exporting:
            watch.doing("writing the policy file")
        os.kill(os.getpid(), signal.SIGTERM)
    assert says in capsys.readouterr().err
