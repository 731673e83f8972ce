"""A changed policy file is either valid or rejected, and does nothing else."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from seaway.domain.errors import RejectedError
from seaway.learning.policies.check import read_policy
from seaway.learning.policies.file import PolicyFile, pack
from tests.fakes.policies import cluster_policy, node_policy, policy_file

FILES = (cluster_policy(), node_policy())
PACKED = tuple(map(pack, FILES))


@st.composite
def changed(draw: st.DrawFn, whole: bytes) -> bytes:
    """Generate bytes with a few changes: other, more, fewer."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        length = draw(st.sampled_from((0, 1, 1, 2, 8, 64)))
        data[start : start + length] = draw(st.binary(max_size=16))
    return bytes(data)


def read_or_refuse(data: bytes) -> None:
    """Read a file; a rejection is fine."""
    said = ""
    try:
        read_policy(data)
    except RejectedError as error:
        said = str(error)
    assert said.isprintable()
    assert len(said) < 600


@given(st.sampled_from(PACKED).flatmap(changed))
@settings(max_examples=300, deadline=None)
def test_changed_files_are_refused_or_sound(data: bytes) -> None:
    """Any change of a file is detected, or is harmless."""
    read_or_refuse(data)


@given(st.sampled_from(FILES), st.data())
@settings(max_examples=300, deadline=None, derandomize=True)  # a crash of onnxruntime would end the tests
def test_changed_models_are_refused_or_sound(file: PolicyFile, data: st.DataObject) -> None:
    """The same is valid for a changed model with the right digest beside it."""
    model = data.draw(changed(file.model))
    read_or_refuse(pack(policy_file(file.manifest, model, file.trials)))


@given(st.sampled_from(FILES), st.data())
@settings(max_examples=200, deadline=None)
def test_changed_heads_are_refused_or_sound(file: PolicyFile, data: st.DataObject) -> None:
    """The same is valid for a changed manifest."""
    head = data.draw(changed(file.head))
    read_or_refuse(pack(PolicyFile(file.manifest, file.model, file.trials, b"", head)))


@given(st.binary(max_size=400))
@settings(deadline=None)
def test_anything_else_is_refused_or_sound(data: bytes) -> None:
    """The same is valid for bytes that never were a policy file."""
    read_or_refuse(data)
