"""A real Argo CD with twgen as its plugin, and a Git repository that it deploys from."""
