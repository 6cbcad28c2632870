"""The mathematics on one sentence: idea, formula, numbers and a few lines of PyTorch for every intermediate."""
