"""Turn documents into specs and problems. Only the kinds and their defaults matter, not files or clusters."""
