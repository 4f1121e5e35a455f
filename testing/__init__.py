"""Real servers and workers for tests and demos; never imported by twgen itself."""
