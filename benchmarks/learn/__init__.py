"""How fast policies are trained."""
