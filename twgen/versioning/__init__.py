"""What a version is called: a pod template's stored form and its JSON in Go, build IDs, names and hashes."""
