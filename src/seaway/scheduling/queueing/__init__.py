"""Queue disciplines, which define the order in which waiting jobs are tried."""
