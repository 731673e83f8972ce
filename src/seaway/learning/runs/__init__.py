"""Training runs: folders with configuration, checkpoints, episodes and the best policy."""
