"""A model of Temporal and of a cluster under a fake clock; reads nothing, renders nothing."""
