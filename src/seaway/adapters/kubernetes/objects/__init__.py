"""Kubernetes' objects, as far as Seaway reads them, by what they are, and how they are decoded."""
