"""Views of clusters, kept current by lists and watches."""
