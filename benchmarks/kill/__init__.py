"""Killing the control plane over and over, and proving that nothing is lost and nothing is doubled.

`nursery` forks control planes that kill themselves at a step they are told, `clusters` outlives them,
`load` submits and changes jobs all the while, and `harness` brings them together and looks at what is left.
"""
