"""Queue disciplines: the order in which waiting jobs are tried."""
