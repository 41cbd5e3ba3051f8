"""Members of the ensemble: one model each, with held-out probabilities to be weighted by."""
