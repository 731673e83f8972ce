"""Agents of our own: EADE-DDPG and DDPG, in torch."""
