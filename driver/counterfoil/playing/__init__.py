"""How a worker plays runs."""
