"""The operators that a model may consist of: no loops, branches, calls, random numbers, files, or others' operators."""

from __future__ import annotations

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

MOVING = frozenset(
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

OPERATORS = TO_BOOL | ARITHMETIC | MOVING

FLOATS_ONLY = frozenset({"Div", "Pow", "Reciprocal"})
"""Operators that may not see integers: a division of integers by zero ends the process."""
