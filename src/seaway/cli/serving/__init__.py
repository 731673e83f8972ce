"""Commands that run a server: the control plane and simulated clusters."""
