"""Whether a version that takes a share of the traffic is well, by what can be read again at any time."""
