"""Parallel execution over processes, or over machines with Ray. Results do not depend on it."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol, TypeVar
from warnings import catch_warnings, simplefilter

from seaway.domain.errors import RejectedError, UnavailableError
from seaway.learning.parent import end_with_parent

Item = TypeVar("Item")
Result = TypeVar("Result")

Tell = Callable[[str], None]
"""Callback for messages about a worker that died."""

TRIES = 2
"""Number of tries of an item whose worker died."""


class Spread(Protocol):
    """Parallel map over items.

    Results depend on the items only, so random draws have to use a seed of the item. Tasks, items and results travel as
    pickles. A task is a module-level function.
    """

    def map(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        """Run a task on each item. The workers end with the iteration, also by an exception or Ctrl-C.

        Returns
        -------
        Iterator
            Number and result of each item, in order of completion.

        Raises
        ------
        UnavailableError
            When a worker died on an item, and another one on its second try.
        Exception
            Any exception of a task.
        """


def in_order(results: Iterable[tuple[int, Result]]) -> Iterator[Result]:
    """Yield results in the order of their items, as soon as possible."""
    early: dict[int, Result] = {}
    due = 0
    for at, result in results:
        early[at] = result
        while due in early:
            yield early.pop(due)
            due += 1


class Tries:
    """Number of tries of each item.

    Parameters
    ----------
    tell
        Callback for messages about workers that died.
    count
        Number of items.
    """

    def __init__(self, tell: Tell, count: int) -> None:
        self._tell = tell
        self._died = [0] * count

    def died(self, at: int, why: str) -> None:
        """Record that a worker died on an item, which is then tried again.

        Parameters
        ----------
        why
            Reason of the end, one clause.

        Raises
        ------
        UnavailableError
            When the item has no tries left.
        """
        self._died[at] += 1
        which = f"a worker {why} at {at + 1} of {len(self._died)}"
        if self._died[at] == TRIES:
            raise UnavailableError(f"{which}, and so did one before it")
        self._tell(f"{which}; another one tries it again")


class Serial:
    """Execution in this process."""

    def map(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        """Run a task on each item; see `seaway.learning.parallel.Spread`."""
        for at, item in enumerate(items):
            yield at, task(item)


GRACE_S = 60.0
"""Seconds for which a process may clean up before it is killed."""

LOOK_S = 0.2
"""Interval at which a map looks whether it is stopped, seconds."""


def never() -> str:
    """Stop no map."""
    return ""


THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Environment variables that limit the threads of libraries."""


class Processes:
    """Execution in processes, each with one thread.

    Processes start fresh (spawned, not forked) and work on one item after another. A process that dies is replaced.

    Parameters
    ----------
    workers
        Number of processes.
    tell
        Callback for messages about processes that died.
    """

    def __init__(self, workers: int, tell: Tell) -> None:
        self._workers = workers
        self._tell = tell

    def map(
        self, task: Callable[[Item], Result], items: Sequence[Item], stopped: Callable[[], str] = never
    ) -> Iterator[tuple[int, Result]]:
        """Run a task on each item; see `seaway.learning.parallel.Spread`.

        Parameters
        ----------
        stopped
            Returns why the map ends early; empty to go on.

        Raises
        ------
        UnavailableError
            When it is stopped. The processes are ended.
        """
        coming = deque(range(len(items)))
        tries = Tries(self._tell, len(items))
        workers: list[_Worker] = []
        try:
            workers += [_Worker() for _ in range(min(self._workers, len(items)))]
            while coming or any(worker.busy for worker in workers):
                for worker in workers:
                    if coming and not worker.busy:
                        worker.begin(coming[0], task, items[coming.popleft()])
                if why := stopped():
                    raise UnavailableError(why)
                for worker in _answering(workers, None if stopped is never else LOOK_S):
                    at = worker.at
                    try:
                        result = worker.result()
                    except (EOFError, ConnectionError):
                        tries.died(at, worker.ended())
                        coming.appendleft(at)
                        workers[workers.index(worker)] = _Worker()
                    else:
                        yield at, result
        finally:
            _end(workers)


class _Worker:
    """A process and its pipe.

    Attributes
    ----------
    process, pipe
        Process and pipe.
    at
        Number of its present item; -1 for none.
    """

    def __init__(self) -> None:
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        self.at = -1

    @property
    def busy(self) -> bool:
        """True if it has an item."""
        return self.at >= 0

    def begin(self, at: int, task: Callable[[Any], Any], item: object) -> None:
        self.at = at
        with suppress(ConnectionError):  # it died, and `result` reports it
            self.pipe.send_bytes(pickle.dumps((task, item)))

    def result(self) -> Any:  # noqa: ANN401  # any result of a task
        """Return the result of its item, or raise the exception of the task.

        Raises
        ------
        EOFError, ConnectionError
            When the process died.
        """
        good, result = pickle.loads(self.pipe.recv_bytes())
        self.at = -1
        if not good:
            raise result
        return result

    def ended(self) -> str:
        """Describe the end of the process in one clause."""
        self.process.join(GRACE_S)
        code = self.process.exitcode or 0
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended by itself with exit code {code}"


