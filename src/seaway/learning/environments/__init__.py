"""Environments as gymnasium has them, on episodes of the real engine.

Importing this package registers them, so that gymnasium makes them by name, one or many at once:

>>> import gymnasium
>>> import seaway.learning.environments
>>> from seaway.learning.instances.wide import kind_of
>>> one = gymnasium.make("seaway/Cluster-v1", source=kind_of("placement"))
>>> many = gymnasium.make_vec("seaway/Node-v1", num_envs=4, vectorization_mode="sync", source=kind_of("any"))

With ``vectorization_mode="async"`` each has a process of its own. A step takes some 50 microseconds, less than it takes
to tell another process of it: that pays where a learner is slow with each step, or instances are large.
"""

from __future__ import annotations

import gymnasium

CLUSTER_ENV, NODE_ENV = "seaway/Cluster-v1", "seaway/Node-v1"
"""Names for `gymnasium.make`, whose other arguments are those of `ClusterEnv` and `NodeEnv`."""

gymnasium.register(CLUSTER_ENV, "seaway.learning.environments.cluster_env:ClusterEnv")
gymnasium.register(NODE_ENV, "seaway.learning.environments.node_env:NodeEnv")
