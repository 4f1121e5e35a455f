"""The identity of a version: a pod template's stored form and its JSON in Go, build IDs, names and hashes."""
