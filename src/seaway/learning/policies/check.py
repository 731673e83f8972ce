"""Checks of a policy file before its use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from seaway.domain.errors import RejectedError
from seaway.learning.policies.file import LARGEST_FILE, PolicyFile, Tensors, Trial, check_manifest, read_content, unpack
from seaway.learning.policies.model import check_model
from seaway.learning.policies.session import Session, Shapes, StoppedError, Tensor, shapes_of
from seaway.learning.policies.signature import signer

TRIAL_TIMEOUT_S = 5.0
"""Maximum duration of a trial in seconds; a valid policy takes a millisecond or two."""

TRIES = 5
"""Number of tries of a trial for its duration, since other work on the machine delays it."""

MAX_AXIS = 20_000
"""Maximum number of nodes in one trial."""


def check_policy(file: PolicyFile) -> None:
    """Check the model without running it, then check that it reproduces its trials within limits of time and memory.

    Raises
    ------
    RejectedError
        With the reason, when the policy may not be used.
    """
    check_manifest(file.manifest)
    shapes = shapes_of(file.manifest)
    signer(file)
    check_model(file.model, shapes)
    for trial in file.trials:
        _check_trial(trial, shapes)
    for optimised in (False, True):  # the plain form first: it does nothing before a trial, which has a limit
        session = Session(file, optimised=optimised)
        for number, trial in enumerate(file.trials):
            if not trial.reproduced_by(session.run_within(trial.inputs, TRIAL_TIMEOUT_S)):
                raise RejectedError(
                    f"the model does not answer trial {number} as it did where it was trained: "
                    "the file was changed, or this processor computes differently; train or export it again"
                )


def check_speed(file: PolicyFile, seconds: float) -> None:
    """Check that a policy can answer its trials within a time limit.

    Parameters
    ----------
    seconds
        Time limit; 0 for none.

    Raises
    ------
    RejectedError
        When it exceeds the limit in all tries of a trial.
    """
    if not seconds:
        return
    session = Session(file)
    for number, trial in enumerate(file.trials):
        if not any(_answers(session, trial, seconds) for _ in range(TRIES)):
            raise RejectedError(
                f"the model does not answer trial {number} within {seconds * 1e3:g} ms, when it is stopped: "
                "export a smaller one, or raise policies.budget_ms"
            )


def _answers(session: Session, trial: Trial, seconds: float) -> bool:
    try:
        session.run_within(trial.inputs, seconds)
    except StoppedError:
        return False
    return True


def _check_trial(trial: Trial, shapes: Shapes) -> None:
    lengths: dict[str, int] = {}
    for what, tensors, wanted in (("inputs", trial.inputs, shapes.inputs), ("outputs", trial.outputs, shapes.outputs)):
        if tensors.keys() != {each.name for each in wanted} or not all(
            _fits(tensors, each, lengths) for each in wanted
        ):
            raise RejectedError(f"a trial has {what} that a policy of this level does not have")


def _fits(tensors: Tensors, wanted: Tensor, lengths: dict[str, int]) -> bool:
    """Report whether a recorded tensor has the required shape. A letter stands for the same length everywhere."""
    shape = tensors[wanted.name].shape
    return len(shape) == len(wanted.shape) and all(
        found == (lengths.setdefault(axis, found) if isinstance(axis, str) else axis) <= MAX_AXIS
        for found, axis in zip(shape, wanted.shape, strict=True)
    )


SUBPROCESS_TIMEOUT_S = 60
"""Time limit of a check in a process, with its start."""

REFUSED = 3
"""Exit code of the process for a rejected file. It prints the reason."""


def try_in_subprocess(content: bytes) -> None:
    """Read and check a policy file in another process.

    Raises
    ------
    RejectedError
        When it may not be used, or the process crashed.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", __name__],
            input=content,
            capture_output=True,
            timeout=SUBPROCESS_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise RejectedError(f"trying the policy took longer than {SUBPROCESS_TIMEOUT_S} s") from None
    if done.returncode == REFUSED:
        raise RejectedError(done.stdout.decode(errors="replace"))
    if done.returncode:
        raise RejectedError("the process that tried the policy crashed: its model breaks onnxruntime")


def main() -> int:
    """Check the file on standard input, and print the problem."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        read_policy(sys.stdin.buffer.read(LARGEST_FILE + 1))
    except RejectedError as error:
        sys.stdout.write(error.message)
        return REFUSED
    return 0


def read_policy(source: Path | bytes) -> PolicyFile:
    """Read and check a policy file. Only its trials run, within limits.

    Raises
    ------
    RejectedError
        When it cannot be read, is no policy file, was damaged or modified, or contains a model that is not allowed.
    """
    where = "" if isinstance(source, bytes) else str(source)
    try:
        file = unpack(source if isinstance(source, bytes) else read_content(source))
        check_policy(file)
    except RejectedError as error:
        raise RejectedError(error.message, where=where) from None
    return file


if __name__ == "__main__":
    sys.exit(main())
