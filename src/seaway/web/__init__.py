"""Pages for people, served by the control plane; they know no more of it than what its API tells whoever looks."""
