"""Rendering of deployments to Kubernetes objects, as plain dicts and without I/O.

The modules, from the bottom up: `manifest` groups the replicas that share a pod template, and `names` names their
objects. `pinning` requests devices in the terms of a node's device plugin. `pods` renders pod templates, and a module
for each template renders workloads from them. `registry` has the templates by name. `catalog` and `user` read custom
templates, `safety` validates them, `placeholders` fills them in, and `pin_pod_template` in `pods` adds Seaway's fields.
`karmada` adds the policies of Karmada.

A workload is rendered without its pins, which are stored with it (`manifest`). A direct deployment merges the pins
into the workload; Karmada gets them as an OverridePolicy.
"""
