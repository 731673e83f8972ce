"""What runs on a gateway: rounds of probes, and results that are kept until the controller has them."""
