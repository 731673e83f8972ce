"""Real clusters: what Kubernetes, vGPU layers and Karmada show of themselves, and how they are told. See ADR 12."""
