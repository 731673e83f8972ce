"""Methods that are made of descriptions of calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

M = TypeVar("M", bound=Callable[..., Any])


def as_method(method: M, describe: Callable[..., Any]) -> M:
    """Have `help` show a method with the name, the text and the parameters of the call that it makes.

    Parameters
    ----------
    method
        Takes the client and the parameters of `describe`; written to and returned.
    """
    plain = inspect.signature(describe)
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    method.__signature__ = plain.replace(parameters=[itself, *plain.parameters.values()])  # type: ignore[attr-defined]
    method.__doc__, method.__name__, method.__qualname__ = describe.__doc__, describe.__name__, describe.__name__
    return method
