"""Bearer tokens of an OpenID Connect provider."""
