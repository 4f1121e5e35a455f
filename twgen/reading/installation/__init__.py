"""Reading what an installation is made of: accounts, Argo CD, tick, and what carries rollouts out."""
