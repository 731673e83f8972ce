"""What a deployment becomes in Kubernetes: objects as plain dicts, without any I/O.

From the bottom up. `parts` groups the replicas that one pod template can serve, and `names` names their objects.
`pinning` and `claims` say by which words a node's vGPU layer is asked for devices, `pods` writes pod templates, and a
module for each template puts them into workloads. `registry` has the templates by name; `folder`, `documents` and
`user` read those that people write, `safety` says what may stand in them, `placeholders` fills them in and `graft`
puts Seaway's part into them. `karmada` wraps what is to go through Karmada.

A workload is written without its pins, which are kept beside it (`manifest`): sent straight into a cluster they
are put in, sent through Karmada they become an OverridePolicy.
"""
