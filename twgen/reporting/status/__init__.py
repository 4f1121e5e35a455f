"""Where every worker stands, as a tree, as lines and as JSON."""
