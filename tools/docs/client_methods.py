"""An extension of griffe that documents the methods of the Python clients.

A method such as ``submit = verb(jobs.submit)`` is an attribute in the source. It gets the parameters and the docstring
of the function that it is made from.
"""

from __future__ import annotations

from typing import Any

import griffe

METHODS = "seaway.client.methods.Methods"
MAKERS = ("verb", "pages")


class ClientMethods(griffe.Extension):
    """Replaces attributes of the clients with functions once the package is loaded."""

    def on_package(self, *, pkg: griffe.Module, loader: griffe.GriffeLoader, **_: Any) -> None:  # noqa: ANN401  # griffe's
        """Replace the attributes that both clients inherit."""
        if pkg.path == "seaway":
            methods = loader.modules_collection[METHODS]
            for attribute in list(methods.attributes.values()):
                if _is_made(attribute.value):
                    made_from = loader.modules_collection[attribute.value.arguments[0].canonical_path]
                    methods.set_member(attribute.name, _method(attribute.name, made_from))


def _is_made(value: object) -> bool:
    return isinstance(value, griffe.ExprCall) and str(value.function) in MAKERS


def _method(name: str, made_from: griffe.Function) -> griffe.Function:
    """Return a method with the parameters of a function, and with what its call returns."""
    own = griffe.Parameter("self", kind=griffe.ParameterKind.positional_only)
    method = griffe.Function(name, parameters=griffe.Parameters(own, *made_from.parameters), returns=_answer(made_from))
    method.docstring = made_from.docstring
    method.labels.add("method")
    return method


def _answer(made_from: griffe.Function) -> str | griffe.Expr | None:
    """Return T of the annotation Call[T] or Paged[T]."""
    returns = made_from.returns
    return returns.slice if isinstance(returns, griffe.ExprSubscript) else returns
