from pathlib import Path

import pytest

from seaway.adapters.srv6.machine import Machine
from seaway.domain.errors import RejectedError


@pytest.mark.parametrize("netns", ["../../elsewhere", "..", "a/b", "no-namespace-of-this-name"])
def test_a_namespace_that_cannot_be_is_refused_before_anything_is_made(tmp_path: Path, netns: str) -> None:
    """An invalid name leaves neither folders nor locks behind, whatever its path."""
    state = tmp_path / "run" / "seaway"
    with pytest.raises(RejectedError, match="network namespace"):
        Machine(netns, state).remove()
    assert list(tmp_path.rglob("*")) == []
