"""Network between gateways: configuration, reports of agents, and the links that decisions use."""
