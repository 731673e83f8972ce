"""Read-only views of the fleet, its queues and its history."""
