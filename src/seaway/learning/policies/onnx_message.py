"""Parser of ONNX models without the package onnx, limited to the allowed parts of the format.

A model with a field that is in no table is rejected, so that only checked parts reach the runtime. Some fields that
policies must not use have names here, so that errors can mention them.

References
----------
onnx/onnx.proto3 of ONNX 1.19 (IR version 10 to 12).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from seaway.domain.errors import RejectedError

PACKAGE = "seaway.onnx"
MISSING = "trained policies need onnxruntime: pip install 'seaway[policy]'"

MESSAGES: dict[str, dict[int, str]] = {
    "Model": {
        1: "ir_version int64",
        2: "producer_name string",
        3: "producer_version string",
        7: "graph Graph",
        8: "opset_import Opset*",
        20: "training_info bytes*",
        25: "functions bytes*",
    },
    "Opset": {1: "domain string", 2: "version int64"},
    "Graph": {
        1: "node Node*",
        2: "name string",
        5: "initializer Tensor*",
        11: "input Value*",
        12: "output Value*",
        15: "sparse_initializer bytes*",
    },
    "Node": {
        1: "input string*",
        2: "output string*",
        3: "name string",
        4: "op_type string",
        5: "attribute Attribute*",
        7: "domain string",
        8: "overload string",
    },
    "Attribute": {
        1: "name string",
        2: "f float",
        3: "i int64",
        4: "s bytes",
        5: "t Tensor",
        6: "g bytes",
        7: "floats float*",
        8: "ints int64*",
        11: "graphs bytes*",
        20: "type int32",
        21: "ref_attr_name string",
    },
    "Tensor": {
        1: "dims int64*",
        2: "data_type int32",
        8: "name string",
        9: "raw_data bytes",
        13: "external_data bytes*",
        14: "data_location int32",
    },
    "Value": {1: "name string", 2: "type Type"},
    "Type": {1: "tensor_type TensorType"},
    "TensorType": {1: "elem_type int32", 2: "shape Shape"},
    "Shape": {1: "dim Dimension*"},
    "Dimension": {1: "dim_value int64", 2: "dim_param string"},
}
"""Messages and their fields by number: name and type, with a star for repeated fields."""

_SCALARS = {"int64": 3, "float": 2, "int32": 5, "string": 9, "bytes": 12}
_MESSAGE, _OPTIONAL, _REPEATED = 11, 1, 3


def parse_model(data: bytes) -> Any:  # noqa: ANN401
    """Parse the message `Model`.

    Raises
    ------
    RejectedError
        When the data is invalid, or contains a field that is in no table.
    """
    model = model_class()()
    from google.protobuf.message import DecodeError

    try:
        model.ParseFromString(data)
    except (DecodeError, ValueError) as error:
        raise RejectedError(f"not an ONNX model, or a broken one: {error}") from None
    size = model.ByteSize()
    model.DiscardUnknownFields()
    if model.ByteSize() != size:
        raise RejectedError("the model has parts that no policy needs, such as texts of its exporter; leave them out")
    return model


@lru_cache(1)
def model_class() -> Any:  # noqa: ANN401
    """Return the class of the message `Model`, from a separate descriptor pool, so that it does not conflict with onnx.

    Raises
    ------
    RejectedError
        When protobuf, which comes with onnxruntime, is not installed.
    """
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError:
        raise RejectedError(MISSING) from None
    file = descriptor_pb2.FileDescriptorProto(name="seaway/onnx.proto", package=PACKAGE, syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, text in fields.items():
            field_name, kind = text.split()
            field = message.field.add(name=field_name, number=number)
            field.label = _REPEATED if kind.endswith("*") else _OPTIONAL
            kind = kind.removesuffix("*")
            if kind in _SCALARS:
                field.type = _SCALARS[kind]
            else:
                field.type = _MESSAGE
                field.type_name = f".{PACKAGE}.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.Model"))
