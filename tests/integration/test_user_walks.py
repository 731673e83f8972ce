"""The walks for users of other schedulers, in `docs/`, against a server in a process of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

import pytest

from tests.integration.running import running
from tests.integration.walks import commands_of, run

COMMAND_S = 120

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """Start a server with the simulated fleet of the walk, and return the environment of its user."""
    folder = tmp_path_factory.mktemp("walks")
    data = folder / "data" / "seaway"
    data.mkdir(parents=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SEAWAY_S")}
    with running(data):
        yield environment | {
            "HOME": str(folder),
            "XDG_DATA_HOME": str(folder / "data"),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "COLUMNS": "160",
        }


@pytest.mark.parametrize(
    ("page", "says"),
    [
        (
            "walk-slurm",
            {
                "seaway convert": ["srun starts 2 processes in each replica", "replicas: 2", "--output", "not kept"],
                "seaway show train": ["--epochs"],
                "seaway explain sweep": ["train"],
                "constraint.sbatch --detach": [
                    "constraint.sbatch:3:--constraint",
                    "--nodelist",
                    "refused, as it should",
                ],
            },
        ),
        (
            "walk-skypilot",
            {
                "seaway convert": ["preemptible: true", "resources.infra", "SKYPILOT_NODE_IPS"],
                "seaway explain finetune": ["finetune"],
                "skypilot-files.yaml --detach": ["skypilot-files.yaml:3:file_mounts", "refused, as it should be"],
            },
        ),
        (
            "walk-kubectl",
            {
                "seaway convert": ["array: 0-3%2", "gpu_memory: 8000Mi", "JOB_COMPLETION_INDEX"],
                "seaway get jobs": ["render"],
                "seaway explain mnist": ["mnist"],
                "sidecar.yaml --detach": ["serviceAccountName", "refused, as it should be"],
                "sidecar.yaml --ignore": ["ignored, as requested", "submitted with-sidecar"],
            },
        ),
    ],
)
def test_every_command_of_a_walk_works(terminal: Mapping[str, str], page: str, says: dict[str, list[str]]) -> None:
    """Every command of the page works in its order, and prints what the page says."""
    answers = {command: run(command, terminal, timeout_s=COMMAND_S) for command in commands_of(page)}
    for part, expected in says.items():
        answer = next(said for command, said in answers.items() if part in command)
        assert [each for each in expected if each not in answer] == [], answer
