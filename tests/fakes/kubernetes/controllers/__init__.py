"""Fakes of Kubernetes' controllers, scheduler and kubelets; they act immediately when an object changes."""
