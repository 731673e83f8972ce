"""The published baselines of EADE-DDPG, from Stable-Baselines3, in the same environment."""
