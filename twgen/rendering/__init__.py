"""A plan in, manifests and their text out; decides nothing."""
