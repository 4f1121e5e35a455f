"""Reports on the state of workers: as trees, as plain lines and as JSON."""
