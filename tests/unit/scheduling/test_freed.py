import numpy as np

from seaway.scheduling.kernels.queries import fitting_demands
from seaway.testing.plugins import gpu, job, node
from tests.unit.scheduling.requesting import place, refusals, snapshot_of


def test_fit_on_some_nodes_agrees_with_filters() -> None:
    """A demand fits some nodes exactly when the filters do not reject it on all of them."""
    snapshot = snapshot_of(node(gpu(model="NVIDIA L4")), node(gpu(), gpu()), node(cpu_milli=500))
    place(snapshot, job(gpus=1, gpu_milli=600, gpu_memory_mib=9, models={"NVIDIA L4"}))
    jobs = [
        job(gpus=1, gpu_milli=400, gpu_memory_mib=9),
        job(gpus=1, gpu_milli=500, gpu_memory_mib=9),
        job(gpus=2),
        job(gpus=3),
        job(gpus=1, models={"NVIDIA T4"}),
        job(cpu_milli=500),
        job(cpu_milli=501),
    ]
    lines = np.array([snapshot.demands.index(each.demand) for each in jobs], np.int64)
    for nodes in ([0], [1], [2], [0, 2], [0, 1, 2], []):
        found = fitting_demands(snapshot.arrays, snapshot.demands.arrays, lines, np.array(nodes, np.int64))
        twin = [any(refusals(snapshot, each)[n] == "" for n in nodes) for each in jobs]
        assert found.tolist() == twin
