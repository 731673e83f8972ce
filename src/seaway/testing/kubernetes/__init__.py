"""A Kubernetes and Karmada API server in memory, for tests and benchmarks, behind real HTTP on loopback."""

from seaway.testing.kubernetes.controllers.kubelet import Pace
from seaway.testing.kubernetes.faults import Fault
from seaway.testing.kubernetes.karmada.members import KarmadaPace
from seaway.testing.kubernetes.karmada.world import KarmadaWorld, control_server
from seaway.testing.kubernetes.server import ApiServer

__all__ = ["ApiServer", "Fault", "KarmadaPace", "KarmadaWorld", "Pace", "control_server"]
