"""What probing costs and how true it is: a full mesh of gateways on one machine."""
