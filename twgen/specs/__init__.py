"""Turn documents into specs and problems, without access to files or clusters."""
