"""Work spread over processes of this machine."""

from __future__ import annotations

import os
import pickle
import signal
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any

from seaway.learning.parent import end_with_parent
from seaway.learning.spreading.spread import Item, Result, Tell, Tries

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
        """Do a task with each item; see `seaway.learning.spreading.spread.Spread`."""
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
