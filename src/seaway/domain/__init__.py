"""Values and rules of scheduling: frozen, standard library only."""
