"""The network as the control plane knows it: how it is meant to be, what agents report, what decisions go by."""
