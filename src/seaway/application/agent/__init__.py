"""The agent on a gateway: it runs rounds of probes and queues the results until the controller accepts them."""
