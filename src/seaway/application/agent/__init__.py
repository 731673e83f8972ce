"""The agent on a gateway: rounds of probes, and results that are queued until the controller accepts them."""
