"""A node without a kubelet, which runs the cluster's Pods as processes on this machine."""
