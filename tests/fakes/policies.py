"""Small untrained policies, without torch and onnx: random weights, models of a few operators.

>>> cluster_policy(clusters=2).manifest.level.value
'cluster'
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from seaway.learning.policies.file import Level, Manifest, PolicyFile, Trial
from seaway.learning.policies.onnx_message import model_class
from seaway.learning.policies.session import JOB_FEATURES, NODE_FEATURES, Shapes, shapes_of

OPSET = 18
TRIALS = 3

Weights = Mapping[str, NDArray[Any]]
Operator = tuple[str, Sequence[str], str]
"""Type, inputs and output of an operator."""

_TYPES = {"float32": 1, "int64": 7}


def cluster_policy(name: str = "tiny", *, clusters: int = 2, network: bool = False, seed: int = 0) -> PolicyFile:
    """Create a policy of level cluster: tanh of a weighted sum of its observation."""
    manifest = Manifest(
        name, "ddpg", Level.CLUSTER, 1, "", clusters, network, fitting=network, says="weights by lot", made_by="a test"
    )
    shapes = shapes_of(manifest)
    length = 8 * clusters + 8 if network else 4 * clusters + 4
    random = np.random.default_rng(seed)
    weights = {"w": random.normal(size=(length, 1)).astype(np.float32), "b": random.normal(size=1).astype(np.float32)}
    model = make_model(shapes, weights, [("Gemm", ["observation", "w", "b"], "sum"), ("Tanh", ["sum"], "action")])
    shown = [random.random((1, length), np.float32) for _ in range(TRIALS)]
    trials = [Trial({"observation": each}, {"action": np.tanh(each @ weights["w"] + weights["b"])}) for each in shown]
    return policy_file(manifest, model, trials)


def node_policy(name: str = "tiny", *, seed: int = 0) -> PolicyFile:
    """Create a policy of level node: a weighted sum of the features of each node, and one of the job's for waiting."""
    manifest = Manifest(name, "pilot", Level.NODE, 1, "", says="weights by lot", made_by="a test")
    random = np.random.default_rng(seed)
    weights: dict[str, NDArray[Any]] = {
        "w": random.normal(size=(NODE_FEATURES, 1)).astype(np.float32),
        "v": random.normal(size=(JOB_FEATURES, 1)).astype(np.float32),
        "flat": np.array([-1]),
    }
    operators: list[Operator] = [
        ("MatMul", ["nodes", "w"], "column"),
        ("Reshape", ["column", "flat"], "scores"),
        ("MatMul", ["job", "v"], "wait"),
    ]
    model = make_model(shapes_of(manifest), weights, operators)
    trials = []
    for count in range(1, TRIALS + 1):
        nodes, job = random.random((count, NODE_FEATURES), np.float32), random.random(JOB_FEATURES, np.float32)
        outputs = {"scores": (nodes @ weights["w"])[:, 0], "wait": job @ weights["v"]}
        trials.append(Trial({"nodes": nodes, "job": job}, outputs))
    return policy_file(manifest, model, trials)


def policy_file(manifest: Manifest, model: bytes, trials: Sequence[Trial]) -> PolicyFile:
    """Create a policy file, with the digest of its model in the manifest."""
    return PolicyFile(replace(manifest, model_sha256=sha256(model).hexdigest()), model, tuple(trials))


def make_model(shapes: Shapes, weights: Weights, operators: Sequence[Operator]) -> bytes:
    """Write an ONNX model with the inputs and outputs of `shapes`."""
    model: Any = model_class()()
    model.ir_version = 9
    model.opset_import.add(version=OPSET)
    model.graph.name = "policy"
    for what, tensors in ((model.graph.input, shapes.inputs), (model.graph.output, shapes.outputs)):
        for tensor in tensors:
            value = what.add(name=tensor.name)
            value.type.tensor_type.elem_type = 1
            for axis in tensor.shape:
                dim = value.type.tensor_type.shape.dim.add()
                if isinstance(axis, int):
                    dim.dim_value = axis
                else:
                    dim.dim_param = axis
    for name, values in weights.items():
        retained = model.graph.initializer.add(
            name=name, data_type=_TYPES[str(values.dtype)], raw_data=values.tobytes()
        )
        retained.dims.extend(values.shape)
    for kind, taken, made in operators:
        model.graph.node.add(op_type=kind, input=taken, output=[made])
    return bytes(model.SerializeToString(deterministic=True))
