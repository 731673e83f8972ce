"""Trying a policy file in a process of its own, which may end as it likes.

What is allowed of ONNX is small, but onnxruntime takes for granted that models are well-meant: some that look right
from outside end the process that loads them.
"""

from __future__ import annotations

import subprocess
import sys

from seaway.domain.errors import RejectedError
from seaway.learning.policies.file import LARGEST_FILE, read_policy

LONGEST_S = 60
"""How long trying may take, with the start of the process."""

REFUSED = 3
"""What the process ends with when it refuses a file; the reason is what it printed."""


def try_apart(content: bytes) -> None:
    """Read and check a policy file in another process.

    Raises
    ------
    RejectedError
        When it may not be used, or the process did not live through it.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", __name__], input=content, capture_output=True, timeout=LONGEST_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise RejectedError(f"trying the policy took longer than {LONGEST_S} s") from None
    if done.returncode == REFUSED:
        raise RejectedError(done.stdout.decode(errors="replace"))
    if done.returncode:
        raise RejectedError("the process that tried the policy crashed: its model breaks onnxruntime")


def main() -> int:
    """Check what comes in; say what is wrong with it."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        read_policy(sys.stdin.buffer.read(LARGEST_FILE + 1))
    except RejectedError as error:
        sys.stdout.write(error.message)
        return REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main())
