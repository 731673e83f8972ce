"""What nodes and pods say of devices, in the words of each vGPU layer; no I/O, and nothing broken ever raises.

`nodes.read_node` and `pods.read_pod` are the doors. Each other module is one dialect, or a part of one.
"""
