"""The verdict on a version that takes a share of the traffic; its data can be read again at any time."""
