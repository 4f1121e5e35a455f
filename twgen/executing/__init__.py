"""Changes Temporal, the cluster and files. No other package writes."""
