"""Export of an actor as a policy file."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from msgspec.structs import replace
from numpy.typing import NDArray

from seaway.domain.errors import RejectedError
from seaway.learning.policies.check import read_policy
from seaway.learning.policies.file import MAX_TRIALS, Manifest, PolicyFile, Trial, pack
from seaway.learning.policies.session import Shapes, shapes_of

if TYPE_CHECKING:
    from collections.abc import Iterator

OPSET = 18
MAX_NODES_AT_ONCE = 1_000_000
"""Maximum number of nodes in one call of a model."""

Inputs = Mapping[str, NDArray[np.float32]]


def export_actor(actor: torch.nn.Module, manifest: Manifest, trials: Sequence[Inputs]) -> PolicyFile:
    """Return an actor as a policy file with the same answers.

    Parameters
    ----------
    actor
        Module with the inputs and outputs of its level, see `seaway.learning.policies.session`: (1, O) -> (1, 1) for
        clusters, (N, F), (G,) -> (N,), (1,) for nodes, for any N. It is not changed or moved to another device.
    manifest
        Description of the policy; the digest is set here.
    trials
        Inputs for recorded answers, 1 to 16, with a few realistic sizes of fleet.

    Returns
    -------
    PolicyFile
        The policy file, checked as in `seaway.learning.policies.check`.

    Raises
    ------
    RejectedError
        When the actor cannot be exported, or the model gives other answers than the actor.
    """
    shapes = shapes_of(manifest)
    if not 1 <= len(trials) <= MAX_TRIALS:
        raise RejectedError(f"a policy file has 1 to {MAX_TRIALS} trials, not {len(trials)}")
    was_training = actor.training
    actor.eval()
    try:
        recorded = tuple(_record(actor, shapes, each) for each in trials)
        model = _model(actor, shapes, recorded[0].inputs)
    finally:
        actor.train(was_training)
    file = PolicyFile(replace(manifest, model_sha256=sha256(model).hexdigest()), model, recorded)
    return read_policy(pack(file))


def _record(actor: torch.nn.Module, shapes: Shapes, inputs: Inputs) -> Trial:
    """Record the answers of the actor to some inputs."""
    given = {each.name: np.ascontiguousarray(inputs[each.name], dtype=np.float32) for each in shapes.inputs}
    try:
        with torch.inference_mode():
            answer = actor(*(_tensor(actor, each) for each in given.values()))
    except (RuntimeError, TypeError) as error:
        shapes_text = ", ".join(f"{name}{each.shape}" for name, each in given.items())
        raise RejectedError(f"the actor does not accept the inputs of its level, {shapes_text}: {error}") from error
    answers = answer if isinstance(answer, tuple) else (answer,)
    names = [each.name for each in shapes.outputs]
    if len(answers) != len(names):
        raise RejectedError(f"the actor gives {len(answers)} outputs; a policy of its level gives {', '.join(names)}")
    return Trial(given, {name: each.cpu().numpy() for name, each in zip(names, answers, strict=True)})


def _tensor(actor: torch.nn.Module, values: NDArray[np.float32]) -> torch.Tensor:
    device = next(actor.parameters()).device
    return torch.from_numpy(values.copy()).to(device)


def _model(actor: torch.nn.Module, shapes: Shapes, example: Inputs) -> bytes:
    """Export the model with torch, and remove unused parts."""
    letters = {axis for each in shapes.inputs for axis in each.shape if isinstance(axis, str)}
    dims = {letter: torch.export.Dim(letter, min=1, max=MAX_NODES_AT_ONCE) for letter in letters}
    dynamic = tuple(
        {number: dims[axis] for number, axis in enumerate(each.shape) if isinstance(axis, str)}
        for each in shapes.inputs
    )
    with _quiet(), _reported():
        program = torch.onnx.export(
            actor,
            tuple(_tensor(actor, _repeat_single(example[each.name], each.shape)) for each in shapes.inputs),
            input_names=[each.name for each in shapes.inputs],
            output_names=[each.name for each in shapes.outputs],
            dynamic_shapes=dynamic if dims else None,
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
        )
    return _strip(program.model_proto, shapes)


def _repeat_single(values: NDArray[np.float32], shape: tuple[Any, ...]) -> NDArray[np.float32]:
    """Repeat values along dynamic axes of length 1, because torch would export these lengths as constants."""
    for number, axis in enumerate(shape):
        if isinstance(axis, str) and values.shape[number] == 1:
            values = np.repeat(values, 3, axis=number)
    return values


def _strip(model: Any, shapes: Shapes) -> bytes:  # noqa: ANN401
    """Retain operators, weights, inputs and outputs; remove metadata with paths of this machine."""
    import onnx
    from onnx import numpy_helper

    nodes = [
        onnx.helper.make_node(each.op_type, each.input, each.output, domain=each.domain) for each in model.graph.node
    ]
    for node, each in zip(nodes, model.graph.node, strict=True):
        node.attribute.extend(each.attribute)
        for attribute in node.attribute:
            attribute.ClearField("doc_string")
            if attribute.HasField("t"):
                attribute.t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(attribute.t)))
    weights = [numpy_helper.from_array(numpy_helper.to_array(each), each.name) for each in model.graph.initializer]
    floats = onnx.TensorProto.FLOAT
    inputs, outputs = (
        [onnx.helper.make_tensor_value_info(each.name, floats, each.shape) for each in tensors] for tensors in shapes
    )
    graph = onnx.helper.make_graph(nodes, "policy", inputs, outputs, weights)
    opsets = [each for each in model.opset_import if any(node.domain == each.domain for node in nodes)]
    bare = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=min(model.ir_version, 10))
    return bytes(bare.SerializeToString(deterministic=True))


@contextmanager
def _reported() -> Iterator[None]:
    """Convert errors of torch's exporter to one line."""
    try:
        yield
    except torch.onnx.OnnxExporterError as error:
        cause = str(error.__cause__ or error).strip().partition("\n")[0]
        raise RejectedError(f"the actor cannot be written as a plain graph: {cause}") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress warnings of torch's exporter about optional packages and deprecations."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            warnings.simplefilter("ignore", FutureWarning)
            yield
    finally:
        logger.setLevel(before)
