"""The published rivals of EADE-DDPG, from Stable-Baselines3, on the same environment."""
