"""A version's identity: the stored form of its pod template, Go's JSON of it, build IDs, names and hashes."""
