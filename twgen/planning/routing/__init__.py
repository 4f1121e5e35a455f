"""Which change of traffic comes next for a worker."""
