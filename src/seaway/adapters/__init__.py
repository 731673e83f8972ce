"""Technologies behind the ports: one package or module each, none of which knows another."""
