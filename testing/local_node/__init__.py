"""A node without kubelet: it runs the Pods of a cluster as processes of this machine."""
