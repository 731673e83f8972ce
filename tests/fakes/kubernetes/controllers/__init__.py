"""Stand-ins for Kubernetes' controllers, scheduler and kubelets; they act at once, when something changes."""
