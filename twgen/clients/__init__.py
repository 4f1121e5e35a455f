"""Opens clients; the only package that touches credentials."""
