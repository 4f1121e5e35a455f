"""The command line: options in, one call, text out; the only code that reads clock and environment."""
