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
"""Told a clause for people to read: that a worker died, and what comes of it."""

TRIES = 2
"""How often an item is tried whose worker dies on it."""


class Spread(Protocol):
    """Does the same with many things, by one worker or by several.

    What comes out depends on the items alone: whatever is drawn has to use a seed that the item carries. Tasks,
    items and results travel as pickles; a task is a function that its module names.
    """

    def map(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        """Do a task with each item.

        Whoever stops asking, by an exception or ^C too, ends the workers.

        Returns
        -------
        Iterator
            An item's number and what came of it, in the order in which items get done.

        Raises
        ------
        UnavailableError
            When a worker died on an item, and another one on trying it again.
        Exception
            Whatever a task raises.
        """


def in_order(results: Iterable[tuple[int, Result]]) -> Iterator[Result]:
    """Pass results on in the order of their items, each as soon as none is missing before it."""
    early: dict[int, Result] = {}
    due = 0
    for at, result in results:
        early[at] = result
        while due in early:
            yield early.pop(due)
            due += 1


class Tries:
    """Counts how often each item was tried, and tells of workers that died.

    Parameters
    ----------
    tell
        Who is told.
    count
        How many items there are.
    """

    def __init__(self, tell: Tell, count: int) -> None:
        self._tell = tell
        self._died = [0] * count

    def died(self, at: int, why: str) -> None:
        """Note that a worker died on an item, which is then tried again.

        Parameters
        ----------
        why
            How it ended, a clause.

        Raises
        ------
        UnavailableError
            When it may not be tried again.
        """
        self._died[at] += 1
        which = f"a worker {why} at {at + 1} of {len(self._died)}"
        if self._died[at] == TRIES:
            raise UnavailableError(f"{which}, and so did one before it")
        self._tell(f"{which}; another one tries it again")


class Serial:
    """Does it here."""

    def map(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        """Do a task with each item; see `seaway.learning.parallel.Spread`."""
        for at, item in enumerate(items):
            yield at, task(item)


GRACE_S = 60.0
"""How long a process that is told to end may take to put its things in order."""

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Variables by which libraries know how many threads they may use: there are processes enough."""


class Processes:
    """Does it in processes, each with one thread.

    They begin empty (nothing of this process is copied into them) and do one item after another. Where one dies,
    another takes its place.

    Parameters
    ----------
    workers
        How many.
    tell
        Who is told that one died.
    """

    def __init__(self, workers: int, tell: Tell) -> None:
        self._workers = workers
        self._tell = tell

    def map(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        """Do a task with each item; see `seaway.learning.parallel.Spread`."""
        coming = deque(range(len(items)))
        tries = Tries(self._tell, len(items))
        workers: list[_Worker] = []
        try:
            workers += [_Worker() for _ in range(min(self._workers, len(items)))]
            while coming or any(worker.busy for worker in workers):
                for worker in workers:
                    if coming and not worker.busy:
                        worker.begin(coming[0], task, items[coming.popleft()])
                for worker in _answering(workers):
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
    """One process, and the pipe to it.

    Attributes
    ----------
    process, pipe
        These.
    at
        Number of the item that it is busy with; -1 for none.
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
        """Give it an item."""
        self.at = at
        with suppress(ConnectionError):  # it died; who asks for the result learns of it
            self.pipe.send_bytes(pickle.dumps((task, item)))

    def result(self) -> Any:  # noqa: ANN401  # whatever the task returns
        """Return what came of its item, or raise what was raised.

        Raises
        ------
        EOFError, ConnectionError
            When it died.
        """
        good, result = pickle.loads(self.pipe.recv_bytes())
        self.at = -1
        if not good:
            raise result
        return result

    def ended(self) -> str:
        """Say how it ended, a clause."""
        self.process.join(GRACE_S)
        code = self.process.exitcode or 0
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended by itself with exit code {code}"


def _answering(workers: Sequence[_Worker]) -> list[_Worker]:
    """Wait until any busy worker is done, or dead; return those."""
    busy = {worker.pipe: worker for worker in workers if worker.busy}
    ready = wait(list(busy))
    return [worker for pipe, worker in busy.items() if pipe in ready]


def _end(workers: Sequence[_Worker]) -> None:
    """End all processes: idle ones by themselves, the others by SIGTERM, and in the end by SIGKILL."""
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
    """Do what comes through the pipe until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ^C is for whoever gave the work, who then ends this process
    end_with_parent()  # a parent that is killed cannot end it
    os.environ.update(dict.fromkeys(THREADS, "1"))
    with suppress(EOFError, ConnectionError):
        while True:
            pipe.send_bytes(_answer(pipe.recv_bytes()))


def _answer(asked: bytes) -> bytes:
    """Do one task; return a pickle of whether that went well, and of what came of it or was raised."""
    try:
        task, item = pickle.loads(asked)
        return pickle.dumps((True, task(item)))
    except Exception as error:  # noqa: BLE001  # it is raised where the work was given
        error.add_note("".join(traceback.format_exception(error)))
        return pickle.dumps((False, error))


LOCAL = "local"
"""The address that stands for a Ray of our own on this machine."""

LOOPBACK = "127.0.0.1"

# Read when Ray is loaded: nothing is reported to anybody, and a busy machine gets its time to start.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_raylet_start_wait_time_s", "300")


class OverRay:
    """Does it on a Ray cluster, a processor an item.

    Parameters
    ----------
    address
        Where its head is, like ``head:6379`` or ``ray://head:10001``; ``auto`` for the one that this machine is part
        of; `LOCAL` for one of our own on this machine, which ends with the work.
    workers
        How many processors one of our own has.
    tell
        Who is told that a worker died.
    """

    def __init__(self, address: str, workers: int, tell: Tell) -> None:
        self._address, self._workers = address, workers
        self._tell = tell

    def map(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        """Do a task with each item; see `seaway.learning.parallel.Spread`."""
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
        """Be part of the Ray cluster, or start one of our own.

        Raises
        ------
        UnavailableError
            When none answers at the address.
        """
        quiet: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
        try:
            if self._address == LOCAL:
                ray.init(LOCAL, num_cpus=self._workers, include_dashboard=False, _node_ip_address=LOOPBACK, **quiet)
            else:
                ray.init(address=self._address, **quiet)
        except Exception as error:  # noqa: BLE001  # Ray raises whatever comes to hand, bare ones too
            raise UnavailableError(f"no Ray cluster answers at {self._address!r}: {error}") from None
        try:
            yield
        finally:
            _leave(ray)


def _leave(ray: Any) -> None:  # noqa: ANN401  # a module without types
    """Part with the Ray cluster; one of our own ends.

    Ray kills its processes but does not wait for them, which Python warns of when it forgets them.
    """
    with catch_warnings():
        simplefilter("ignore", ResourceWarning)
        ray.shutdown()
        gc.collect()


def _done(task: Callable[[Item], Result], item: Item) -> Result:
    """Do one task."""
    return task(item)


def choose_spread(workers: int, ray: str | None, tell: Tell) -> Spread:
    """Return what spreads work.

    Parameters
    ----------
    workers
        How many processes; 1 for this one alone.
    ray
        Address of a Ray cluster, see `seaway.learning.parallel.OverRay`; None for none.
    tell
        Who is told that a worker died.

    Raises
    ------
    RejectedError
        When there would be no worker, or Ray is not installed.
    """
    if workers < 1:
        raise RejectedError(f"{workers} is not at least 1", where="--workers")
    if ray is not None:
        if not find_spec("ray"):
            raise RejectedError("needs Ray, which is an extra: pip install 'seaway[ray]'", where="--ray")
        return OverRay(ray, workers, tell)
    return Serial() if workers == 1 else Processes(workers, tell)