def _answering(workers: Sequence[_Worker], timeout_s: float | None) -> list[_Worker]:
    """Wait until a busy worker completes its item or dies, or for the timeout; return all such workers."""
    busy = {worker.pipe: worker for worker in workers if worker.busy}
    ready = wait(list(busy), timeout_s)
    return [worker for pipe, worker in busy.items() if pipe in ready]


def _end(workers: Sequence[_Worker]) -> None:
    """End all processes: close the pipe of idle ones, send SIGTERM to the others, and SIGKILL after a grace period."""
    for worker in workers:
        if worker.busy:
            worker.process.terminate()
        worker.pipe.close()
    until = time.monotonic() + GRACE_S
    for worker in workers:
        worker.process.join(max(until - time.monotonic(), 0))
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()


def _serve(pipe: Connection) -> None:
    """Run tasks from the pipe until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C, and ends this process
    end_with_parent()  # a parent that is killed cannot end it
    os.environ.update(dict.fromkeys(THREADS, "1"))
    with suppress(EOFError, ConnectionError):
        while True:
            pipe.send_bytes(_answer(pipe.recv_bytes()))


def _answer(request: bytes) -> bytes:
    """Run one task; return a pickle of its success, and of its result or exception."""
    try:
        task, item = pickle.loads(request)
        return pickle.dumps((True, task(item)))
    except Exception as error:  # noqa: BLE001  # the parent raises it
        error.add_note("".join(traceback.format_exception(error)))
        return pickle.dumps((False, error))


LOCAL = "local"
"""Address of a temporary Ray cluster on this machine."""

LOOPBACK = "127.0.0.1"

# Ray reads them on import: no usage statistics, and a longer timeout for its start.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_raylet_start_wait_time_s", "300")


class OverRay:
    """Execution on a Ray cluster, with one CPU per item.

    Parameters
    ----------
    address
        Address of its head, such as ``head:6379`` or ``ray://head:10001``; ``auto`` for the cluster of this machine;
        `LOCAL` for a temporary cluster on this machine.
    workers
        Number of CPUs of a temporary cluster.
    tell
        Callback for messages about workers that died.
    """

    def __init__(self, address: str, workers: int, tell: Tell) -> None:
        self._address, self._workers = address, workers
        self._tell = tell

    def map(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        """Run a task on each item; see `seaway.learning.parallel.Spread`."""
        import ray
        from ray import exceptions

        died = (exceptions.WorkerCrashedError, exceptions.NodeDiedError, exceptions.OutOfMemoryError)
        tries = Tries(self._tell, len(items))
        with self._connected(ray):
            remote = ray.remote(num_cpus=1, max_retries=0)(_done)
            running = {remote.remote(task, item): at for at, item in enumerate(items)}
            try:
                while running:
                    (ref,), _ = ray.wait(list(running), num_returns=1)
                    at = running.pop(ref)
                    try:
                        result = ray.get(ref)
                    except died:
                        tries.died(at, "of Ray died")
                        running[remote.remote(task, items[at])] = at
                    except exceptions.RayTaskError as error:
                        raise error.cause from error
                    else:
                        yield at, result
            finally:
                for ref in running:
                    ray.cancel(ref, force=True)

    @contextmanager
    def _connected(self, ray: Any) -> Iterator[None]:  # noqa: ANN401  # a module without types
        """Connect to the Ray cluster, or start a temporary one.

        Raises
        ------
        UnavailableError
            When no cluster answers at the address.
        """
        quiet: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
        try:
            if self._address == LOCAL:
                ray.init(LOCAL, num_cpus=self._workers, include_dashboard=False, _node_ip_address=LOOPBACK, **quiet)
            else:
                ray.init(address=self._address, **quiet)
        except Exception as error:  # noqa: BLE001  # Ray raises exceptions of any class
            raise UnavailableError(f"no Ray cluster answers at {self._address!r}: {error}") from None
        try:
            yield
        finally:
            _leave(ray)


def _leave(ray: Any) -> None:  # noqa: ANN401  # a module without types
    """Disconnect from the Ray cluster; end a temporary one.

    Ray kills its processes without waiting for them, so that Python warns about them.
    """
    with catch_warnings():
        simplefilter("ignore", ResourceWarning)
        ray.shutdown()
        gc.collect()


def _done(task: Callable[[Item], Result], item: Item) -> Result:
    return task(item)


def choose_spread(workers: int, ray: str | None, tell: Tell) -> Spread:
    """Return the parallel execution for a number of workers or a Ray cluster.

    Parameters
    ----------
    workers
        Number of processes; 1 for this process only.
    ray
        Address of a Ray cluster, see `seaway.learning.parallel.OverRay`; None for no cluster.
    tell
        Callback for messages about workers that died.

    Raises
    ------
    RejectedError
        When the number of workers is below 1, or Ray is not installed.
    """
    if workers < 1:
        raise RejectedError(f"{workers} is not at least 1", where="--workers")
    if ray is not None:
        if not find_spec("ray"):
            raise RejectedError("needs Ray, which is an extra: pip install 'seaway[ray]'", where="--ray")
        return OverRay(ray, workers, tell)
    return Serial() if workers == 1 else Processes(workers, tell)
