"""How a kubeconfig, or the account of a Pod, proves to an API server who asks."""
