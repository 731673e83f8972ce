"""Repeated kills of the control plane, with a proof that nothing is lost or duplicated.

`nursery` forks control planes that kill themselves at a given step. `clusters` survives them. `load` submits and
changes jobs all the time. `harness` combines them and checks the result.
"""
