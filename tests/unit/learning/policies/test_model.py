"""Checks of models."""

# ruff: noqa: ANN401  # messages that protobuf makes have no types

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import pytest

from seaway.domain.errors import RejectedError
from seaway.learning.observing import clusters, nodes
from seaway.learning.policies import check
from seaway.learning.policies.check import check_policy, check_speed
from seaway.learning.policies.file import Level, PolicyFile, Trial
from seaway.learning.policies.onnx_message import parse_model
from seaway.learning.policies.session import FEATURES, JOB_FEATURES, NODE_FEATURES, Session, StoppedError, shapes_of
from tests.fakes.policies import cluster_policy, node_policy, policy_file

Spoil = Callable[[Any], object]


def spoiled(spoil: Spoil, file: PolicyFile | None = None) -> PolicyFile:
    """Return a policy file with a modified model and a matching digest."""
    file = file or cluster_policy()
    model = parse_model(file.model)
    spoil(model)
    return policy_file(file.manifest, model.SerializeToString(), file.trials)


def add_node(model: Any, kind: str, taken: list[str], made: list[str], **fields: Any) -> Any:
    """Put an operator at the end of a model."""
    return model.graph.node.add(op_type=kind, input=taken, output=made, **fields)


def _poison(value: float) -> Spoil:
    def spoil(model: Any) -> None:
        weight = model.graph.initializer[0]
        weight.raw_data = struct.pack("<f", value) + weight.raw_data[4:]

    return spoil


def _attribute(**fields: Any) -> Spoil:
    return lambda model: model.graph.node[0].attribute.add(name="alpha", **fields)


def _weight(**fields: Any) -> Spoil:
    return lambda model: model.graph.initializer.add(**{"name": "x", "data_type": 1, "dims": [1], **fields})


def _rename_input(model: Any) -> None:
    model.graph.input[0].name = "state"


def _widen(model: Any) -> None:
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 13


def _unname(model: Any) -> None:
    model.graph.input[0].type.tensor_type.elem_type = 11


def _domain(model: Any) -> None:
    model.graph.node[0].domain = "com.microsoft"


def _reorder(model: Any) -> None:
    first = type(model.graph.node[0])()
    first.CopyFrom(model.graph.node[0])
    del model.graph.node[0]
    model.graph.node.append(first)


def _many(model: Any) -> None:
    for number in range(2001):
        add_node(model, "Identity", ["w"], [f"w{number}"])


def _divide(model: Any) -> None:
    add_node(model, "Shape", ["w"], ["size"])
    add_node(model, "Sub", ["size", "size"], ["zero"])
    add_node(model, "Div", ["size", "zero"], ["end"])


SPOILT: list[tuple[Spoil, str]] = [
    (lambda model: model.functions.append(b"x"), "functions or training"),
    (lambda model: model.training_info.append(b"x"), "functions or training"),
    (lambda model: model.opset_import.add(domain="evil", version=1), "operators of"),
    (lambda model: setattr(model.opset_import[0], "version", 99), "version 17 to 23"),
    (lambda model: model.graph.sparse_initializer.append(b"x"), "sparse weights"),
    (_domain, "operator 'com.microsoft.Gemm'"),
    (lambda model: add_node(model, "Loop", [], ["x"]), "operator 'Loop'"),
    (lambda model: add_node(model, "RandomNormal", [], ["x"]), "operator 'RandomNormal'"),
    (lambda model: add_node(model, "Relu", ["w"], ["x"], overload="mine"), "operator 'Relu'"),
    (lambda model: add_node(model, "Relu", ["nowhere"], ["x"]), "nothing before it makes"),
    (lambda model: add_node(model, "Relu", ["w"], ["action"]), "two results named"),
    (lambda model: add_node(model, "Relu", [], ["x"]), "has no inputs"),
    (_reorder, "nothing before it makes"),
    (_many, "a policy has 1 to 2000"),
    (_divide, "floating-point numbers only"),
    (lambda model: model.graph.node.pop(), "nothing in the model makes its output 'action'"),
    (_attribute(g=b"x", type=5), "contains a graph"),
    (_attribute(graphs=[b"x"], type=10), "contains a graph"),
    (_attribute(ref_attr_name="a", type=1), "of a kind that no policy needs"),
    (_attribute(type=8), "of a kind that no policy needs"),
    (_attribute(f=float("nan"), type=1), "no finite number"),
    (_attribute(floats=[1, float("inf")], type=6), "no finite number"),
    (_poison(float("nan")), "NaN or infinity"),
    (_poison(float("-inf")), "NaN or infinity"),
    (_weight(external_data=[b"x"]), "lies in another file"),
    (_weight(data_location=1), "lies in another file"),
    (_weight(data_type=8), "is of type 8"),
    (_weight(raw_data=b"xyz"), "has 3 bytes"),
    (_weight(dims=[2**40, 2**40]), "has 0 bytes"),
    (_weight(dims=[-1]), "impossible shape"),
    (_weight(dims=[1] * 9, raw_data=b"abcd"), "impossible shape"),
    (_rename_input, r"the model has inputs state\(1, 12\)"),
    (_widen, r"the model has inputs observation\(1, 13\)"),
    (_unname, "32-bit floats"),
    (lambda model: model.graph.input.add(name="more"), "the model has inputs observation"),
    (lambda model: model.graph.output.pop(), "the model has outputs none"),
]


