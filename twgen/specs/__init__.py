"""Documents in, specs and problems out; knows the kinds and their defaults, nothing of files or clusters."""
