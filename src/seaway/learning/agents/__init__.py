"""Agents EADE-DDPG and DDPG in torch."""
