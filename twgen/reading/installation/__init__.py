"""Reads the parts of an installation: accounts, Argo CD, tick, and the Jobs and Pods of rollouts."""
