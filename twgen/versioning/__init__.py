"""A version's identity: its pod template's stored form and JSON, and its build ID, names and hashes."""
