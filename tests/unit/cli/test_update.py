from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from seaway.cli.jobs.update import KEEPS_RUNNING, PLACED, differences, patch_of, picture
from seaway.domain import job_spec
from seaway.domain.errors import RejectedError
from seaway.domain.job_state import PLACED as PLACED_STATES
from seaway.wire.job_in import JobIn

SPEC = {"name": "train", "priority": 0, "resources": {"gpus": 1, "cpu": "4"}, "run": {"command": ["a", "b"]}}


def test_options_go_over_the_file(tmp_path: Path) -> None:
    """A patch is what the file says, with what is set by options in place of it; values are read as YAML is."""
    file = tmp_path / "patch.yaml"
    file.write_text("priority: 3\nresources: {gpus: 4, cpu: 2}\n", encoding="utf-8")
    patch = patch_of(str(file), ["resources.gpus=2", "time_limit=4h", "run.command=[c, d]", "gateway=null"])
    assert patch == {
        "priority": 3,
        "resources": {"gpus": 2, "cpu": 2},
        "time_limit": "4h",
        "run": {"command": ["c", "d"]},
        "gateway": None,
    }


@pytest.mark.parametrize("given", [[], ["gpus"], ["=2"], ["resources..gpus=2"], ["a=["]])
def test_what_is_no_change_is_refused(given: list[str]) -> None:
    """Nothing to change, a field without a value or a value that is none are reported."""
    with pytest.raises(RejectedError):
        patch_of(None, given)


@pytest.mark.parametrize(
    ("patch", "changes"),
    [
        ({"resources": {"gpus": 2, "cpu": "4"}}, [("resources.gpus", 1, 2)]),
        ({"priority": 0}, []),
        ({"gateway": "g", "priority": None}, [("gateway", None, "g"), ("priority", 0, None)]),
        ({"run": {"command": ["c"]}}, [("run.command", ["a", "b"], ["c"])]),
        ({"network": {"max_latency": "4ms"}}, [("network.max_latency", None, "4ms")]),
    ],
)
def test_only_what_differs_is_a_change(patch: dict[str, Any], changes: list[tuple[str, Any, Any]]) -> None:
    """Each field that will be another is listed by its path; what stays as it is is not."""
    assert list(differences(SPEC, patch)) == changes


@pytest.mark.parametrize(
    ("state", "path", "stops"),
    [
        ("running", "resources.gpus", True),
        ("running", "priority", False),
        ("running", "labels.team", False),
        ("running", "data.size", False),
        ("running", "network.on_violation", False),
        ("running", "network.max_latency", True),
        ("queued", "resources.gpus", False),
        ("running", "replicas", True),
    ],
)
def test_it_says_when_what_runs_is_stopped(state: str, path: str, stops: bool) -> None:
    """Anyone who changes what a running job hangs on is reported that it restarts."""
    console = Console(width=100)
    with console.capture() as shown:
        console.print(picture({"state": state, "spec": {"gang": True}}, [(path, 1, 2)]))
    assert f"{path}: 1 → 2" in shown.get()
    assert ("stopped and restarted" in shown.get()) is stops


def test_states_and_fields_are_those_of_jobs() -> None:
    """Anything that the command believes of jobs is so."""
    assert set(PLACED) == {state.value for state in PLACED_STATES}
    assert {path.partition(".")[0] for path in KEEPS_RUNNING} <= set(JobIn.model_fields)
    said = job_spec._workload_fields.__doc__ or ""  # noqa: SLF001
    assert "not: name, labels, priority, queue, duration, limits, data and the action for SLO violations" in said
