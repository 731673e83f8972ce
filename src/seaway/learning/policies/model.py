"""Allowed models: small graphs of simple operators over their own weights."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite, prod
from typing import Any

import numpy as np

from seaway.domain.errors import RejectedError
from seaway.learning.policies.onnx_message import parse_model
from seaway.learning.policies.session import Length, Shapes, Tensor

TO_BOOL = frozenset({"And", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Not", "Or"})

ARITHMETIC = frozenset(
    {
        "Abs",
        "Add",
        "Clip",
        "Div",
        "Elu",
        "Erf",
        "Exp",
        "Gelu",
        "Gemm",
        "HardSigmoid",
        "HardSwish",
        "LayerNormalization",
        "LeakyRelu",
        "Log",
        "LogSoftmax",
        "MatMul",
        "Max",
        "Min",
        "Mul",
        "Neg",
        "Pow",
        "Reciprocal",
        "ReduceMax",
        "ReduceMean",
        "ReduceMin",
        "ReduceSum",
        "Relu",
        "Selu",
        "Sigmoid",
        "Sign",
        "Softmax",
        "Softplus",
        "Sqrt",
        "Sub",
        "Sum",
        "Tanh",
    }
)

SHAPING = frozenset(
    {
        "Cast",
        "Concat",
        "Constant",
        "ConstantOfShape",
        "Expand",
        "Flatten",
        "Gather",
        "GatherElements",
        "Identity",
        "Reshape",
        "Shape",
        "Slice",
        "Split",
        "Squeeze",
        "Transpose",
        "Unsqueeze",
        "Where",
    }
)

OPERATORS = TO_BOOL | ARITHMETIC | SHAPING

FLOATS_ONLY = frozenset({"Div", "Pow", "Reciprocal"})
"""Operators that accept no integers, because an integer division by zero ends the process."""


OPSETS = range(17, 24)
"""Supported versions of ONNX operators."""

MAX_NODES = 2_000
MAX_AXES = 8

_FLOAT, _INT32, _INT64, _BOOL = 1, 6, 7, 9
_DTYPES: dict[int, np.dtype[Any]] = {
    _FLOAT: np.dtype("<f4"),
    _INT32: np.dtype("<i4"),
    _INT64: np.dtype("<i8"),
    _BOOL: np.dtype("?"),
}
_NUMBERS, _TENSOR = {1, 2, 3, 6, 7}, 4
"""Types of attributes: float, int, text, floats, ints; and a tensor."""


def check_model(data: bytes, shapes: Shapes) -> None:
    """Check a model without running it.

    Raises
    ------
    RejectedError
        With the reason.
    """
    model = parse_model(data)
    if model.functions or model.training_info:
        raise RejectedError("the model contains functions or training code, which policies may not")
    opsets = [(each.domain, each.version) for each in model.opset_import]
    if len(opsets) != 1 or opsets[0][0] not in ("", "ai.onnx") or opsets[0][1] not in OPSETS:
        raise RejectedError(
            f"the model uses operators of {opsets[:5]}; a policy uses ONNX's own, version {OPSETS[0]} to {OPSETS[-1]}"
        )
    graph = model.graph
    if graph.sparse_initializer:
        raise RejectedError("the model has sparse weights; policies have plain ones")
    types = _check_values("input", graph.input, shapes.inputs)
    for weight in graph.initializer:
        _check_weight(weight)
        _add(types, weight.name, weight.data_type)
    if not 0 < len(graph.node) <= MAX_NODES:
        raise RejectedError(f"the model has {len(graph.node)} operators; a policy has 1 to {MAX_NODES}")
    for node in graph.node:
        _check_node(node, types)
    for name in _check_values("output", graph.output, shapes.outputs):
        if types.get(name) != _FLOAT:
            raise RejectedError(f"nothing in the model makes its output {name!r}")


def _check_node(node: Any, types: dict[str, int]) -> None:  # noqa: ANN401
    """Check one operator, and record the types of its outputs."""
    kind = node.op_type
    if node.domain not in ("", "ai.onnx") or node.overload or kind not in OPERATORS:
        raise RejectedError(f"the model uses the operator {_shown(node.domain, kind)}, which policies may not use")
    for attribute in node.attribute:
        _check_attribute(kind, attribute)
    for name in filter(None, node.input):
        if name not in types:
            raise RejectedError(f"operator {kind} uses {name[:80]!r}, which nothing before it makes")
    taken = [types[name] for name in node.input if name]
    if kind in FLOATS_ONLY and any(each != _FLOAT for each in taken):
        raise RejectedError(f"operator {kind} is given integers; a policy may use it for floating-point numbers only")
    for name in filter(None, node.output):
        _add(types, name, _type_out(kind, node, taken))


def _type_out(kind: str, node: Any, taken: list[int]) -> int:  # noqa: ANN401
    """Return the type of an operator's output."""
    if kind in TO_BOOL:
        return _BOOL
    if kind == "Shape":
        return _INT64
    if kind == "Cast":
        found = next((each.i for each in node.attribute if each.name == "to"), _FLOAT)
        if found not in _DTYPES:
            raise RejectedError(f"the model casts to type {found}; a policy computes in 32-bit floats")
        return int(found)
    if kind in ("Constant", "ConstantOfShape"):
        return _type_of_constant(node.attribute)
    if not taken:
        raise RejectedError(f"operator {kind} has no inputs")
    return taken[1] if kind == "Where" and len(taken) > 1 else taken[0]


