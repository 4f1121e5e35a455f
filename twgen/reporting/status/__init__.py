"""The state of every worker, as a tree, as lines and as JSON."""
