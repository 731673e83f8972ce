"""A thread for one thing that may never end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Result = TypeVar("Result")


def in_thread(work: Callable[[], Result]) -> Future[Result]:
    """Begin something in a thread of its own, which keeps neither the process from ending nor others from theirs."""
    future: Future[Result] = Future()

    def run() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001  # whatever it is, whoever waits has to hear of it
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=run, name="credentials", daemon=True).start()
    return future
