"""Work spread with Ray: over the machines of a Ray cluster, or the processors of this one."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from warnings import catch_warnings, simplefilter

from seaway.domain.errors import UnavailableError
from seaway.learning.spreading.spread import Item, Result, Tell, Tries

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
        """Do a task with each item; see `seaway.learning.spreading.spread.Spread`."""
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
