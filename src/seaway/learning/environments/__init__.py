"""Gymnasium environments for episodes of the real engine.

Importing this package registers them, so that gymnasium can create single and vector environments by name:

>>> import gymnasium
>>> import seaway.learning.environments
>>> from seaway.learning.instances.wide import kind_of
>>> one = gymnasium.make("seaway/Cluster-v1", source=kind_of("placement"))
>>> many = gymnasium.make_vec("seaway/Node-v1", num_envs=4, vectorization_mode="sync", source=kind_of("any"))

With ``vectorization_mode="async"`` each environment has its own process. A step takes about 50 microseconds, less than
the communication with a process. Processes are useful for slow learners or large instances.
"""

from __future__ import annotations

import gymnasium

CLUSTER_ENV, NODE_ENV = "seaway/Cluster-v1", "seaway/Node-v1"
"""Identifiers for `gymnasium.make`. Other arguments are those of `ClusterEnv` and `NodeEnv`."""

gymnasium.register(CLUSTER_ENV, "seaway.learning.environments.cluster_env:ClusterEnv")
gymnasium.register(NODE_ENV, "seaway.learning.environments.node_env:NodeEnv")
