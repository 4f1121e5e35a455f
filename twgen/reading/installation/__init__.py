"""Reads the parts of an installation: accounts, Argo CD, tick, and the rollouts' Jobs and Pods."""
