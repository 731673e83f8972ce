"""What a Prometheus knows of gateways' interfaces."""
