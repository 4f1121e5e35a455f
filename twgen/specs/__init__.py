"""Turn documents into specs and problems: knows the kinds and their defaults, not files or clusters."""
