"""How good policies are: rows of figures, one a policy, instance and seed, and what they say together."""
