"""Checkpoints round trip, and reading them runs no code."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs seaway[learn]")

from seaway.domain.errors import RejectedError  # noqa: E402  # where torch is
from seaway.learning.runs import folder as checkpoint  # noqa: E402


def test_states_round_trip(tmp_path: Path) -> None:
    """A state can have arrays of any type and shape, integers of 128 bits, tensors, tuples and None."""
    generator = np.random.default_rng(5)
    state = {
        "array": np.arange(6, dtype=np.uint32).reshape(2, 3),
        "empty": np.zeros((0, 4), dtype=np.float32),
        "truth": np.array([True, False]),
        "number": np.float32(0.5),
        "random": generator.bit_generator.state,
        "nested": [{"tensor": torch.ones(2), "tuple": (1, "x", None)}],
    }
    checkpoint.write(tmp_path / "c.pt", state)
    found = checkpoint.read(tmp_path / "c.pt")
    for name in ("array", "empty", "truth"):
        np.testing.assert_array_equal(found[name], state[name], strict=True)
    assert (found["number"], found["random"]) == (0.5, state["random"])
    assert found["nested"][0]["tuple"] == (1, "x", None)
    assert torch.equal(found["nested"][0]["tensor"], torch.ones(2))
    assert [path.name for path in tmp_path.iterdir()] == ["c.pt"]


def test_writes_are_atomic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed write leaves the old file."""
    path = tmp_path / "c.pt"
    checkpoint.write(path, {"old": 1})

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", killed)
    with pytest.raises(KeyboardInterrupt):
        checkpoint.write(path, {"new": 2})
    assert checkpoint.read(path) == {"old": 1}


class Bomb:
    """Object whose pickle calls a function."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.path,)


def test_files_with_code_are_rejected(tmp_path: Path) -> None:
    """No function in a checkpoint is called, whether torch wrote it or not."""
    trace = tmp_path / "ran"
    with (tmp_path / "plain.pt").open("wb") as file:
        pickle.dump({"x": Bomb(trace)}, file)
    torch.save({"x": Bomb(trace)}, tmp_path / "torch.pt")
    for name in ("plain.pt", "torch.pt"):
        with pytest.raises(RejectedError, match=f"{name}: contains more than numbers"):
            checkpoint.read(tmp_path / name)
    assert not trace.exists()


def test_what_is_no_checkpoint_is_refused_in_our_words(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    """Cut off anywhere, changed in one bit, or of something else: what torch says of it is for others, and is left out.

    A pickle of any protocol is one, be it of numbers alone.
    """
    path = tmp_path / "c.pt"
    with pytest.raises(RejectedError, match="is not there"):
        checkpoint.read(path)
    checkpoint.write(path, {"x": torch.arange(1000), "y": "text"})
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    damaged = [whole[:2000], whole[: len(whole) - 1], whole[:1], b"", b"numbers", bytes(flipped)]
    pickles = [pickle.dumps({"x": 1.5}, protocol) for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)]
    for content in damaged + pickles:
        path.write_bytes(content)
        with pytest.raises(RejectedError) as error:
            checkpoint.read(path)
        says = checkpoint.MORE if content in pickles else checkpoint.DAMAGED
        assert str(error.value) == f"{path}: {says}"
    torch.save([1, 2], path)
    with pytest.raises(RejectedError, match="is cut off or damaged"):
        checkpoint.read(path)
    torch.save({"x": 1}, path, pickle_protocol=4)
    with pytest.raises(RejectedError, match="contains more than numbers"):
        checkpoint.read(path)
    assert not recwarn.list
