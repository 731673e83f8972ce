"""Policy files round trip, and invalid files are rejected."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from seaway.domain.errors import RejectedError
from seaway.learning.policies.check import read_policy
from seaway.learning.policies.file import HEAD, LARGEST_FILE, MODEL, Level, PolicyFile, pack, unpack, write_policy
from seaway.learning.policies.session import Session
from tests.fakes.policies import cluster_policy, node_policy

Members = dict[str, bytes]


def zipped(members: Members, *, compression: int = zipfile.ZIP_STORED) -> bytes:
    """Return an archive of some members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def members_of(file: PolicyFile) -> Members:
    """Return the members of a policy file."""
    return {HEAD: file.head, MODEL: file.model}


@pytest.mark.parametrize("file", [cluster_policy(network=True), node_policy()], ids=["cluster", "node"])
def test_policy_files_round_trip(file: PolicyFile, tmp_path: Path) -> None:
    """The policy read is equal, and equal policies have equal bytes."""
    path = tmp_path / "new" / "tiny.policy"
    write_policy(path, file)
    read = read_policy(path)
    assert (read.manifest, read.model, read.digest) == (file.manifest, file.model, file.digest)
    assert pack(read) == pack(file) == path.read_bytes()
    for trial in file.trials:
        for name, values in Session(read).run(trial.inputs).items():
            np.testing.assert_allclose(values, trial.outputs[name], rtol=1e-5, atol=1e-6)


def test_other_weights_have_another_digest() -> None:
    """Policies with equal manifests and different models have different digests."""
    assert cluster_policy(seed=1).digest != cluster_policy(seed=2).digest


@pytest.mark.parametrize("retained", [0, 1, 30, 0.5, 0.99])
def test_truncated_files_are_rejected(retained: float) -> None:
    """A prefix of a file is not valid."""
    whole = pack(cluster_policy())
    with pytest.raises(RejectedError, match="not a policy file, or a truncated one"):
        read_policy(whole[: int(retained * len(whole)) if retained < 1 else int(retained)])


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({}, "this one has nothing"),
        ({HEAD: b"{}"}, "this one has 'policy.json'"),
        ({**members_of(cluster_policy()), "../../evil": b""}, "'../../evil'"),
        ({**members_of(cluster_policy()), MODEL: node_policy().model}, "not the one that policy.json describes"),
        ({**members_of(cluster_policy()), HEAD: b"[]"}, "policy.json cannot be read"),
        ({**members_of(cluster_policy()), HEAD: b"[" * 100_000}, "policy.json cannot be read"),
        ({**members_of(cluster_policy()), HEAD: b"\xff\xfe"}, "policy.json cannot be read"),
        ({**members_of(cluster_policy()), HEAD: b" " * (2 << 20)}, "has more than"),
    ],
)
def test_other_archives_are_rejected(members: Members, says: str) -> None:
    """An archive has the members of a policy file only, up to their maximum sizes."""
    with pytest.raises(RejectedError, match=says):
        read_policy(zipped(members))


def test_compressed_archives_are_rejected() -> None:
    """The directory is checked first, because unpacking could exceed the memory."""
    bomb = zipped({**members_of(cluster_policy()), MODEL: b"\0" * (8 << 20)}, compression=zipfile.ZIP_DEFLATED)
    assert len(bomb) < 100_000
    with pytest.raises(RejectedError, match="compressed or encrypted"):
        read_policy(bomb)


def test_duplicate_members_are_rejected() -> None:
    """Readers could use different ones."""
    file = cluster_policy()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members_of(file).items():
            archive.writestr(name, content)
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr(MODEL, b"")
    with pytest.raises(RejectedError, match="a policy file has"):
        read_policy(buffer.getvalue())


def test_huge_files_are_not_read(tmp_path: Path) -> None:
    """Files above the maximum size are rejected without reading them."""
    path = tmp_path / "huge.policy"
    with path.open("wb") as huge:
        huge.truncate(LARGEST_FILE + 1)
    with pytest.raises(RejectedError, match=r"huge.policy: larger than"):
        read_policy(path)
    with pytest.raises(RejectedError, match="cannot be read: No such file"):
        read_policy(tmp_path / "none.policy")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"name": "Not A Name"}, "not a name of a policy"),
        ({"name": "a" * 64}, "not a name of a policy"),
        ({"says": "\x1b[2J"}, "control characters"),
        ({"config": {"a": {"b": ["\x07"]}}}, "control characters"),
        ({"config": {"a": [[[[[[[[[[1]]]]]]]]]]}}, "nested too deep"),
        ({"features": 2}, "train it again"),
        ({"clusters": None}, "its number of clusters"),
        ({"clusters": 10**9}, "its number of clusters"),
        ({"clusters": 3}, r"this level has observation\(1, 16\)"),
        ({"network": True}, r"this level has observation\(1, 24\)"),
        ({"level": Level.NODE}, "takes any number of clusters"),
        ({"level": Level.NODE, "clusters": None}, r"this level has nodes\(N, 20\), job\(16\)"),
    ],
)
def test_invalid_manifests_are_rejected(changes: dict[str, Any], says: str) -> None:
    """Values must be valid and consistent with the model."""
    file = cluster_policy()
    reported = PolicyFile(replace(file.manifest, **changes), file.model, file.trials)
    with pytest.raises(RejectedError, match=says):
        read_policy(pack(reported))


def test_models_that_do_not_reproduce_trials_are_rejected() -> None:
    """Other weights with a matching digest do not pass."""
    file, other = cluster_policy(seed=1), cluster_policy(seed=2)
    with pytest.raises(RejectedError, match="does not answer trial 0"):
        read_policy(pack(PolicyFile(file.manifest, file.model, other.trials)))


def test_trials_must_match_the_level() -> None:
    """Trials exist, and have the inputs of the model."""
    file = cluster_policy()
    with pytest.raises(RejectedError, match="1 to 16 trials, this one 0"):
        read_policy(pack(PolicyFile(file.manifest, file.model, ())))
    with pytest.raises(RejectedError, match="a trial has inputs that"):
        read_policy(pack(PolicyFile(file.manifest, file.model, node_policy().trials)))


@pytest.mark.parametrize("values", ["[1.0]", "[1e39]", "[NaN]"])
def test_invalid_trials_are_rejected(values: str) -> None:
    """The number of values matches the shape, and each is a finite 32-bit float."""
    file = cluster_policy()
    head = file.head.replace(b'"values": ', b'"values":')
    start = head.index(b'"values":')
    end = head.index(b"]", start) + 1
    broken = head[:start] + b'"values":' + values.encode() + head[end:]
    with pytest.raises(RejectedError, match=r"trial|policy\.json cannot be read"):
        unpack(zipped({HEAD: broken, MODEL: file.model}))
