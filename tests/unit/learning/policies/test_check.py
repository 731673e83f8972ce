"""Checks of policy files in a separate process."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from seaway.domain.errors import RejectedError
from seaway.learning.policies import check as apart
from seaway.learning.policies.check import try_in_subprocess
from seaway.learning.policies.file import pack
from seaway.learning.policies.onnx_message import parse_model
from tests.fakes.policies import cluster_policy, node_policy, policy_file


def test_valid_policies_pass() -> None:
    """No error is raised."""
    try_in_subprocess(pack(cluster_policy()))


def test_the_reason_of_the_process_is_raised() -> None:
    """The text of the error is the same."""
    with pytest.raises(RejectedError, match="not a policy file, or a truncated one"):
        try_in_subprocess(pack(cluster_policy())[:-1])


def test_a_model_that_crashes_its_process() -> None:
    """An invalid axis fails an assertion in onnxruntime 1.31, which only ends the process of the check."""
    file = node_policy()
    model = parse_model(file.model)
    model.graph.initializer.add(name="axes", data_type=7, dims=[3], raw_data=struct.pack("<3q", 1000, 3, 2**62))
    model.graph.node.add(op_type="Identity", input=["nodes"], output=["same"])
    model.graph.node.add(op_type="Squeeze", input=["same", "axes"], output=["none"])
    with pytest.raises(RejectedError, match=r"crashed|cannot be loaded"):
        try_in_subprocess(pack(policy_file(file.manifest, model.SerializeToString(), file.trials)))


def test_checks_have_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that does not end is killed."""
    monkeypatch.setattr(apart, "SUBPROCESS_TIMEOUT_S", 0.01)
    with pytest.raises(RejectedError, match=r"longer than 0\.01 s"):
        try_in_subprocess(pack(cluster_policy()))


def test_files_where_it_starts_do_not_matter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file in the working directory with the name of a module is not imported."""
    (tmp_path / "zipfile.py").write_text("raise SystemExit(1)", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    try_in_subprocess(pack(cluster_policy()))
