"""Execution of a model: ONNX Runtime on one thread, with bounded memory, and the shapes of its inputs."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from math import inf
from time import monotonic
from typing import Any, NamedTuple, Protocol

from seaway.domain.errors import RejectedError
from seaway.learning.policies.file import Level, Manifest, PolicyFile, Tensors
from seaway.learning.policies.onnx_message import MISSING


class Run(Protocol):
    """An interruptible run, such as onnxruntime's ``RunOptions``."""

    terminate: bool


class Watchdog:
    """Watchdog that interrupts runs at their time limit.

    Its thread starts with the first run. A run that ends after the next check does not wake it, so that consecutive
    runs cause no thread switches. Without runs it sleeps.

    Parameters
    ----------
    now_s
        Monotonic clock in seconds.
    """

    def __init__(self, now_s: Callable[[], float] = monotonic) -> None:
        self._now_s = now_s
        self.restart()

    def restart(self) -> None:
        """Drop all runs and the thread, after a fork of the process."""
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._runs: dict[int, tuple[float, Run]] = {}
        self._looks_s = inf
        self._thread: threading.Thread | None = None

    @contextmanager
    def over(self, run: Run, seconds: float) -> Iterator[None]:
        """Watch a run, and interrupt it at its time limit; thread-safe."""
        until_s = self._now_s() + seconds
        with self._lock:
            if self._thread is None:
                thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
                thread.start()
                self._thread = thread
            self._runs[id(run)] = until_s, run
            if until_s < self._looks_s:
                self._looks_s = until_s
                self._changed.notify()
        try:
            yield
        finally:
            with self._lock:
                self._runs.pop(id(run), None)

    def _watch(self) -> None:
        with self._lock:
            while True:
                now_s = self._now_s()
                for key, (until_s, run) in list(self._runs.items()):
                    if until_s <= now_s:
                        run.terminate = True
                        del self._runs[key]
                self._looks_s = min((until_s for until_s, _ in self._runs.values()), default=inf)
                self._changed.wait(None if self._looks_s == inf else self._looks_s - now_s)


WATCHDOG = Watchdog()
"""Watchdog of this process."""

os.register_at_fork(after_in_child=WATCHDOG.restart)


LARGEST_MEMORY = 256 << 20
"""Maximum memory of all models of this process, bytes."""


class StoppedError(RejectedError):
    """A model exceeded its time limit."""


class Session:
    """A loaded model.

    Several threads can call it; each computes in its own thread.

    Parameters
    ----------
    file
        Policy file from `read_policy`, which has checked it.
    optimised
        Whether to simplify the graph first, which evaluates constant parts without a time limit.

    Raises
    ------
    RejectedError
        When onnxruntime is not installed, or rejects the model.
    """

    def __init__(self, file: PolicyFile, *, optimised: bool = True) -> None:
        runtime = _runtime()
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.execution_mode = runtime.ExecutionMode.ORT_SEQUENTIAL
        options.log_severity_level = 4
        levels = runtime.GraphOptimizationLevel
        options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimised else levels.ORT_DISABLE_ALL
        for key in ("session.intra_op.allow_spinning", "session.inter_op.allow_spinning"):
            options.add_session_config_entry(key, "0")
        options.add_session_config_entry("session.use_env_allocators", "1")
        try:
            self._session = runtime.InferenceSession(file.model, options, providers=["CPUExecutionProvider"])
        except failures() as error:
            raise RejectedError(f"the model cannot be loaded: {_first_line(error)}") from None
        self._names = [each.name for each in self._session.get_outputs()]

    def run(self, inputs: Tensors) -> Tensors:
        """Return the outputs of the model by name.

        Parameters
        ----------
        inputs
            All inputs by name, as 32-bit floats.

        Raises
        ------
        RejectedError
            When the inputs are invalid, or the model fails.
        """
        return self._run(inputs, None)

    def run_within(self, inputs: Tensors, seconds: float) -> Tensors:
        """Return the outputs as `run` does, with a time limit that is checked between operators.

        Raises
        ------
        StoppedError
            When the time limit was exceeded.
        """
        options = _runtime().RunOptions()
        try:
            with WATCHDOG.over(options, seconds):
                return self._run(inputs, options)
        except RejectedError as error:
            if options.terminate:
                raise StoppedError(f"the model fails: stopped after {seconds:g} s") from error
            raise

    def _run(self, inputs: Tensors, options: Any) -> Tensors:  # noqa: ANN401
        try:
            return dict(zip(self._names, self._session.run(self._names, inputs, options), strict=True))
        except failures() as error:
            raise RejectedError(f"the model fails: {_first_line(error)}") from None


@lru_cache(1)
def failures() -> tuple[type[Exception], ...]:
    """Return the exceptions of onnxruntime, which have no common base class."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    own = (each for each in vars(state).values() if isinstance(each, type) and issubclass(each, Exception))
    return (*own, RuntimeError, TypeError, ValueError)


@lru_cache(1)
def _runtime() -> Any:  # noqa: ANN401
    """Import onnxruntime, and limit the memory of its sessions."""
    try:
        import onnxruntime
    except ImportError:
        raise RejectedError(MISSING) from None
    where = onnxruntime.OrtMemoryInfo(
        "Cpu", onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, onnxruntime.OrtMemType.DEFAULT
    )
    bounds = onnxruntime.OrtArenaCfg({"max_mem": LARGEST_MEMORY, "arena_extend_strategy": 1})
    onnxruntime.create_and_register_allocator(where, bounds)
    return onnxruntime


def _first_line(error: Exception) -> str:
    return ascii(str(error).partition("\n")[0][:200])[1:-1]


FEATURES: dict[Level, int] = {Level.CLUSTER: 1, Level.NODE: 1}
"""Current version of the inputs of models.

`seaway.learning.observing`, which takes a second to import, repeats these versions and lengths.
"""

NODE_FEATURES = 20
"""Number of features of a node."""

JOB_FEATURES = 16
"""Number of features of the job and the fleet."""

MAX_CLUSTERS = 4096

Length = int | str
"""Length of an axis: a number, or a letter for a dynamic axis."""


class Tensor(NamedTuple):
    """One input or output: 32-bit floats of a shape."""

    name: str
    shape: tuple[Length, ...]


class Shapes(NamedTuple):
    """All inputs and outputs of a model, in order."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


def shapes_of(manifest: Manifest) -> Shapes:
    """Return the inputs and outputs of a policy's model.

    Raises
    ------
    RejectedError
        When the manifest is contradictory, or for another version of inputs.
    """
    if manifest.features != FEATURES[manifest.level]:
        raise RejectedError(
            f"the policy was made for version {manifest.features} of the figures of a {manifest.level}, and this "
            f"Seaway shows version {FEATURES[manifest.level]}: train it again"
        )
    if manifest.level is Level.NODE:
        if manifest.clusters is not None:
            raise RejectedError("a policy of level node takes any number of clusters; leave clusters out")
        return Shapes(
            (Tensor("nodes", ("N", NODE_FEATURES)), Tensor("job", (JOB_FEATURES,))),
            (Tensor("scores", ("N",)), Tensor("wait", (1,))),
        )
    if manifest.clusters is None or not 1 <= manifest.clusters <= MAX_CLUSTERS:
        raise RejectedError(f"a policy of level cluster needs its number of clusters, 1 to {MAX_CLUSTERS}")
    length = 8 * manifest.clusters + 8 if manifest.network else 4 * manifest.clusters + 4
    return Shapes((Tensor("observation", (1, length)),), (Tensor("action", (1, 1)),))
