"""How quick pages are, and what it costs the control plane that people look."""
