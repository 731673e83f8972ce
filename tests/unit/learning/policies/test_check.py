"""Files that are tried in a process of their own."""

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


def test_sound_policies_pass() -> None:
    """Anything that may be used here passes, and nothing is reported."""
    try_in_subprocess(pack(cluster_policy()))


def test_the_reason_returns() -> None:
    """Anything that is refused there is refused here, with the same words."""
    with pytest.raises(RejectedError, match="not a policy file, or a truncated one"):
        try_in_subprocess(pack(cluster_policy())[:-1])


def test_a_model_that_ends_its_process_ends_no_other() -> None:
    """An axis that is not there fails an assertion within onnxruntime 1.31; versions that say so do as well."""
    file = node_policy()
    model = parse_model(file.model)
    model.graph.initializer.add(name="axes", data_type=7, dims=[3], raw_data=struct.pack("<3q", 1000, 3, 2**62))
    model.graph.node.add(op_type="Identity", input=["nodes"], output=["same"])
    model.graph.node.add(op_type="Squeeze", input=["same", "axes"], output=["none"])
    with pytest.raises(RejectedError, match=r"crashed|cannot be loaded"):
        try_in_subprocess(pack(policy_file(file.manifest, model.SerializeToString(), file.trials)))


def test_trying_does_not_take_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that does not come to an end is ended."""
    monkeypatch.setattr(apart, "SUBPROCESS_TIMEOUT_S", 0.01)
    with pytest.raises(RejectedError, match=r"longer than 0\.01 s"):
        try_in_subprocess(pack(cluster_policy()))


def test_files_where_it_starts_do_not_matter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file that lies beside a policy and has the name of a module is not run by trying the policy."""
    (tmp_path / "zipfile.py").write_text("raise SystemExit(1)", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    try_in_subprocess(pack(cluster_policy()))
