"""Members of the ensemble; their held-out probabilities determine their weights."""
