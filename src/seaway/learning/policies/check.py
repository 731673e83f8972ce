"""Whether a policy file may be used here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from seaway.domain.errors import RejectedError
from seaway.learning.policies.file import LARGEST_FILE, PolicyFile, Tensors, Trial, check_manifest, read_content, unpack
from seaway.learning.policies.model import check_model
from seaway.learning.policies.session import Session, Shapes, StoppedError, Tensor, shapes_of
from seaway.learning.policies.signature import signer

LONGEST_TRIAL_S = 5.0
"""What a trial may take; one of a sound policy takes a millisecond or two."""

TRIES = 5
"""How often a trial is tried for its time: what else the machine does takes some of it."""

LONGEST_AXIS = 20_000
"""Nodes in one trial."""


def check_policy(file: PolicyFile) -> None:
    """Check the model without running it, then have it reproduce its trials within bounds of time and memory.

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
            if not trial.reproduced_by(session.run_within(trial.inputs, LONGEST_TRIAL_S)):
                raise RejectedError(
                    f"the model does not answer trial {number} as it did where it was trained: "
                    "the file was changed, or this processor computes differently; train or export it again"
                )


def check_speed(file: PolicyFile, seconds: float) -> None:
    """Refuse a checked policy that would be stopped at its own trials every time.

    Parameters
    ----------
    seconds
        After how many it is stopped; 0 for never.

    Raises
    ------
    RejectedError
        When it answers a trial in less at none of several tries.
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
    """Whether a recorded tensor has the wanted shape; letters mean the same length wherever they stand."""
    shape = tensors[wanted.name].shape
    return len(shape) == len(wanted.shape) and all(
        found == (lengths.setdefault(axis, found) if isinstance(axis, str) else axis) <= LONGEST_AXIS
        for found, axis in zip(shape, wanted.shape, strict=True)
    )


LONGEST_S = 60
"""How long trying may take, with the start of the process."""

REFUSED = 3
"""What the process ends with when it refuses a file; the reason is what it printed."""


def try_in_subprocess(content: bytes) -> None:
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


def read_policy(source: Path | bytes) -> PolicyFile:
    """Read a policy file and check all of it; nothing of it is run but the trials, within bounds.

    Raises
    ------
    RejectedError
        When it cannot be read, is not a policy file, was damaged or tampered with, or holds a model that policies may
        not be.
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
