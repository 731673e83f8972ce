"""The REST API under load: submits, jobs brought to running, a full store, and many listeners."""