@pytest.mark.parametrize(("spoil", "says"), SPOILT, ids=range(len(SPOILT)))
def test_models_that_are_not_allowed_are_rejected(spoil: Spoil, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has the reason, and the model is not loaded."""
    monkeypatch.setattr(check, "Session", None)
    with pytest.raises(RejectedError, match=says):
        check_policy(spoiled(spoil))


def test_unknown_fields_are_rejected() -> None:
    """The runtime might interpret fields that were not checked."""
    file = cluster_policy()
    with pytest.raises(RejectedError, match="parts that no policy needs"):
        check_policy(policy_file(file.manifest, file.model + b"\x32\x01x", file.trials))
    with pytest.raises(RejectedError, match="not an ONNX model"):
        check_policy(policy_file(file.manifest, file.model[:-1], file.trials))


def _inflate(model: Any) -> None:
    """Multiply something large by itself, which takes 40 GB."""
    size = np.array([100_000, 100_000])
    model.graph.initializer.add(name="size", data_type=7, dims=[2], raw_data=size.tobytes())
    add_node(model, "Expand", ["b", "size"], ["large"])


def test_models_above_the_memory_limit_are_rejected() -> None:
    """Their allocation fails without an effect on the process."""
    with pytest.raises(RejectedError, match="the model fails"):
        check_policy(spoiled(_inflate))
    check_policy(cluster_policy())


def _dawdle(model: Any) -> None:
    """Multiply matrices for an hour."""
    size = np.array([1500, 1500])
    model.graph.initializer.add(name="size", data_type=7, dims=[2], raw_data=size.tobytes())
    add_node(model, "Expand", ["b", "size"], ["m0"])
    for number in range(1900):
        add_node(model, "MatMul", [f"m{number}", "m0"], [f"m{number + 1}"])


def test_slow_models_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials have a time limit, before the model runs without one."""
    monkeypatch.setattr(check, "TRIAL_TIMEOUT_S", 0.3)
    begun = time.process_time()
    with pytest.raises(RejectedError, match="the model fails"):
        check_policy(spoiled(_dawdle))
    assert time.process_time() - begun < 30


def test_stopping_a_run_does_not_affect_others() -> None:
    """Runs at the same time and later ones return their outputs, also on other threads."""
    slow, quick = spoiled(_dawdle), node_policy()
    slow_session, session = Session(slow, optimised=False), Session(quick)
    stopped: list[str] = []

    def run() -> None:
        with pytest.raises(StoppedError) as caught:
            slow_session.run_within(slow.trials[0].inputs, 0.2)
        stopped.append(caught.value.message)

    thread = threading.Thread(target=run)
    thread.start()
    for trial in quick.trials:
        assert trial.reproduced_by(session.run_within(trial.inputs, 30))
    thread.join()
    assert stopped == ["the model fails: stopped after 0.2 s"]
    for trial in quick.trials:
        assert trial.reproduced_by(session.run_within(trial.inputs, 30))


def test_errors_within_the_time_limit_are_reported() -> None:
    """The original error is raised."""
    with pytest.raises(RejectedError, match="the model fails") as caught:
        Session(node_policy()).run_within({}, 30)
    assert not isinstance(caught.value, StoppedError)


def test_policies_slower_than_the_limit_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials must complete within the limit; without a limit there is no check."""
    file = node_policy()
    check_speed(file, 1)
    check_speed(file, 0)

    def stopped(*_: object) -> NoReturn:
        raise StoppedError("the model fails")

    monkeypatch.setattr(Session, "run_within", stopped)
    with pytest.raises(RejectedError, match=r"does not answer trial 0 within 20 ms.*policies\.budget_ms"):
        check_speed(file, 0.02)


def test_inputs_of_another_shape_are_rejected() -> None:
    """A session checks the shapes of its inputs."""
    session = Session(node_policy())
    nodes, job = np.ones((5, NODE_FEATURES), np.float32), np.ones(JOB_FEATURES, np.float32)
    assert session.run({"nodes": nodes, "job": job})["scores"].shape == (5,)
    for wrong in ({"nodes": nodes}, {"nodes": nodes[:, :2], "job": job}, {"nodes": nodes.astype(int), "job": job}):
        with pytest.raises(RejectedError, match="the model fails"):
            session.run(wrong)


def test_answers_have_a_tolerance() -> None:
    """The last digits may differ, but not values or names of outputs."""
    trial = Trial({}, {"action": np.array([[0.5]], np.float32)})
    assert trial.reproduced_by({"action": np.array([[0.5002]], np.float32)})
    assert not trial.reproduced_by({"action": np.array([[0.51]], np.float32)})
    assert not trial.reproduced_by({"action": np.array([[np.nan]], np.float32)})
    assert not trial.reproduced_by({"action": np.array([0.5], np.float32)})
    assert not trial.reproduced_by({})


def test_lengths_of_inputs_equal_the_observations() -> None:
    """Constants that are repeated without the engine agree with it."""
    assert {Level.CLUSTER: clusters.VERSION, Level.NODE: nodes.VERSION} == FEATURES
    assert (nodes.NODE_FEATURES, nodes.JOB_FEATURES) == (NODE_FEATURES, JOB_FEATURES)
    for network in (False, True):
        (shown,) = shapes_of(cluster_policy(clusters=3, network=network).manifest).inputs
        assert shown.shape == (1, clusters.observation_size(3, network=network))