def _type_of_constant(attributes: Iterable[Any]) -> int:
    """Return the type of a constant: of its tensor or number."""
    for each in attributes:
        if each.type == _TENSOR:
            return int(each.t.data_type)
        if each.name in ("value_int", "value_ints"):
            return _INT64
    return _FLOAT


def _check_attribute(kind: str, attribute: Any) -> None:  # noqa: ANN401
    if attribute.g or attribute.graphs:
        raise RejectedError(f"operator {kind} contains a graph; policies have neither branches nor loops")
    if attribute.ref_attr_name or attribute.type not in {*_NUMBERS, _TENSOR}:
        raise RejectedError(f"operator {kind} has an attribute {attribute.name[:80]!r} of a kind that no policy needs")
    if attribute.type == _TENSOR:
        _check_weight(attribute.t)
    if not all(map(isfinite, (attribute.f, *attribute.floats))):
        raise RejectedError(f"operator {kind} has an attribute {attribute.name[:80]!r} that is no finite number")


def _check_weight(weight: Any) -> None:  # noqa: ANN401
    """Reject external weights, and weights of the wrong length or type."""
    named = f"weight {weight.name[:80]!r}"
    if weight.external_data or weight.data_location:
        raise RejectedError(f"{named} lies in another file; a policy file holds all of its weights")
    dtype = _DTYPES.get(weight.data_type)
    if dtype is None:
        raise RejectedError(
            f"{named} is of type {weight.data_type}; policies have 32-bit floats, integers and booleans"
        )
    if len(weight.dims) > MAX_AXES or min(weight.dims, default=1) < 0:
        raise RejectedError(f"{named} has an impossible shape")
    if prod(weight.dims) * dtype.itemsize != len(weight.raw_data):
        raise RejectedError(f"{named} has {len(weight.raw_data)} bytes, which is not what its shape takes")
    if weight.data_type == _FLOAT and not np.isfinite(np.frombuffer(weight.raw_data, dtype)).all():
        raise RejectedError(f"{named} holds NaN or infinity")


def _check_values(what: str, values: Any, wanted: tuple[Tensor, ...]) -> dict[str, int]:  # noqa: ANN401
    """Compare inputs or outputs with those of the level; return their types by name."""
    found = tuple(Tensor(each.name, _lengths(each.type.tensor_type.shape)) for each in values)
    kinds = {each.type.tensor_type.elem_type for each in values}
    if kinds != {_FLOAT} or len(found) != len(wanted) or not all(map(_matches, found, wanted)):
        raise RejectedError(
            f"the model has {what}s {_written(found)}; this level has {_written(wanted)}, 32-bit floats"
        )
    return {each.name: _FLOAT for each in found}


def _lengths(shape: Any) -> tuple[Length, ...]:  # noqa: ANN401
    """Return the axes of a shape: a number or a name; 0 for an undefined axis."""
    return tuple(each.dim_param or each.dim_value for each in shape.dim)


def _matches(found: Tensor, wanted: Tensor) -> bool:
    return (
        found.name == wanted.name
        and len(found.shape) == len(wanted.shape)
        and all(
            isinstance(has, str) if isinstance(axis, str) else has == axis
            for has, axis in zip(found.shape, wanted.shape, strict=True)
        )
    )


def _written(tensors: tuple[Tensor, ...]) -> str:
    """Format names and shapes on one short line."""
    text = ", ".join(f"{each.name[:80]}({', '.join(str(axis)[:20] for axis in each.shape)})" for each in tensors[:5])
    return ascii(text)[1:-1] or "none"


def _add(types: dict[str, int], name: str, kind: int) -> None:
    if not name or name in types:
        raise RejectedError(f"the model has two results named {name[:80]!r}, or one without a name")
    types[name] = kind


def _shown(domain: str, kind: str) -> str:
    return ascii(f"{domain}.{kind}"[:80] if domain else kind[:80])
