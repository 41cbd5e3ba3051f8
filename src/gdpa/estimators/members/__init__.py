"""Members of the ensemble: different models, weighted by the loss of held-out labels."""
